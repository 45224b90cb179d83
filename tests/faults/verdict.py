"""What a storm's witnesses prove: reads the traces that commands left, and holds cronguard's promises against them.

Knows nothing of faults but whether an invocation was meant by one. Trusts the rows in nothing: what ran, when and under
which fence comes from the commands themselves.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Dict, FrozenSet, List, NamedTuple, Optional, Sequence

KILLED = -9
NOT_STARTED = (75, 125)
# Codes of `run`: the command's own, busy, our fault, a signal's, the keeper killed; or ended by TERM as anybody is,
# before it minded signals or after it did.
BY_TERM = -15
POSSIBLE = (0, 7, 75, 125, 137, 143, BY_TERM)
UNTOUCHED = (0, 7, 75)
# A command that comes to its end in spite of these has its end told.
HARMLESS = frozenset(("stop",))
_STATUSES = {0: ("success",), 7: ("failed",), BY_TERM: ("success", "failed", "aborted")}
BAD_WORDS = ("Traceback", "database is locked", "OperationalError", "this is a bug", "no row")


class Trace(NamedTuple):
    """What a command wrote. Times are seconds since boot; `last` is the last sign of life of any of its processes."""

    name: str
    keeper_pid: int
    run_id: str
    fence: int
    began: float
    last: float
    code: Optional[int]
    clashed: bool


class Ended(NamedTuple):
    """An invocation of cronguard, by its command's trace, and the kinds of faults that were meant for it."""

    name: str
    job: str
    exit_code: int
    struck: FrozenSet[str]
    said: str


def read_trace(path: Path) -> Optional[Trace]:
    """None when the command never began."""
    try:
        lines = path.read_text().splitlines()
    except FileNotFoundError:
        return None
    events = [line.split() for line in lines]
    if not events or events[0][0] != "begin" or len(events[0]) != 5:
        return None
    _, began, keeper_pid, run_id, fence = events[0]
    whole = [event for event in events if len(event) > 1]
    codes = [int(event[2]) for event in whole if event[0] == "end" and len(event) == 3]
    return Trace(
        name=path.name,
        keeper_pid=int(keeper_pid),
        run_id=run_id,
        fence=int(fence),
        began=float(began),
        last=max(float(event[1]) for event in whole),
        code=codes[0] if codes else None,
        clashed=any(event[0] == "clash" for event in events),
    )


def read_traces(folder: Path) -> List[Trace]:
    """All of them, in the order in which they began."""
    found = [read_trace(path) for path in folder.iterdir()]
    return sorted((trace for trace in found if trace is not None), key=lambda trace: trace.began)


def met(traces: Sequence[Trace]) -> List[str]:
    """P1: two commands that were there at the same time, by their beats and by the lock that they share."""
    complaints = [f"run {trace.name} met somebody" for trace in traces if trace.clashed]
    latest: Optional[Trace] = None
    for trace in traces:
        if latest is not None and trace.began <= latest.last:
            both_s = min(trace.last, latest.last) - trace.began
            complaints.append(f"runs {latest.name} and {trace.name} overlapped for {both_s:.3f} s")
        if latest is None or trace.last > latest.last:
            latest = trace
    return complaints


def disorder(traces: Sequence[Trace]) -> List[str]:
    """Fences increase in the order of begin, so none begins twice."""
    return [
        f"run {later.name} began with fence {later.fence} after run {earlier.name} with fence {earlier.fence}"
        for earlier, later in zip(traces, traces[1:])
        if later.fence <= earlier.fence
    ]


def lost_rows(traces: Sequence[Trace], rows: Dict[str, Dict[str, Any]]) -> List[str]:
    """P3: a row for all that began, none `running` for ever, no success without proof."""
    complaints = [f"run {trace.name} began and has no row" for trace in traces if trace.run_id not in rows]
    proven = {trace.run_id for trace in traces if trace.code == 0}
    for run_id, row in rows.items():
        if row["status"] == "running":
            complaints.append(f"row {run_id} is running for ever")
        if "success" in (row["status"], row["late_status"]) and run_id not in proven:
            complaints.append(f"row {run_id} is a success without an end mark")
    for trace in traces:
        row = rows.get(trace.run_id)
        if row is not None and row["fence"] != trace.fence:
            complaints.append(f"run {trace.name} had fence {trace.fence}, its row says {row['fence']}")
    return complaints


def misjudged(ended: Sequence[Ended], traces: Sequence[Trace], rows: Dict[str, Dict[str, Any]]) -> List[str]:
    """Whether what each supervisor that lived said agrees with what its command and its row say."""
    by_name = {trace.name: trace for trace in traces}
    complaints = []
    for end in ended:
        complaints += [f"invocation {end.name} said {word!r}: {end.said}" for word in BAD_WORDS if word in end.said]
        if end.exit_code == KILLED:
            if not end.struck:
                complaints.append(f"invocation {end.name} was killed by nobody")
            continue
        if end.exit_code not in (POSSIBLE if end.struck else UNTOUCHED):
            complaints.append(f"invocation {end.name} left with {end.exit_code}: {end.said}")
        trace = by_name.get(end.name)
        complaints += _without_command(end) if trace is None else _of_command(end, trace, rows.get(trace.run_id))
    return complaints


def _without_command(end: Ended) -> List[str]:
    return [f"invocation {end.name} left with {end.exit_code} and ran nothing"] if end.exit_code in (0, 7) else []


def _of_command(end: Ended, trace: Trace, row: Optional[Dict[str, Any]]) -> List[str]:
    complaints = []
    if end.exit_code in NOT_STARTED:
        complaints.append(f"invocation {end.name} left with {end.exit_code} although its command was started")
    if end.exit_code != trace.code and (end.exit_code in (0, 7) or (trace.code is not None and end.struck <= HARMLESS)):
        complaints.append(f"invocation {end.name} left with {end.exit_code}, its command with {trace.code}")
    expected = _STATUSES.get(end.exit_code, ("aborted",))
    if row is not None and row["status"] not in expected and row["late_status"] not in expected:
        told = (row["status"], row["late_status"])
        complaints.append(f"invocation {end.name} left with {end.exit_code}, its row is {told}: {end.said}")
    if row is not None and not end.struck and row["status"] == "lost":
        complaints.append(f"invocation {end.name} is lost although nothing was done to it")
    return complaints


def complaints_about(traces: Sequence[Trace], ended: Sequence[Ended], rows: Sequence[Dict[str, Any]]) -> List[str]:
    """Everything that is not as promised; empty is good."""
    ran = {row["run_id"]: row for row in rows if row["status"] != "skipped"}
    return [*met(traces), *disorder(traces), *lost_rows(traces, ran), *misjudged(ended, traces, ran)]
