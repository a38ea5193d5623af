"""A caller of once-keys on a real server, and the few lines with which a stranger verifies a receipt."""

import hashlib
import json
import secrets
from base64 import urlsafe_b64decode
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import rfc8785
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

from tests.real.api import Answer, Api, together

YEAR = 31_536_000


def fresh(prefix: str) -> str:
    """A token as a caller makes it."""
    return prefix + secrets.token_urlsafe(32)


class Once(Api):
    """Calls of `/once-key…` in one namespace, of which it learns the token."""

    def __init__(self, port: int, namespace: str = "billing", token: str | None = None, prefix: str = "") -> None:
        super().__init__(port)
        self.namespace = namespace
        self.token = token
        self.prefix = prefix

    def once(self, route: str = "", action_key: str = "charge-1042", **members: Any) -> Answer:
        """One call; `None` leaves a member out."""
        named = {"namespace": self.namespace, "action_key": action_key, "namespace_token": self.token, **members}
        if route == "rotate-token":
            del named["action_key"]
        given = {name: value for name, value in named.items() if value is not None}
        answer = self.post(f"{self.prefix}/once-key{'/' if route else ''}{route}", **given)
        if self.token is None and answer.status == 200 and "namespace_token" in answer.body:
            self.token = answer["namespace_token"]
        return answer

    def claim(self, action_key: str = "charge-1042", **members: Any) -> Answer:
        answer = self.once("", action_key, **members)
        assert answer.status == 200, answer
        return answer

    def complete_raw(self, result: str | None, action_key: str = "charge-1042") -> Answer:
        """Complete with a result as spelled here."""
        named = json.dumps({"namespace": self.namespace, "action_key": action_key, "namespace_token": self.token})
        member = "" if result is None else f', "result": {result}'
        return self.text(f"{self.prefix}/once-key/complete", named[:-1] + member + "}")


def stranger_verifies(raw: bytes, jwks: dict[str, Any]) -> bool:
    """Whether an answer as received carries the receipt of one of these keys: only public libraries."""
    answer = json.loads(raw)
    _, key_id, signature = answer.pop("receipt").split(":")
    if "result" in answer:
        del answer["result"]
        text = raw.split(b'"result":', 1)[1].rsplit(b',"has_result":', 1)[0]
        answer["result_sha256"] = hashlib.sha256(text).hexdigest()
    keys = {key["kid"]: key["x"] for key in jwks["keys"]}
    public = Ed25519PublicKey.from_public_bytes(urlsafe_b64decode(keys[key_id] + "="))
    try:
        public.verify(urlsafe_b64decode(signature + "=="), rfc8785.dumps(answer))
    except InvalidSignature:
        return False
    return True


def at_once(port: int, callers: int, **members: Any) -> list[Answer]:
    """The same claim from so many connections, started on a barrier."""
    barrier = together(callers)

    def call(_: int) -> Answer:
        with Api(port) as api:
            barrier.wait(30)
            return api.post("/once-key", **members)

    with ThreadPoolExecutor(callers) as pool:
        return list(pool.map(call, range(callers)))
