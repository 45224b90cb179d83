"""Limits against schedules and against what was seen: can a run be in the way of the next one, or of itself."""

from __future__ import annotations

from typing import List, Optional, Sequence

from cronguard.core.checkup.facts import Plan
from cronguard.core.checkup.item import OK, SKIPPED, WARNING, Item, counted
from cronguard.core.durations import format_duration

# A run that took so much of its limit will be cut off on a slow day.
NEAR = 0.8


def timeout_items(plans: Sequence[Plan]) -> List[Item]:
    """The hard limit: there should be one, below the distance of two slots and above what the job really takes."""
    findings = [item for plan in plans for item in _timeouts_of(plan)]
    return findings or [_all_well("timeout", plans, "below the distance of slots and above what runs took")]


def _timeouts_of(plan: Plan) -> List[Item]:
    limit_s = _timeout_s(plan)
    if limit_s is None:
        if plan.spec is None and plan.row is None:
            return []
        text = f"{plan.job} has no timeout: a run that hangs holds its lock for ever"
        return [Item("timeout", WARNING, text, "give it --timeout", plan.job)]
    items = []
    whole_s = _whole_s(plan, limit_s)
    if plan.gap_s is not None and whole_s >= plan.gap_s:
        usual = " (the default)" if plan.spec is not None and not plan.spec.timeout_given else ""
        text = (f"{plan.job} may run for {format_duration(whole_s)}{usual}, but is due again after"
                f" {format_duration(plan.gap_s)}")
        hint = f"give it --timeout below {format_duration(plan.gap_s)}, grace and retries included"
        items.append(Item("timeout", WARNING, text, hint, plan.job))
    longest_s = _longest_s(plan)
    if longest_s is not None and longest_s >= limit_s * NEAR:
        text = f"{plan.job} took {format_duration(longest_s)} lately, its timeout is {format_duration(limit_s)}"
        items.append(Item("timeout", WARNING, text, "raise --timeout, or make the job quicker", plan.job))
    return items


def lease_items(plans: Sequence[Plan], leased: bool) -> List[Item]:
    """A lease is renewed while its owner lives, so it may be shorter than a run; a long one only helps the dead."""
    if not leased:
        return [Item("lease", OK, "a file store needs none: the owner's life decides")]
    known = [plan for plan in plans if plan.spec is not None]
    findings = [item for plan in known for item in _leases_of(plan)]
    if findings or not known:
        return findings or [Item("lease", SKIPPED, "no job's settings are known on this host")]
    longest = max((seconds for seconds in map(_longest_s, known) if seconds is not None), default=None)
    seen = f"; the longest run seen took {format_duration(longest)}" if longest is not None else ""
    return [Item("lease", OK, f"{counted(len(known), 'job')}: renewed six times in its time, however long a run{seen}")]


def _leases_of(plan: Plan) -> List[Item]:
    assert plan.spec is not None
    lease_s = plan.spec.lease_s
    if plan.gap_s is None or lease_s < plan.gap_s:
        return []
    text = (f"{plan.job} is due every {format_duration(plan.gap_s)}, but a host that dies holds it for"
            f" {format_duration(lease_s)}")
    return [Item("lease", WARNING, text, "give it a --lease below that (15s at least), or accept lost slots", plan.job)]


def _timeout_s(plan: Plan) -> Optional[float]:
    if plan.spec is not None:
        return plan.spec.timeout_s
    return plan.row.facts.timeout_s if plan.row is not None else None


def _whole_s(plan: Plan, limit_s: float) -> float:
    """All attempts, graces and pauses, as far as they are known."""
    if plan.spec is not None:
        pauses_s = plan.spec.retry_delay_s * (2.0**plan.spec.retries - 1)
        return (plan.spec.retries + 1) * (limit_s + plan.spec.grace_s) + pauses_s
    known = plan.row.facts.limit_s if plan.row is not None else None
    return known or limit_s


def _longest_s(plan: Plan) -> Optional[float]:
    if plan.row is None:
        return None
    return max((success.duration_s for success in plan.row.successes), default=None)


def _all_well(name: str, plans: Sequence[Plan], what: str) -> Item:
    if not plans:
        return Item(name, SKIPPED, "no job yet")
    return Item(name, OK, f"{counted(len(plans), 'job')}: {what}")
