"""What an invocation would do and why (`--dry-run`); touches nothing, not even an empty database."""

from __future__ import annotations

from typing import NamedTuple, Tuple

from cronguard.core import exitcodes, policy
from cronguard.core.durations import format_duration
from cronguard.core.model import JobSpec, Judge, Sight
from cronguard.core.names import short_id
from cronguard.errors import StoreDown
from cronguard.pipeline.passage import Place
from cronguard.store.worker import StoreWorker

LOOK_S = 10.0


class Preview(NamedTuple):
    """`exit_code`: 0 would run or is done, 75 would skip or wait, 125 would refuse."""

    exit_code: int
    lines: Tuple[str, ...]


def preview(place: Place, question: policy.Question, store: StoreWorker, judge: Judge, why: str = "") -> Preview:
    """Look, decide, tell. `why`: the reason for that place, if there was a choice. StoreDown when nobody can tell."""
    spec = question.spec
    key = place.run_key or ""
    try:
        sight = store.call(lambda opened: opened.look(spec.job, spec.lock, key, judge, LOOK_S), LOOK_S)
    except StoreDown as error:
        raise StoreDown(f"cannot tell what would happen: {error.message}", error.hint) from error
    code, verdict = _verdict(spec, policy.decide(question, sight))
    return Preview(code, (*_place_lines(spec, place, sight, why), f"would {verdict}"))


def _place_lines(spec: JobSpec, place: Place, sight: Sight, why: str) -> Tuple[str, ...]:
    slot = "none (no schedule)"
    if place.slot is not None:
        slot = f"{place.slot.label} = {place.slot.at_utc.strftime('%Y-%m-%dT%H:%M:%SZ')}"
    holder = "nobody"
    if sight.holder is not None:
        found = sight.holder
        holder = f"run {short_id(found.run_id)} of {found.job}, {found.host} pid {found.pid}"
    return (
        f"job    {spec.job}",
        f"slot   {slot}" + (f" ({why})" if why else ""),
        f"key    {place.run_key or 'none: every run is its own'}",
        f"lock   {spec.lock}",
        f"holder {holder}",
    )


def _verdict(spec: JobSpec, decision: policy.Decision) -> Tuple[int, str]:
    if isinstance(decision, policy.Go):
        return exitcodes.DONE, "run"
    if isinstance(decision, policy.Wait):
        holder = decision.holder
        limit = format_duration(spec.wait_s)
        return exitcodes.NOT_STARTED, f"wait up to {limit} for run {short_id(holder.run_id)} on {holder.host}"
    if isinstance(decision, policy.Refuse):
        return exitcodes.OUR_FAULT, f"fail: {decision.detail}"
    code = exitcodes.for_skip(decision.reason, exitcodes.NOT_STARTED)
    return code, f"skip: {decision.reason} ({decision.detail})"
