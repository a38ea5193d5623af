"""Hints through Redis, where PostgreSQL's own do not pass a pooler or are too many for one server."""

from typing import Any

import redis

from app.storage.notify import ChannelAway


class RedisChannel:
    """Publish and subscribe. `name` keeps installations that share a Redis apart."""

    def __init__(self, url: str, name: str) -> None:
        self._redis: Any = redis.Redis.from_url(
            url, socket_timeout=10, socket_connect_timeout=3, health_check_interval=5
        )
        self._name = name
        self._subscription: Any = None

    def send(self, messages: list[str]) -> None:
        """As the bus asks."""
        try:
            with self._redis.pipeline(transaction=False) as pipeline:
                for message in messages:
                    pipeline.publish(self._name, message)
                pipeline.execute()
        except redis.RedisError as fault:
            raise ChannelAway(type(fault).__name__) from None

    def listen(self) -> None:
        """As the bus asks."""
        self._leave()
        try:
            self._subscription = self._redis.pubsub(ignore_subscribe_messages=True)
            self._subscription.subscribe(self._name)
        except redis.RedisError as fault:
            raise ChannelAway(type(fault).__name__) from None

    def hear(self, seconds: float) -> list[str]:
        """As the bus asks."""
        try:
            found = self._subscription.get_message(timeout=seconds)
            if found is None:
                self._subscription.check_health()
        except redis.RedisError as fault:
            raise ChannelAway(type(fault).__name__) from None
        return [] if found is None or found["type"] != "message" else [found["data"].decode("utf-8")]

    def close(self) -> None:
        """Let go."""
        self._leave()
        self._redis.close()

    def _leave(self) -> None:
        if self._subscription is not None:
            self._subscription.close()
            self._subscription = None
