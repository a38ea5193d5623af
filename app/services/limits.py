"""Daily allowances per address, counted durably in blocks (see core/limits.py)."""

from collections import OrderedDict
from dataclasses import dataclass, field

from gevent.lock import BoundedSemaphore

from app import tokens
from app.clock import Clock
from app.core.limits import Counted, Exhausted, block_of, day_of, seconds_to_midnight
from app.storage import limits as storage
from app.storage.engine import Engine, Transaction

_MOST_ADDRESSES_IN_MEMORY = 20_000


@dataclass(slots=True)
class _Tally:
    day: int
    stored: int = 0
    left: int = 0
    is_spent: bool = False
    """Nothing was left in the database either: whoever goes on asking costs it nothing more that day."""
    turn: BoundedSemaphore = field(default_factory=BoundedSemaphore)


class DailyLimit:
    """One kind of allowance, such as `requests`: so many for each address and UTC day, 0 for none at all."""

    def __init__(self, engine: Engine, clock: Clock, kind: str, limit: int) -> None:
        self._engine = engine
        self._clock = clock
        self._kind = kind
        self.limit = limit
        self._tallies: OrderedDict[str, _Tally] = OrderedDict()

    def take(self, address: str) -> Counted | Exhausted:
        """Use one. Raises Unavailable when the count cannot be kept: a limit that cannot be checked is no pass."""
        now = self._clock.now()
        tally = self._tally(address, day_of(now))
        with tally.turn:
            if tally.left == 0 and not tally.is_spent:
                self._reserve(address, tally)
            if tally.left == 0:
                tally.is_spent = True
                return Exhausted(self.limit, seconds_to_midnight(now))
            tally.left -= 1
            return Counted(self.limit, self.limit - tally.stored + tally.left, seconds_to_midnight(now))

    def take_within(self, tx: Transaction, address: str) -> Counted | Exhausted:
        """Use one as part of a transaction: counted if and only if it commits."""
        now = tx.now()
        counter, day = self._counter_hash(address), day_of(now)
        used = storage.used(tx, counter, day)
        if used >= self.limit:
            return Exhausted(self.limit, seconds_to_midnight(now))
        storage.save(tx, counter, day, used + 1)
        return Counted(self.limit, self.limit - used - 1, seconds_to_midnight(now))

    def give_back(self) -> None:
        """Return what was reserved and not used: at an orderly stop."""
        for address, tally in self._tallies.items():
            if tally.left:
                self._return(address, tally)

    def _tally(self, address: str, day: int) -> _Tally:
        tally = self._tallies.get(address)
        if tally is None or tally.day != day:
            tally = self._tallies[address] = _Tally(day)
            if len(self._tallies) > _MOST_ADDRESSES_IN_MEMORY:
                self._tallies.popitem(last=False)
        self._tallies.move_to_end(address)
        return tally

    def _reserve(self, address: str, tally: _Tally) -> None:
        counter = self._counter_hash(address)

        def operation(tx: Transaction) -> tuple[int, int]:
            used = storage.used(tx, counter, tally.day)
            block = block_of(self.limit, used)
            if block:
                storage.save(tx, counter, tally.day, used + block)
            return used + block, block

        tally.stored, tally.left = self._engine.run(operation)

    def _return(self, address: str, tally: _Tally) -> None:
        counter, unused = self._counter_hash(address), tally.left
        tally.left = 0

        def operation(tx: Transaction) -> None:
            storage.save(tx, counter, tally.day, storage.used(tx, counter, tally.day) - unused)

        self._engine.run(operation)

    def _counter_hash(self, address: str) -> bytes:
        return tokens.digest("daily-limit", self._kind, address)
