"""A nightly job on many machines: it runs on one of them, and once for each day.

    FENCEPOST_NAMESPACE=ns_… python client/examples/cron_job.py 2026-09-05

The same from a shell: fencepost run report:2026-09-05 --complete-with-stdout --skip-if-completed -- ./report
"""

import os
import sys

import fencepost


def make_report(day: str, lease: fencepost.Lease) -> dict[str, int]:
    """The job. Between its steps it asks whether the lease is still certain."""
    rows = 0
    for part in range(3):
        lease.check()
        rows += len(day) * (part + 1)
    return {"rows": rows}


def main(day: str) -> int:
    """Do the work of a day, unless it was done or is being done elsewhere."""
    with fencepost.Client() as fp:
        try:
            with fp.lease(f"report:{day}", namespace=os.environ["FENCEPOST_NAMESPACE"], ttl=30, wait=5) as lease:
                report = make_report(day, lease)
                lease.complete(report)
        except fencepost.NotGranted as refusal:
            if isinstance(refusal.outcome, fencepost.Completed):
                print(f"done before: {refusal.outcome.result}")
                return 0
            print("another machine is at it")
            return 75
    print(f"done: {report}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
