"""`python -m tests.faults`: run schedules and judge them, or judge a history once more.

    python -m tests.faults                                     every nemesis on both engines, once
    python -m tests.faults --rounds 10 --into FOLDER           ten seeds of each but what FOLDER has already
    python -m tests.faults --engine sqlite --nemesis kill --seed 7 --seconds 60
    python -m tests.faults --judge FOLDER/sqlite-kill-7.history

With `--into`, each run leaves a JSON report, and its history if a rule was broken. Ends with 1 then.
"""

import argparse
import json
import sys
import time
from collections import Counter
from pathlib import Path

from tests.faults.history import History
from tests.faults.nemesis import NEMESES, ONLY_POSTGRESQL
from tests.faults.run import judged, run
from tests.faults.schedule import Schedule
from tests.real.server import ENGINES


def main(arguments: list[str]) -> int:
    """Do what is asked; the exit code."""
    parser = argparse.ArgumentParser(prog="python -m tests.faults", description=__doc__.splitlines()[0])
    parser.add_argument("--engine", choices=ENGINES, action="append")
    parser.add_argument("--nemesis", choices=sorted(NEMESES), action="append")
    parser.add_argument("--seed", type=int, default=1, help="the first seed")
    parser.add_argument("--rounds", type=int, default=1, help="how many seeds")
    parser.add_argument("--seconds", type=float, default=6.0, help="how long the callers work in each run")
    parser.add_argument("--minutes", type=float, help="begin no run after so many minutes")
    parser.add_argument("--into", type=Path, help="a folder for reports; what is in it already is not run again")
    parser.add_argument("--judge", type=Path, help="judge this history and run nothing")
    given = parser.parse_args(arguments)
    if given.judge is not None:
        with given.judge.open(encoding="utf-8") as lines:
            report = judged(Schedule("", given.judge.stem, 0), History.load(lines), Counter(), 0.0)
        print("\n".join(str(fault) for fault in report.faults) or "no rule was broken")
        return bool(report.faults)
    schedules = [
        Schedule(engine, nemesis, seed, given.seconds)
        for seed in range(given.seed, given.seed + given.rounds)
        for nemesis in given.nemesis or NEMESES
        for engine in given.engine or ENGINES
        if engine == "postgresql" or nemesis not in ONLY_POSTGRESQL
    ]
    return run_all(schedules, given.into, None if given.minutes is None else given.minutes * 60)


def run_all(schedules: list[Schedule], into: Path | None, most_seconds: float | None) -> int:
    """Run what has no report yet, and say what there is in all."""
    began, totals = time.monotonic(), Counter[str]()
    if into is not None:
        into.mkdir(parents=True, exist_ok=True)
    for schedule in schedules:
        if most_seconds is not None and time.monotonic() - began > most_seconds:
            break
        totals.update(_figures(schedule, into))
    print(", ".join(f"{number} {name}" for name, number in sorted(totals.items()) if "status" not in name))
    return bool(totals["violations"])


def _figures(schedule: Schedule, into: Path | None) -> Counter[str]:
    """The figures of a run, from its report if there is one."""
    file = None if into is None else into / f"{schedule.name}.json"
    if file is not None and file.exists():
        told = json.loads(file.read_text(encoding="utf-8"))
    else:
        history = None if into is None else into / f"{schedule.name}.history"
        report = run(schedule, history)
        print(report.line(), flush=True)
        told = report.as_json()
        if file is not None and history is not None:
            file.write_text(json.dumps(told, indent=1) + "\n", encoding="utf-8")
            if not report.faults:
                history.unlink()
    return Counter(
        runs=1, operations=told["operations"], unknown=told["unknown"], violations=told["violations"], **told["counts"]
    )


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
