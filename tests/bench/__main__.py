"""`python -m tests.bench`: what a guarded run costs, beside what people would use instead.

Absolute times drift by a tenth and more from minute to minute, ratios do not: all contenders run in every round, in
random order, and the tables show medians of what was paired within a round. Not a test: nothing here passes or fails.
"""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
from contextlib import ExitStack
from pathlib import Path
from statistics import median
from typing import Callable, Dict, List, Optional, Sequence, TypeVar

from tests.bench import draining, looking, measures
from tests.bench.contenders import BARE, FLOOR, Contender, lineup
from tests.support import postgres

T = TypeVar("T")
WARM_UPS = 2
# A gigabyte and two hundred processes tell in few rounds, and the machine may have other work.
HEAVY_ROUNDS = 3


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.bench", description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--rounds", type=int, default=20, help="counted rounds of short runs (20)")
    parser.add_argument("--dsn", help="PostgreSQL to use; without it the embedded one, if it is installed")
    parser.add_argument("--short", action="store_true", help="leave out the gigabyte and the 200 at once")
    parser.add_argument("--only", choices=["looking", "draining"], help="only that table, which the others leave out")
    options = parser.parse_args()
    with ExitStack() as stack:
        work = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="cg-bench-")))
        if options.only == "looking":
            _looking(work, options.dsn or _own_server(stack))
            return
        if options.only == "draining":
            _draining(work, options.dsn or _own_server(stack))
            return
        contenders = lineup(work, options.dsn or _own_server(stack), stack)
        _short_runs(contenders, work, options.rounds)
        _memory(contenders, work)
        if not options.short:
            _output(contenders)
            _herds(contenders)


def _draining(work: Path, dsn: Optional[str]) -> None:
    rates = draining.measured(work, dsn)
    rows = [[rate.store, rate.what, f"{rate.per_s:.0f}", f"{rate.times:.2f}"] for rate in rates]
    title = f"{draining.WORKERS} workers on {draining.ITEMS} items ({draining.COMMANDS} for commands)"
    _table(title, ["", "", "items/s", "x bare"], rows)


def _own_server(stack: ExitStack) -> Optional[str]:
    if postgres.server_binaries() is None:
        return None
    server = postgres.Server()
    stack.callback(server.remove)
    server.start()
    return server.dsn


def _rounds(contenders: Sequence[Contender], count: int, measure: Callable[[Contender], T]) -> Dict[str, List[T]]:
    """Every contender once a round, in random order; as many results for each."""
    results: Dict[str, List[T]] = {contender.name: [] for contender in contenders}
    for _ in range(count):
        for contender in random.sample(list(contenders), len(contenders)):
            results[contender.name].append(measure(contender))
    return results


def _short_runs(contenders: Sequence[Contender], work: Path, rounds: int) -> None:
    _rounds(contenders, WARM_UPS, lambda contender: measures.timing(contender, work))
    results = _rounds(contenders, rounds, lambda contender: measures.timing(contender, work))
    rows = []
    for contender in contenders:
        triples = list(zip(results[contender.name], results[BARE], results[FLOOR]))
        rows.append([
            contender.name,
            f"{1e3 * median(own.wall_s - bare.wall_s for own, bare, _ in triples):.1f}",
            f"{1e3 * median(own.lag_s - bare.lag_s for own, bare, _ in triples):.1f}",
            f"{1e3 * median(own.cpu_s - bare.cpu_s for own, bare, _ in triples):.1f}",
            f"{median(own.wall_s / floor.wall_s for own, _, floor in triples):.2f}",
            f"{median(own.cpu_s / floor.cpu_s for own, _, floor in triples):.2f}",
            contender.does,
        ])
    title = f"A short command, {rounds} rounds: more than the command alone, and as a multiple of a Python start"
    _table(title, ["", "+total ms", "+start lag ms", "+CPU ms", "x total", "x CPU", "what it does"], rows)


def _memory(contenders: Sequence[Contender], work: Path) -> None:
    wrappers = [contender for contender in contenders if contender.name not in (BARE, FLOOR)]
    results = _rounds(wrappers, HEAVY_ROUNDS, lambda contender: measures.supervising_bytes(contender, work))
    rows = [[name, f"{median(sizes) / 2**20:.1f}"] for name, sizes in results.items()]
    _table("Memory while supervising, all its processes (PSS)", ["", "MiB"], rows)


def _output(contenders: Sequence[Contender]) -> None:
    results = _rounds(contenders, HEAVY_ROUNDS, measures.gigabyte_s)
    rows = [
        [name, f"{median(times):.2f}", f"{median(own / bare for own, bare in zip(times, results[BARE])):.1f}"]
        for name, times in results.items()
        if name != FLOOR
    ]
    _table("1 GB of output to /dev/null", ["", "s", "x alone"], rows)


def _herds(contenders: Sequence[Contender]) -> None:
    rows = []
    floor = None
    for contender in contenders:
        herd = measures.herd(contender)
        floor = herd if contender.name == FLOOR else floor
        times = f"{herd.cpu_s / floor.cpu_s:.2f}" if floor else ""
        each = f"{1e3 * herd.cpu_s / measures.HERD:.1f}"
        rows.append([contender.name, f"{herd.wall_s:.2f}", each, times, str(herd.failed)])
    _table(f"{measures.HERD} at once", ["", "s", "CPU ms each", "x CPU", "failed"], rows)


def _looking(work: Path, dsn: Optional[str]) -> None:
    rows = [
        [
            f"{each.command} --json, {each.store}", f"{each.few.wall_s:.2f}", f"{each.many.wall_s:.2f}",
            f"{each.many.wall_s / each.few.wall_s:.2f}", f"{each.many.cpu_s / each.few.cpu_s:.2f}",
        ]
        for each in looking.looking(work, dsn)
    ]
    few, many = (f"s, {looking.JOBS * runs:,} runs" for runs in (looking.FEW, looking.MANY))
    title = f"Looking at {looking.JOBS:,} jobs; wanted: a ratio of at most {looking.WANTED}"
    _table(title, ["", few, many, "ratio", "CPU ratio"], rows)


def _table(title: str, head: List[str], rows: List[List[str]]) -> None:
    widths = [max(len(row[column]) for row in [head, *rows]) for column in range(len(head))]
    print(f"\n{title}")
    for row in [head, *rows]:
        name, *cells = (f"{cell:>{width}}" for cell, width in zip(row, widths))
        print("  ".join([f"{name.lstrip():<{widths[0]}}", *cells]).rstrip())
    sys.stdout.flush()


if __name__ == "__main__":
    main()
