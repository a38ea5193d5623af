"""The operator's feeds on the stream: what the pages live on.

A feed says "look again", with the instant of its own look and nothing else: what there is to see stands in the pages,
which ask for themselves, so a list and a page about one row never tell two stories. Every look asks whether the session
still lives, so a sign-out ends the feed.
"""

from collections.abc import Mapping

from app.push.sources import Feed, FeedName, RightsEnded
from app.services.people import People
from app.wire.reply import pair


class OperatorFeed:
    """One feed of one socket."""

    def __init__(self, name: FeedName, token: str, people: People) -> None:
        self.topic = f"feed:{name}"
        self._token = token
        self._people = people

    def look(self) -> Mapping[str, object] | None:
        """When it was looked at. Raises RightsEnded, Unavailable."""
        session, now = self._people.session_now(self._token)
        if session is None:
            raise RightsEnded
        return pair("now", now)


class Feeds:
    """Opens feeds for who is signed in. `cookie` is the name of the session's cookie."""

    def __init__(self, people: People, cookie: str) -> None:
        self._people = people
        self._cookie = cookie

    def open(self, name: FeedName, cookies: Mapping[str, str]) -> Feed | None:
        """The feed, or None where the cookies are no live session. Raises Unavailable."""
        token = cookies.get(self._cookie, "")
        if not token or self._people.session(token) is None:
            return None
        return OperatorFeed(name, token, self._people)
