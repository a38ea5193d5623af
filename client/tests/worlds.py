"""One suite for two clients: the async one is called through an event loop of its own, as if it were the sync one."""

import asyncio
import inspect
import threading
from collections.abc import Callable, Iterator
from types import TracebackType
from typing import Any, Self

import fencepost


class World:
    """Makes clients, and closes them at its end."""

    is_async = False

    def __init__(self) -> None:
        self._clients: list[Any] = []

    def client(self, url: str, **given: Any) -> Any:
        """A client that is called like the sync one."""
        client = self._make(url, **given)
        self._clients.append(client)
        return client

    def _make(self, url: str, **given: Any) -> Any:
        return fencepost.Client(url, **given)

    def action(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """The function as an action of this world."""
        return function

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, fault: BaseException | None, trace: TracebackType | None
    ) -> None:
        for client in self._clients:
            client.close()


class SyncWorld(World):
    """The sync client itself."""


class AsyncWorld(World):
    """The async client, each call run on one loop in a thread."""

    is_async = True

    def __init__(self) -> None:
        super().__init__()
        self.loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self.loop.run_forever, name="loop-of-the-test")
        self._thread.start()

    def _make(self, url: str, **given: Any) -> Any:
        async def make() -> fencepost.AsyncClient:
            return fencepost.AsyncClient(url, **given)

        return _Portal(asyncio.run_coroutine_threadsafe(make(), self.loop).result(), self.loop)

    def action(self, function: Callable[..., Any]) -> Callable[..., Any]:
        async def act(*arguments: Any) -> Any:
            return await asyncio.to_thread(function, *arguments)

        return act

    def __exit__(
        self, kind: type[BaseException] | None, fault: BaseException | None, trace: TracebackType | None
    ) -> None:
        super().__exit__(kind, fault, trace)
        asyncio.run_coroutine_threadsafe(self.loop.shutdown_default_executor(), self.loop).result()
        self.loop.call_soon_threadsafe(self.loop.stop)
        self._thread.join()
        self.loop.close()


class _Portal:
    """An object of the loop's, called from outside: what would be awaited is waited for."""

    def __init__(self, inner: Any, loop: asyncio.AbstractEventLoop) -> None:
        object.__setattr__(self, "_inner", inner)
        object.__setattr__(self, "_loop", loop)

    def __getattr__(self, name: str) -> Any:
        return self._out(getattr(self._inner, name))

    def __call__(self, *arguments: Any, **named: Any) -> Any:
        return self._out(self._inner(*arguments, **named))

    def __repr__(self) -> str:
        return repr(self._inner)

    def __enter__(self) -> Any:
        return self._wait(self._inner.__aenter__())

    def __exit__(self, *fault: Any) -> Any:
        return self._wait(self._inner.__aexit__(*fault))

    def __iter__(self) -> Iterator[Any]:
        iterator = self._inner.__aiter__()
        while True:
            try:
                yield self._wait(iterator.__anext__())
            except StopAsyncIteration:
                return

    def _wait(self, awaitable: Any) -> Any:
        async def outcome() -> Any:
            return await awaitable

        return self._out(asyncio.run_coroutine_threadsafe(outcome(), self._loop).result())

    def _out(self, value: Any) -> Any:
        if inspect.isawaitable(value):
            return self._wait(value)
        is_ours = type(value).__module__.startswith("fencepost._async")
        is_call = callable(value) and not isinstance(value, type)
        return _Portal(value, self._loop) if is_ours or is_call or inspect.isasyncgen(value) else value
