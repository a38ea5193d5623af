"""Movers that race for one handoff: exactly one of them gets it, and a repeat is never a second move."""

import itertools
import threading
from functools import partial

import pytest

from tests.real.api import Answer, Api
from tests.real.handoffs import PATH, Made, at_once, bearer, look, make, move, own_tokens
from tests.real.server import ENGINES, RunningServer

ROUNDS = 200
MOVERS = 64


@pytest.fixture(scope="module", params=ENGINES)
def server(request):
    with RunningServer(engine=request.param) as running:
        yield running


@pytest.fixture
def api(server):
    with Api(server.port) as caller:
        yield caller


def move_as(made: Made, index: int, own: Api) -> Answer:
    """One of many movers out of the start: owner and receiver in turn, into four states in turn."""
    to = ("accepted", "working", "done", "failed")[index % 4]
    return move(own, made, to, "offered", token=(made.owner, made.receiver)[index % 2], nonce=f"n{index}")


def accept_once(made: Made, own: Api) -> Answer:
    return move(own, made, "accepted", "offered", nonce="n")


def is_dense(api: Api, made: Made) -> bool:
    """Whether the history is a walk without a gap and as long as the version says."""
    read = look(api, made).body
    states = [line["state"] for line in read["history"]]
    steps_join = all(later["from"] == earlier["state"] for earlier, later in itertools.pairwise(read["history"]))
    return steps_join and read["version"] == len(states) == len(set(states))


def test_of_two_moves_out_of_one_state_exactly_one_goes_through_200_times(server, api) -> None:
    all_made = [make(api) for _ in range(ROUNDS)]
    barrier = threading.Barrier(2)
    answers: dict[str, list[Answer]] = {"accepted": [], "returned": []}

    def race(to: str, token_of: str) -> None:
        with Api(server.port) as own:
            for made in all_made:
                barrier.wait(60)
                answers[to].append(move(own, made, to, "offered", token=getattr(made, token_of)))

    racers = [threading.Thread(target=race, args=("accepted", "receiver"))]
    racers.append(threading.Thread(target=race, args=("returned", "owner")))
    for racer in racers:
        racer.start()
    for racer in racers:
        racer.join(120)
    winners = set()
    for made, one, other in zip(all_made, answers["accepted"], answers["returned"], strict=True):
        won, lost = (one, other) if one.status == 200 else (other, one)
        assert (won.status, won["version"], lost.status, lost["code"]) == (200, 2, 409, "state_mismatch")
        assert (lost["current_state"], lost["current_version"]) == (won["state"], 2)
        assert is_dense(api, made)
        winners.add(won["state"])
    assert winners == {"accepted", "returned"}, "they never really raced"


def test_of_64_movers_of_one_handoff_exactly_one_goes_through(server, api) -> None:
    for _ in range(3):
        made = make(api)
        answers = at_once(server, [partial(move_as, made, index) for index in range(MOVERS)])
        assert sorted(answer.status for answer in answers) == [200] + [409] * (MOVERS - 1)
        won = next(answer for answer in answers if answer.status == 200)
        assert {answer["current_state"] for answer in answers} == {won["state"]}
        assert is_dense(api, made)
        assert look(api, made)["version"] == 2


def test_walks_of_many_racing_movers_are_dense_to_the_end(server, api) -> None:
    made = make(api, states=[f"s{n}" for n in range(12)], transitions={f"s{n}": [f"s{n + 1}"] for n in range(11)})
    wins = []

    def walk(own: Api) -> Answer:
        for n in range(11):
            answer = move(own, made, f"s{n + 1}", f"s{n}")
            if answer.status == 200:
                wins.append(answer["version"])
            else:
                assert answer.status == 409
                while look(own, made)["version"] < n + 2:
                    pass
        return answer

    at_once(server, [walk] * 8)
    assert sorted(wins) == list(range(2, 13))
    assert is_dense(api, made)


def test_one_move_sent_twenty_times_at_once_is_committed_once_and_answered_alike(server, api) -> None:
    for _ in range(5):
        made = make(api)
        answers = at_once(server, [partial(accept_once, made)] * 20)
        assert {answer.status for answer in answers} == {200}
        assert sorted(answer["repeated"] for answer in answers) == [False] + [True] * 19
        assert len({str(answer.body | {"repeated": None}) for answer in answers}) == 1
        assert look(api, made)["version"] == 2


def test_one_creation_sent_twenty_times_at_once_makes_one_handoff(server) -> None:
    mine = own_tokens("t")
    answers = at_once(server, [lambda own: own.post(PATH, payload=1, headers=None, **mine)] * 20)
    assert {answer.status for answer in answers} == {201}
    assert len({answer["handoff_id"] for answer in answers}) == 1
    assert [answer.body.get("repeated", False) for answer in answers].count(False) == 1


def test_a_move_whose_answer_was_lost_is_repeated_without_a_second_move() -> None:
    with RunningServer() as server, Api(server.port) as api:
        made = make(api)
        server.failpoint("after-commit drop-answer")
        with pytest.raises(ConnectionError):
            move(api, made, "accepted", "offered", nonce="n")
        server.failpoint()
        again = move(api, made, "accepted", "offered", nonce="n")
        assert (again.status, again["repeated"], again["version"]) == (200, True, 2)
        assert look(api, made)["version"] == 2


@pytest.mark.parametrize("point", ["before-commit", "after-commit"])
def test_a_server_killed_around_the_commit_of_a_move_forgets_nothing_it_answered(point) -> None:
    with RunningServer() as server, Api(server.port) as api:
        made = make(api)
        assert move(api, made, "accepted", "offered", nonce="a").status == 200
        server.failpoint(f"{point} kill")
        with pytest.raises(ConnectionError):
            move(api, made, "working", "accepted", nonce="b")
        server.failpoint()
        server.kill9()
        server.start()
        again = move(api, made, "working", "accepted", nonce="b")
        assert (again.status, again["version"]) == (200, 3)
        assert again["repeated"] == (point == "after-commit")
        assert move(api, made, "accepted", "offered", nonce="a")["repeated"] is True
        assert is_dense(api, made)


def test_nonces_histories_and_creations_survive_a_restart() -> None:
    with RunningServer() as server, Api(server.port) as api:
        mine = own_tokens("s")
        created = api.post(PATH, payload={"a": 1}, headers=None, **mine)
        made = Made(created["handoff_id"], created["owner_token"], created["receiver_token"])
        first = move(api, made, "accepted", "offered", nonce="n", note="mine")
        before = look(api, made).body
        server.restart()
        api.close()
        again = move(api, made, "accepted", "offered", nonce="n", note="mine")
        assert again.body == first.body | {"repeated": True}
        assert (
            api.post(f"{made.path}/accepted", headers=bearer(made.receiver), nonce="n", **{"from": "offered"}).status
            == 409
        )
        assert look(api, made).body | {"seconds_left": 0} == before | {"seconds_left": 0}
        assert api.post(PATH, payload={"a": 1}, headers=None, **mine)["repeated"] is True


def test_past_the_live_limit_not_one_of_many_creators_at_once_gets_in() -> None:
    for engine in ENGINES:
        with RunningServer(engine=engine, environment={"FENCEPOST_LIMIT_LIVE_HANDOFFS": "5"}) as server:
            answers = at_once(server, [lambda own: own.post(PATH, payload=1)] * 24)
        assert sorted(answer.status for answer in answers) == [201] * 5 + [503] * 19
