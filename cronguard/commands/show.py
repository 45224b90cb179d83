"""`show`: one run, by its id or the beginning of it, with the end of its output."""

from __future__ import annotations

from typing import Dict, List, NamedTuple

from cronguard.core.model import Invocation, RunRow
from cronguard.core.names import shown
from cronguard.core.records import whole_run_as_json
from cronguard.errors import NotFound
from cronguard.workspace import open_workspace

WITHIN_S = 10.0


class Shown(NamedTuple):
    run: RunRow


def show(prefix: str, invocation: Invocation) -> Shown:
    """The run with that id or unique beginning of one. NotFound when there is none, or several, which it lists."""
    if not prefix or not prefix.isascii():
        raise NotFound(f"no such run: {shown(prefix)}", "give an id, or the beginning of one")
    worker = open_workspace(invocation, None).worker()
    try:
        found = worker.call(lambda store: store.find_runs(prefix, WITHIN_S), WITHIN_S)
    finally:
        worker.close(1.0)
    return Shown(_only(prefix, found))


def as_json(result: Shown) -> Dict[str, object]:
    """The JSON of `show`, version 1: keys are only ever added."""
    return {"version": 1, "run": whole_run_as_json(result.run)}


def _only(prefix: str, found: List[RunRow]) -> RunRow:
    exact = [row for row in found if row.run_id == prefix]
    if not found:
        raise NotFound(f"no such run: {shown(prefix)}", "cronguard history JOB lists a job's runs")
    if len(exact) != 1 and len(found) > 1:
        listed = ", ".join(f"{row.run_id} ({row.job})" for row in found)
        raise NotFound(f"which run: {shown(prefix)}: several begin with it: {listed}", "give more of the id")
    return (exact or found)[0]
