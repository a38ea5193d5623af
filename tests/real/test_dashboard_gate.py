"""What the gate of the dashboard asks, by raw requests: cookies, tokens of forms, origins, roles, methods, guesses."""

import re
from collections.abc import Iterator, Mapping
from html import unescape
from time import monotonic, sleep
from urllib.parse import urlencode

import pytest

from tests.real.api import Answer, Api
from tests.real.handoffs import bearer, look, make
from tests.real.people import FORM, Person, add_person, fields, hidden, operator, post, sign_in, visit
from tests.real.server import RunningServer

pytestmark = pytest.mark.real
ANN, VIC, SECRET = "ann", "vic", "correct horse battery"


@pytest.fixture(scope="module")
def house() -> Iterator[RunningServer]:
    """A server with an operator and a viewer, added beside it while it runs."""
    with RunningServer() as running:
        assert add_person(running, ANN, SECRET).returncode == 0
        assert add_person(running, VIC, SECRET, "--role", "viewer").returncode == 0
        yield running


@pytest.fixture
def api(house: RunningServer) -> Iterator[Api]:
    with Api(house.port) as api:
        yield api


@pytest.fixture
def ann(api: Api) -> Person:
    return sign_in(api, ANN, SECRET)


def state(api: Api, made: object) -> object:
    return look(api, made)["state"]  # type: ignore[arg-type]


def confirmed(api: Api, person: Person, path: str, to: str = "accepted") -> dict[str, str]:
    """The fields of the page that asks once more."""
    page = visit(api, person, path)
    asked = post(api, person, f"{path}/choose", {**hidden(page, "decide"), "to": to, "note": "fine"})
    assert asked.status == 200, asked.raw
    return hidden(asked, "confirm-form") | {"confirm": "yes"}


# ------------------------------------------------------------------------------------------------------ cookies


def test_the_session_cookie_is_out_of_reach_of_scripts_and_other_sites(api: Api) -> None:
    person = sign_in(api, ANN, SECRET)
    assert "HttpOnly" in person.set_cookie
    assert "SameSite=Strict" in person.set_cookie
    assert "Path=/" in person.set_cookie
    assert "Domain" not in person.set_cookie
    assert "Secure" not in person.set_cookie
    assert "Max-Age=43200" in person.set_cookie


def test_under_https_the_cookie_is_secure_and_of_this_host_only(start_server) -> None:
    server = start_server(test_mode=False, environment={"FENCEPOST_PUBLIC_URL": "https://fence.example"})
    assert add_person(server, ANN, SECRET).returncode == 0
    with Api(server.port) as api:
        person = sign_in(api, ANN, SECRET, origin="https://fence.example")
        assert person.set_cookie.startswith("__Host-fencepost_session=")
        assert "; Secure" in person.set_cookie
        assert visit(api, person, "/handoffs").status == 200


def test_a_planted_session_is_not_the_one_that_is_signed_in(api: Api) -> None:
    planted = "sess_" + "A" * 43
    person = sign_in(api, ANN, SECRET, cookie=f"fencepost_session={planted}")
    assert planted not in person.cookie
    assert api.get("/handoffs", {"Cookie": f"fencepost_session={planted}"}).status == 303
    assert sign_in(api, ANN, SECRET).cookie != person.cookie


def test_a_sign_out_ends_the_session_wherever_the_cookie_was_copied_to(api: Api) -> None:
    person = sign_in(api, ANN, SECRET)
    left = post(api, person, "/sign-out", {"csrf": person.csrf})
    assert (left.status, left.headers["location"]) == (303, "/sign-in")
    assert visit(api, person, "/handoffs").status == 303


def test_who_is_not_signed_in_is_sent_to_the_sign_in_and_back(api: Api) -> None:
    answer = api.get("/handoffs?show=ended")
    assert (answer.status, answer.headers["location"]) == (303, "/sign-in?next=%2Fhandoffs%3Fshow%3Dended")
    assert api.get("/handoffs", {"X-Fencepost-Live": "1"}).status == 401


@pytest.mark.parametrize(
    "target",
    ["//evil.example", "https://evil.example", "/\\evil.example", "evil", "/a\nb", "//[", "http://[", "//\uff0fevil"],
)
def test_nobody_is_sent_on_to_another_server(api: Api, target: str) -> None:
    page = api.get("/sign-in?" + urlencode({"next": target}))
    assert 'name="next" value="/"' in page.raw.decode()


# ---------------------------------------------------------------------------------------------------- forms


@pytest.mark.parametrize(
    "headers",
    [
        {"Origin": "https://evil.example"},
        {"Origin": "https://evil.example", "Sec-Fetch-Site": "same-origin"},
        {"Origin": "null"},
        {"Origin": "null", "Sec-Fetch-Site": "cross-site"},
        {"Origin": "null", "Sec-Fetch-Site": "same-site"},
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "none"},
    ],
)
def test_a_form_of_another_site_is_refused_and_nothing_changes(api: Api, ann: Person, headers: dict[str, str]) -> None:
    made = make(api)
    path = f"/handoffs/{made.name}"
    form = confirmed(api, ann, path)
    for target in (f"{path}/move", f"{path}/choose", "/sign-out", "/sign-in", "/handoffs/bulk"):
        assert post(api, ann, target, form, headers).status == 403, target
    assert state(api, made) == "offered"
    assert visit(api, ann, path).status == 200


@pytest.mark.parametrize(
    "headers", [{"Origin": "null", "Sec-Fetch-Site": "same-origin"}, {"Sec-Fetch-Site": "same-origin"}, {}]
)
def test_a_form_of_our_own_page_is_taken(api: Api, ann: Person, headers: dict[str, str]) -> None:
    made = make(api)
    path = f"/handoffs/{made.name}"
    moved = post(api, ann, f"{path}/move", confirmed(api, ann, path), headers)
    assert (moved.status, moved.headers["location"]) == (303, f"{path}/receipts/2")
    assert state(api, made) == "accepted"


@pytest.mark.parametrize("token", [None, "", "x", "é", "A" * 43])
def test_without_the_token_of_the_session_nothing_happens(api: Api, ann: Person, token: str | None) -> None:
    made = make(api)
    path = f"/handoffs/{made.name}"
    form = {name: value for name, value in confirmed(api, ann, path).items() if name != "csrf"}
    if token is not None:
        form["csrf"] = token
    assert post(api, ann, f"{path}/move", form).status == 403
    assert state(api, made) == "offered"


def test_the_token_of_one_session_is_worth_nothing_in_another(api: Api, ann: Person) -> None:
    other = sign_in(api, ANN, SECRET)
    made = make(api)
    path = f"/handoffs/{made.name}"
    form = confirmed(api, ann, path) | {"csrf": other.csrf}
    assert post(api, ann, f"{path}/move", form).status == 403
    assert state(api, made) == "offered"


@pytest.mark.parametrize(
    ("body", "media", "status"),
    [
        (b"csrf=%FF", FORM, 400),
        (b"\xff\xfe", FORM, 400),
        (b"&".join(b"a%d=1" % place for place in range(2000)), FORM, 400),
        (b"a=" + b"b" * 70_000, FORM, 413),
        (b"{}", "application/json", 415),
        (b"a=b", "text/plain", 415),
    ],
)
def test_a_form_that_cannot_be_read_is_refused_as_a_page(
    api: Api, ann: Person, body: bytes, media: str, status: int
) -> None:
    answer = api.send("POST", "/handoffs/bulk", body, {"Cookie": ann.cookie, "Content-Type": media})
    assert answer.status == status
    assert answer.headers["content-type"].startswith("text/html")


@pytest.mark.parametrize(
    ("target", "form"),
    [
        ("/deliveries/resend", {"handoff": "0" * 32, "version": "2", "tried": ""}),
        ("/leases/" + "0" * 64 + "/break", {"fence": "1", "reason": "x"}),
        ("/claims/" + "0" * 64 + "/release", {"fence": "1", "reason": "x"}),
    ],
)
def test_every_deed_asks_for_the_session_its_token_our_origin_and_an_operator(
    api: Api, ann: Person, target: str, form: dict[str, str]
) -> None:
    vic = sign_in(api, VIC, SECRET)
    signed = form | {"csrf": ann.csrf}
    assert post(api, Person("", "", ""), target, signed).status == 401
    assert post(api, ann, target, form).status == 403
    assert post(api, ann, target, signed | {"csrf": vic.csrf}).status == 403
    assert post(api, ann, target, signed, {"Origin": "https://evil.example"}).status == 403
    assert post(api, ann, target, signed, {"Sec-Fetch-Site": "cross-site"}).status == 403
    refused = post(api, vic, target, form | {"csrf": vic.csrf})
    assert (refused.status, b"viewer" in refused.raw) == (403, True)
    assert post(api, ann, target, signed).status in (404, 409)
    assert visit(api, ann, target).status == 405


@pytest.mark.parametrize(
    "changed", [{"handoff": "x"}, {"version": "0"}, {"version": "x"}, {"tried": "x"}, {"tried": "9" * 19}]
)
def test_a_wish_to_send_again_that_is_not_whole_does_nothing(api: Api, ann: Person, changed: dict[str, str]) -> None:
    form = {"csrf": ann.csrf, "handoff": "0" * 32, "version": "2", "tried": ""} | changed
    assert post(api, ann, "/deliveries/resend", form).status == 400


@pytest.mark.parametrize("path", ["/", "/deliveries", "/leases", "/claims", "/audit", "/health", "/settings"])
def test_every_page_asks_who_is_there(api: Api, ann: Person, path: str) -> None:
    answer = api.get(path)
    assert (answer.status, answer.headers["location"].startswith("/sign-in")) == (303, True)
    vic = sign_in(api, VIC, SECRET)
    assert visit(api, vic, path).status == 200
    assert b"Resend</button>" not in visit(api, vic, path).raw
    for odd in ("?after=x", "?after=" + "9" * 18 + "." + "0" * 32 + ".1", "?show=%00", "?before=x&show=nothing"):
        assert visit(api, ann, path + odd).status == 200, odd


def test_an_unknown_address_is_a_page_for_a_browser_and_json_for_a_program(api: Api) -> None:
    browser = {"Accept": "text/html,application/xhtml+xml,*/*;q=0.8"}
    page = api.get("/nowhere", browser)
    assert (page.status, page.headers["content-type"]) == (404, "text/html; charset=utf-8")
    assert b"No such page" in page.raw
    assert "default-src 'none'" in page.headers["content-security-policy"]
    form_only = api.get("/sign-out", browser)
    assert (form_only.status, form_only.headers["allow"]) == (405, "POST")
    assert form_only.headers["content-type"].startswith("text/html")
    assert api.get("/nowhere")["code"] == "unknown_route"
    assert api.get("/services/v1/nowhere", browser)["code"] == "unknown_route"
    assert api.send("POST", "/nowhere", b"", browser)["code"] == "unknown_route"


# ---------------------------------------------------------------------------------------------------- roles


def test_a_viewer_looks_and_cannot_move(api: Api) -> None:
    vic = sign_in(api, VIC, SECRET)
    made = make(api)
    path = f"/handoffs/{made.name}"
    page = visit(api, vic, path)
    assert page.status == 200
    assert b"data-choice" not in page.raw
    assert b"you may look, not move" in page.raw
    form = {"csrf": vic.csrf, "to": "done", "from": "offered", "version": "1", "nonce": "n", "confirm": "yes"}
    digest = re.search(rb"SHA-256 <code>([0-9a-f]{64})", page.raw)
    assert digest is not None
    form["digest"] = digest.group(1).decode()
    bulk = form | {"id": made.name, "pick": made.name}
    for target in (f"{path}/choose", f"{path}/move", "/handoffs/bulk", "/handoffs/bulk/move"):
        answer = post(api, vic, target, bulk)
        assert (answer.status, b"viewer" in answer.raw) == (403, True), target
    assert state(api, made) == "offered"


def test_looking_changes_nothing(api: Api, ann: Person) -> None:
    made = make(api)
    path = f"/handoffs/{made.name}"
    for method in ("GET", "HEAD", "OPTIONS", "PUT", "DELETE", "PATCH"):
        for target in (
            "/",
            "/sign-in",
            "/sign-out",
            "/handoffs",
            "/handoffs/bulk",
            "/handoffs/bulk/move",
            path,
            f"{path}/choose",
            f"{path}/move",
            f"{path}/move?to=accepted&from=offered&confirm=yes&csrf={ann.csrf}",
            f"{path}/receipts/2",
            "/deliveries",
            "/deliveries/resend",
            "/review",
        ):
            assert api.send(method, target, None, {"Cookie": ann.cookie}).status in (200, 303, 404, 405), target
    seen = look(api, made)
    assert (seen["state"], seen["version"]) == ("offered", 1)
    assert visit(api, ann, "/handoffs").status == 200


# -------------------------------------------------------------------------------------------------- deciding


def test_a_choice_alone_moves_nothing_and_a_form_without_its_button_is_asked_again(api: Api, ann: Person) -> None:
    made = make(api)
    path = f"/handoffs/{made.name}"
    form = confirmed(api, ann, path)
    del form["confirm"]
    assert post(api, ann, f"{path}/move", form).status == 200
    assert post(api, ann, f"{path}/choose", hidden(visit(api, ann, path), "decide")).status == 400
    assert state(api, made) == "offered"


def test_a_repeated_post_is_the_same_decision(api: Api, ann: Person) -> None:
    made = make(api)
    path = f"/handoffs/{made.name}"
    form = confirmed(api, ann, path)
    answers = [post(api, ann, f"{path}/move", form) for _ in range(3)]
    assert {answer.headers["location"] for answer in answers} == {f"{path}/receipts/2"}
    seen = look(api, made)
    assert (seen["version"], seen["history"][1]["actor"], seen["history"][1]["note"]) == (2, ANN, "fine")


def test_what_moved_meanwhile_is_refused_in_words(api: Api, ann: Person) -> None:
    made = make(api)
    path = f"/handoffs/{made.name}"
    form = confirmed(api, ann, path, "returned")
    api.post(f"{made.path}/working", headers=bearer(made.owner), **{"from": "offered", "note": "taken"})
    answer = post(api, ann, f"{path}/move", form)
    words = unescape(answer.raw.decode())
    assert answer.status == 409
    assert "It moved meanwhile: the owner moved it to working" in words
    assert "taken" in words
    assert "Your note was not recorded" in words
    assert look(api, made)["version"] == 2


@pytest.mark.parametrize(
    "changed",
    [
        {"version": "2"},
        {"version": "x"},
        {"digest": "0" * 64},
        {"from": "working"},
        {"nonce": ""},
        {"nonce": "a\x00b"},
        {"nonce": "n" * 65},
    ],
)
def test_a_form_about_something_else_decides_nothing(api: Api, ann: Person, changed: dict[str, str]) -> None:
    made = make(api)
    path = f"/handoffs/{made.name}"
    answer = post(api, ann, f"{path}/move", confirmed(api, ann, path) | changed)
    assert answer.status in (200, 400, 409)
    assert state(api, made) == "offered"


def test_an_expired_one_says_so_and_never_rejected(start_server) -> None:
    server = start_server()
    assert add_person(server, ANN, SECRET).returncode == 0
    with Api(server.port) as api:
        ann = sign_in(api, ANN, SECRET)
        made = make(api, ttl_seconds=60, audience="person")
        path = f"/handoffs/{made.name}"
        form = confirmed(api, ann, path)
        server.set_clock(61)
        answer = post(api, ann, f"{path}/move", form)
        assert answer.status == 410
        for page in (answer, visit(api, ann, path)):
            assert b"Expired, nobody decided" in page.raw
            assert b"ejected" not in page.raw
        assert b"expired, nobody decided" in visit(api, ann, "/handoffs?show=expired").raw


def test_many_are_moved_with_a_result_for_each(api: Api, ann: Person) -> None:
    one, other, third = (make(api, title=f"row {number}") for number in range(3))
    asked = post(api, ann, "/handoffs/bulk", {"csrf": ann.csrf, "pick": [one.name, other.name], "to": "accepted"})
    assert asked.status == 200
    api.post(f"{other.path}/done", headers=bearer(other.owner), **{"from": "offered"})
    form = [*fields(asked, "confirm-form"), ("confirm", "yes")]
    for _ in range(2):
        done = post(api, ann, "/handoffs/bulk/move", form)
        words = unescape(done.raw.decode())
        assert "1 of 2 moved to accepted" in words
        assert "not moved: It moved meanwhile: the owner moved it to done" in words
    assert [look(api, made)["state"] for made in (one, other, third)] == ["accepted", "done", "offered"]
    assert look(api, one)["version"] == 2
    assert post(api, ann, "/handoffs/bulk", {"csrf": ann.csrf, "to": "accepted"}).status == 400


def test_more_rows_than_can_be_shown_are_refused_whole_and_odd_names_are_nobody_s(api: Api, ann: Person) -> None:
    one = make(api)
    asked = post(api, ann, "/handoffs/bulk", {"csrf": ann.csrf, "pick": [one.name, "\x00", "x" * 99], "to": "accepted"})
    assert asked.status == 200
    form = [*fields(asked, "confirm-form"), ("confirm", "yes")]
    row = [(name, value) for name, value in form if name in ("id", "from", "version", "digest", "nonce")]
    assert len(row) == 5
    for more in (row, [(n, f"{k:032x}" if n == "id" else v) for k in range(101) for n, v in row], [("nonce", "\x00")]):
        assert post(api, ann, "/handoffs/bulk/move", [*form, *more]).status == 400
    many = [f"{number:032x}" for number in range(101)]
    assert post(api, ann, "/handoffs/bulk", {"csrf": ann.csrf, "pick": many, "to": "accepted"}).status == 400
    assert state(api, one) == "offered"
    assert visit(api, ann, "/handoffs/%00").status == 404


# -------------------------------------------------------------------------------------------------- guessing


def test_guesses_are_slowed_down_and_a_wrong_name_reads_like_a_wrong_password(start_server) -> None:
    server = start_server()
    assert add_person(server, ANN, SECRET).returncode == 0
    with Api(server.port) as api:
        page = api.get("/sign-in")
        cookie = page.headers["set-cookie"].split(";")[0]
        guess: Mapping[str, str] = hidden(page, "") | {"name": ANN, "password": "wrong"}
        headers = {"Cookie": cookie, "Content-Type": FORM}

        def tried(form: Mapping[str, str]) -> Answer:
            return api.send("POST", "/sign-in", urlencode(form).encode(), headers)

        first, unknown = tried(guess), tried({**guess, "name": "nobody"})
        assert (first.status, unknown.status) == (403, 403)
        assert first.raw.replace(b"ann", b"nobody").split(b"role=")[1][:80] == unknown.raw.split(b"role=")[1][:80]
        answers = [tried(guess) for _ in range(6)]
        assert answers[-1].status == 429
        assert int(answers[-1].headers["retry-after"]) >= 1
        assert tried({**guess, "password": SECRET}).status == 429


def test_every_page_carries_the_headers_that_keep_it_safe(api: Api, ann: Person) -> None:
    made = make(api)
    lists = ("/", "/handoffs", "/leases", "/claims", "/deliveries", "/audit", "/health", "/settings")
    for path in (*lists, "/sign-in", f"/handoffs/{made.name}", "/review", "/handoffs/none"):
        answer = visit(api, ann, path)
        policy = answer.headers["content-security-policy"]
        assert "default-src 'none'" in policy
        assert "frame-ancestors 'none'" in policy
        assert "form-action 'self'" in policy
        assert "unsafe" not in policy
        assert answer.headers["referrer-policy"] == "no-referrer"
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert answer.headers["cache-control"] == "no-store"
        assert "noindex" in answer.headers["x-robots-tag"]
        assert answer.headers["x-request-id"]
        assert made.owner.encode() not in answer.raw
        assert not re.search(rb"""(?:src|href|action)=["'](?:https?:)?//""", answer.raw)


def test_the_exports_hold_every_row_and_no_formula(api: Api, ann: Person) -> None:
    make(api, title="=HYPERLINK(1)")
    table = visit(api, ann, "/handoffs/export.csv")
    assert table.headers["content-type"].startswith("text/csv")
    assert b"'=HYPERLINK(1)" in table.raw
    listed = visit(api, ann, "/handoffs/export.json?show=all")
    assert any('"=HYPERLINK(1)"' in line for line in listed.raw.decode().splitlines())


# ------------------------------------------------------------------------------------------ the first link


@pytest.mark.postgres
def test_several_workers_print_one_link_and_it_lets_the_first_one_in(start_server) -> None:
    server = start_server(engine="postgresql", environment={"FENCEPOST_WORKERS": "3"})
    deadline = monotonic() + 30
    while len(server.worker_pids) < 3 and monotonic() < deadline:
        sleep(0.05)
    sleep(2)  # whoever would print a second one had the time to
    links = re.findall(r"sign-in#(\S+)", server.stdout)
    assert len(links) == 1, server.stdout
    with Api(server.port) as api:
        page = api.get("/sign-in")
        headers = {"Cookie": page.headers["set-cookie"].split(";")[0], "Content-Type": FORM}
        form = hidden(page, "") | {"name": ANN, "password": SECRET, "code": links[0]}
        assert api.send("POST", "/sign-in", urlencode(form).encode(), headers).status == 303
        assert visit(api, sign_in(api, ANN, SECRET), "/").status == 200


# ---------------------------------------------------------------------------------------- the command line


def test_the_operator_verbs_answer_beside_the_running_server(house: RunningServer) -> None:
    assert (house.data_dir / "admin.sock").stat().st_mode & 0o777 == 0o600
    listed = operator(house, "list")
    assert (listed.returncode, "ann  operator" in listed.stdout, "vic  viewer" in listed.stdout) == (0, True, True)
    assert add_person(house, ANN, SECRET).returncode == 78
    assert add_person(house, "bob", SECRET).returncode == 0
    assert operator(house, "remove", "bob").returncode == 0
    assert operator(house, "remove", "bob").returncode == 78


def test_the_operator_verbs_act_themselves_when_no_server_runs(start_server) -> None:
    server = start_server()
    server.terminate()
    assert add_person(server, ANN, SECRET).returncode == 0
    assert "ann  operator" in operator(server, "list").stdout
    server.start()
    assert "Nobody may sign in yet" not in server.stdout.rpartition("listens on")[2]
