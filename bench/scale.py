"""What a fleet needs at so many operations a second, from what one operation was measured to cost.

`python -m bench.scale` prints the tables of docs/scale.md. The model is arithmetic: operations on different keys share
nothing but the machines, so cost is linear; what is shared (a row, the fence counter, the log of one primary) is a
limit of its own. Costs are from `python -m bench.postgres_cost`.
"""

from dataclasses import dataclass

# 2026-11-30, a busy 2-core Debian 12 machine, PostgreSQL 15, defaults but shared_buffers: an idle one costs less.
SERVER_MS = {"granted": 2.3, "refused": 1.1, "renew": 2.0, "status": 0.6, "release": 1.5}
DATABASE_MS = {"granted": 1.5, "refused": 0.6, "renew": 1.4, "status": 0.3, "release": 1.0}
LOG_BYTES = {"granted": 1060, "refused": 100, "renew": 630, "status": 0, "release": 600}
HTTP_MS = 0.7
# Of ten operations: what agents that hold a lease for a minute and renew it twice do, and those they keep out.
MIX = {"granted": 0.2, "refused": 0.2, "renew": 0.3, "status": 0.1, "release": 0.2}

TRIP_MS = 0.5
SYNC_MS = 1.0
LOG_MB_PER_SECOND = 200.0
LARGEST_PRIMARY_CORES = 64
SEQUENCE_PER_SECOND = 300_000


@dataclass(frozen=True)
class Need:
    """What a load needs, for the mix."""

    operations: int
    server_cores: float
    database_cores: float
    log_mb: float
    commits: float
    connections: float

    @property
    def primaries(self) -> int:
        """How many primaries share the keys: by cores, and by what one log takes."""
        by_cores = self.database_cores / (0.6 * LARGEST_PRIMARY_CORES)
        return max(1, -int(-max(by_cores, self.log_mb / LOG_MB_PER_SECOND) // 1))


def mixed(costs: dict[str, float] | dict[str, int]) -> float:
    """The cost of an average operation."""
    return sum(MIX[name] * costs[name] for name in MIX)


def need(operations: int) -> Need:
    """The arithmetic."""
    commits = operations * (1 - MIX["refused"] - MIX["status"])
    held_ms = 2 * TRIP_MS + SYNC_MS + mixed(DATABASE_MS)
    return Need(
        operations=operations,
        server_cores=operations * (mixed(SERVER_MS) + HTTP_MS) / 1000,
        database_cores=operations * mixed(DATABASE_MS) / 1000,
        log_mb=operations * mixed(LOG_BYTES) / 1e6,
        commits=commits,
        connections=operations * held_ms / 1000,
    )


def one_key_per_second() -> float:
    """Changes of one row: each holds its lock for a trip, a sync and the work."""
    return 1000 / (TRIP_MS + SYNC_MS + DATABASE_MS["granted"])


def main() -> None:
    """Print the table."""
    print("| operations/s | server cores | database cores | log MB/s | commits/s | connections in use | primaries |")
    print("| --- | --- | --- | --- | --- | --- | --- |")
    for power in range(3, 7):
        n = need(10**power)
        print(
            f"| 10^{power} | {n.server_cores:,.0f} | {n.database_cores:,.0f} | {n.log_mb:,.1f} | {n.commits:,.0f} "
            f"| {n.connections:,.0f} | {n.primaries} |"
        )
    print(f"one key: {one_key_per_second():.0f} changes a second")


if __name__ == "__main__":
    main()
