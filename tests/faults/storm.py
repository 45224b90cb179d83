"""The random fault checker: `python -m tests.faults.storm --seconds 60 --seed N --store KIND [--double]`.

Supervisors of two jobs that share a lock are started again and again, on pretended hosts; they, their keepers and the
store are killed, stopped, restarted and cut off; then everything is left in peace, and what the commands witnessed is
held against what was promised (verdict.py). Single faults: nothing is done to the store while a supervisor is stopped,
nothing twice to one run. `--double`: anything, any time. `--without claim|deadline`: a control that must find faults.

The seed fixes what is done, not how processes interleave; a failure keeps its folder, with a log of all faults.
"""

from __future__ import annotations

import argparse
import random
import shutil
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import List, NamedTuple, Optional

from tests.faults import verdict
from tests.faults.ground import JOBS, Ground, Invocation, Work
from tests.faults.verdict import Ended, Trace
from tests.faults.weather import Weather

TICK_S = 0.005
AT_ONCE = 6
PEACE_S = 60.0  # what the last runs may take once nothing is done any more


class Report(NamedTuple):
    """What came of a storm."""

    complaints: List[str]
    summary: str


class Storm:
    """One storm: starts invocations, lets the weather strike them, waits for peace, judges."""

    def __init__(self, ground: Ground, weather: Weather, chance: random.Random) -> None:
        self._ground = ground
        self._weather = weather
        self._chance = chance
        self._ended: List[Ended] = []
        self._number = 0

    def run(self, seconds: float) -> Report:
        """Storm, then peace, then judgement."""
        weather = self._weather
        next_start = next_fault = 0.0
        while weather.now < seconds:
            if weather.now >= next_start and len(weather.active) < AT_ONCE:
                self._start()
                next_start = weather.now + self._chance.uniform(0.05, 0.5)
            if weather.now >= next_fault:
                weather.strike()
                next_fault = weather.now + self._chance.uniform(0.1, 1.2)
            self._tick()
        weather.clear_up()
        complaints = self._wait_for_peace() + self._last_runs()
        traces = verdict.read_traces(self._ground.folder / "traces")
        rows = self._ground.rows()
        complaints += verdict.complaints_about(traces, self._ended, rows)
        return Report(complaints, self._summary(traces, Counter(row["status"] for row in rows)))

    def _tick(self) -> None:
        self._weather.pass_on()
        for each in list(self._weather.active):
            if each.over:
                self._weather.active.remove(each)
                self._ended.append(each.ended())
        time.sleep(TICK_S)

    def _start(self) -> None:
        chance = self._chance
        seconds = chance.uniform(0.2, 0.9) if chance.random() < 0.6 else chance.uniform(0.2, 4.0)
        work = Work(seconds, chance.choice((0, 0, 0, 0, 7)), chance.choice(("", "", "t", self._weather.child_flags)))
        wait_s = chance.choice((0.0, chance.uniform(1.0, 12.0), chance.uniform(1.0, 12.0)))
        invocation = self._invoke(chance.choice(JOBS), chance.choice(self._ground.hosts), work, wait_s)
        # A long outage may keep those who start in it as well from their store.
        if self._weather.store_down:
            invocation.struck.add("outage")
        self._weather.active.append(invocation)

    def _invoke(self, job: str, host: str, work: Work, wait_s: float) -> Invocation:
        self._number += 1
        invocation = self._ground.start(f"{self._number:05d}", job, host, work, wait_s)
        self._weather.note(f"{invocation.name} {job} on {host}, pid {invocation.pid}, {work}, waits {wait_s:.1f} s")
        return invocation

    def _wait_for_peace(self) -> List[str]:
        """Everybody comes to an end, and what was started with them."""
        deadline = self._weather.now + PEACE_S
        while self._weather.active and self._weather.now < deadline:
            self._tick()
        complaints = [f"invocation {each.name} never ended" for each in self._weather.active]
        left = self._ground.left()
        while left and self._weather.now < deadline:
            time.sleep(0.05)
            left = self._ground.left()
        return complaints + [f"process {pid} is left" for pid in left]

    def _last_runs(self) -> List[str]:
        """One more run of each job on each host, where its own dead are known and its reports are delivered."""
        complaints = []
        deadline = self._weather.now + PEACE_S
        for host in self._ground.hosts:
            for job in JOBS:
                self._last_run(job, host, 0.0)
            while self._ground.spooled(host) and self._weather.now < deadline:
                self._last_run(JOBS[0], host, 0.0)
            complaints += [f"{path} was not delivered" for path in self._ground.spooled(host)]
        if any(row["status"] == "running" for row in self._ground.rows()):
            for job in JOBS:
                self._last_run(job, self._ground.hosts[0], PEACE_S)
        return complaints

    def _last_run(self, job: str, host: str, wait_s: float) -> None:
        ended = self._invoke(job, host, Work(0.0), wait_s).ended()
        self._ended.append(ended)
        self._weather.note(f"{ended.name} left with {ended.exit_code}")

    def _summary(self, traces: List[Trace], statuses: Counter[str]) -> str:
        gaps = sorted(later.began - earlier.last for earlier, later in zip(traces, traces[1:]))
        faults = ", ".join(f"{name} {count}" for name, count in sorted(self._weather.counted.items()))
        left_with = Counter(each.exit_code for each in self._ended)
        codes = ", ".join(f"{code}: {count}" for code, count in sorted(left_with.items()))
        rows = ", ".join(f"{name} {count}" for name, count in sorted(statuses.items()))
        between = f"{gaps[len(gaps) // 2]:.3f} s, at most {gaps[-1]:.1f} s" if gaps else "-"
        return (
            f"{len(self._ended)} invocations, {len(traces)} commands begun,"
            f" {sum(trace.code is not None for trace in traces)} ended\n"
            f"exit codes {codes}\nrows {rows}\nfaults {faults}\nbetween two commands: median {between}"
        )


def storm(
    folder: Path,
    kind: str,
    seconds: float,
    seed: int,
    double: bool = False,
    without: Optional[str] = None,
    loud: bool = False,
) -> Report:
    """The whole of it, in an empty folder of its own."""
    chance = random.Random(seed)
    ground = Ground(kind, folder, without)
    try:
        with open(folder / "log", "w", encoding="utf-8") as log:
            weather = Weather(ground, chance, double, [log, sys.stderr] if loud else [log])
            report = Storm(ground, weather, chance).run(seconds)
    finally:
        ground.close()
    return report._replace(summary=f"seed {seed}\n{report.summary}")


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.faults.storm")
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 30))
    parser.add_argument("--store", choices=("sqlite", "postgres", "pgbouncer"), default="sqlite")
    parser.add_argument("--double", action="store_true")
    parser.add_argument("--without", choices=("claim", "deadline"))
    parser.add_argument("-v", action="store_true", dest="loud")
    given = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="cg-storm-"))
    report = storm(folder, given.store, given.seconds, given.seed, given.double, given.without, given.loud)
    print(report.summary)
    for complaint in report.complaints:
        print(complaint)
    print(f"{len(report.complaints)} complaints")
    if report.complaints:
        print(f"all is kept in {folder}")
        return 1
    shutil.rmtree(folder)
    return 0


if __name__ == "__main__":
    sys.exit(main())
