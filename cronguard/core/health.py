"""What is wrong with a job, judged by its summary at an instant: the rules of `check`, one function a kind.

Silence counts as much as failure: what did not happen is found from the schedule, not from an event. Each kind has a
threshold of its own (FR-106) in the job's `Alerts`. A paused job has no findings. Pure: whoever calls brings the
present, the verdict on a running run's owner and, for `slots = "each"`, which keys are undone.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Callable, List, NamedTuple, Optional, Tuple

from cronguard.core import overdue
from cronguard.core.advice import check_first
from cronguard.core.durations import in_hours
from cronguard.core.instants import utc_text
from cronguard.core.model import Finding, JobRow, RunRow, Slot, Verdict
from cronguard.core.names import short_id
from cronguard.core.overdue import Overdue
from cronguard.core.schedule import Schedule
from cronguard.core.wording import in_words
from cronguard.core.zones import load_zone
from cronguard.errors import ScheduleError

NOBODY = ""  # the job of a finding that is about no job
_SLOW_AT_LEAST_S = 1.0  # below that, three times the usual means nothing


class Case(NamedTuple):
    """A job as a check sees it.

    `schedule`: None for a job without one; `verdict` on the owner of the running row, `lease_over`: its claim has
    ended; `undone`: for `slots = "each"`, the keys without a success. `tail` of the last run and the row of the last
    success are for advice, and may be left out.
    """

    row: JobRow
    now_utc: datetime
    schedule: Optional[Schedule] = None
    verdict: Optional[Verdict] = None
    lease_over: bool = False
    undone: Optional[Tuple[Tuple[str, Slot], ...]] = None
    tail: str = ""
    last_good: Optional[RunRow] = None


def findings_of(case: Case) -> List[Finding]:
    """Everything wrong with the job, the gravest kind first."""
    if overdue.is_paused(case.row, case.now_utc):
        return []
    rules: Tuple[Callable[[Case], Optional[Finding]], ...] = (_missed, _stuck, _lost, _failing, _slow, _skipping)
    return [finding for finding in (rule(case) for rule in rules) if finding is not None]


def nothing_to_check(now_utc: datetime) -> Finding:
    """An empty store is not good news: it may be the wrong one, or all jobs may have lost their cronguard."""
    summary = "nothing to check: no job has ever run with this store, and no config file names one with a schedule"
    hint = "is it the right store, and is cronguard still in the crontab? `cronguard config` shows which store is meant"
    return Finding(NOBODY, "nothing_to_check", "unknown", summary, now_utc, (hint,))


# --- nothing happened ---


def _missed(case: Case) -> Optional[Finding]:
    """No success in time: by slots, by age, or both where a schedule has a `max_age` besides."""
    owed = _overdue(case)
    if owed is not None:
        kind, text = _kind_of_silence(case.row), _missed_text(case, owed)
        return _finding(case, kind, "critical", text, owed.first.at_utc, owed.latest.at_utc)
    return _too_old(case)


def _overdue(case: Case) -> Optional[Overdue]:
    if case.schedule is None:
        return None
    if case.undone is not None:
        return overdue.overdue_each(case.row, case.undone, case.now_utc)
    return overdue.overdue_latest(case.row, case.schedule, case.now_utc)


def _kind_of_silence(row: JobRow) -> str:
    ever = row.last_run is not None or row.running is not None or row.last_success_utc is not None
    return "missed" if ever else "never_ran"


def _missed_text(case: Case, owed: Overdue) -> str:
    row, slot = case.row, owed.latest
    late = in_hours((case.now_utc - slot.at_utc).total_seconds())
    parts = [f"missed: {_both(slot)}, {late} late"]
    if owed.slots > 1:
        more = "more than " if owed.more else ""
        parts.append(f"{more}{owed.slots} slots missed since {_both(owed.first)}")
    if case.schedule is not None:
        coming = next(case.schedule.due_between(case.now_utc, case.now_utc + timedelta(days=366)), None)
        parts += [f"next: {_both(coming)}"] if coming else []
    expected = f"expected {in_words(row.facts.schedule)}, {row.facts.zone}" if row.facts.schedule else ""
    return f"{_silence(case)} ({expected}). {_last_success(row)}; {'; '.join(parts)}"


def _too_old(case: Case) -> Optional[Finding]:
    row, given_s = case.row, case.row.facts.alerts.max_age_s
    usual_s = overdue.interval_s(row)
    if given_s is not None:
        most_s, expected = given_s, f"expected at least every {in_hours(given_s)}"
    elif row.facts.schedule is None and usual_s is not None:
        most_s, expected = 2 * usual_s, f"usually every {in_hours(usual_s)}"
    else:
        return None
    since = max(overdue.expected_since(row), row.last_success_utc or row.first_seen_utc)
    due = since + timedelta(seconds=most_s)
    if case.now_utc < due:
        return None
    late = in_hours((case.now_utc - due).total_seconds())
    text = f"{_silence(case)} ({expected}). {_last_success(row)}; due by {_when(row, due)}, {late} late"
    return _finding(case, _kind_of_silence(row), "critical", text, due)


def _silence(case: Case) -> str:
    row = case.row
    silent = in_hours((case.now_utc - (row.last_success_utc or row.first_seen_utc)).total_seconds())
    if row.last_success_utc is not None:
        return f"{row.facts.job} has not succeeded for {silent}"
    verb = "run" if _kind_of_silence(row) == "never_ran" else "succeeded"
    return f"{row.facts.job} has never {verb} in the {silent} since it is known"


def _last_success(row: JobRow) -> str:
    return f"last success: {_when(row, row.last_success_utc)}" if row.last_success_utc else "last success: never"


# --- something goes on, or went wrong ---


def _stuck(case: Case) -> Optional[Finding]:
    """Running for longer than anybody allowed, or on record as running while nobody does."""
    run = case.row.running
    if run is None:
        return None
    since = f"since {_when(case.row, run.started_at_utc)} on {run.host}"
    if case.verdict is not None and case.verdict.state == "dead":
        left = f", which left processes behind: {_pids(case.verdict)}" if case.verdict.pids else ""
        text = f"{run.job} is recorded as running {since}, but its cronguard is gone{left}"
    elif case.lease_over:
        text = f"{run.job} is recorded as running {since}, but its claim has ended: that host died or lost the store"
    else:
        longest_s = overdue.longest_s(case.row)
        ran_s = (case.now_utc - run.started_at_utc).total_seconds()
        if longest_s is None or ran_s <= longest_s:
            return None
        text = f"{run.job} is running for {in_hours(ran_s)} {since}; it may take {in_hours(longest_s)}"
    return _finding(case, "stuck", "critical", text, run.started_at_utc)


def _lost(case: Case) -> Optional[Finding]:
    last = case.row.last_run
    if last is None or last.status != "lost":
        return None
    good_utc = case.row.last_success_utc
    if good_utc is not None and good_utc >= last.started_at_utc:
        return None
    when = _when(case.row, last.started_at_utc)
    text = f"run {short_id(last.run_id)} of {last.job}, started {when} on {last.host}, was lost: nobody saw it end"
    return _finding(case, "lost", "critical", text, last.started_at_utc)


def _failing(case: Case) -> Optional[Finding]:
    row = case.row
    if row.failures_in_row < row.facts.alerts.max_failures:
        return None
    text = f"{row.facts.job} failed {row.failures_in_row} times in a row. {_last_success(row)}"
    return _finding(case, "failing", "critical", text, row.last_success_utc or row.first_seen_utc)


def _slow(case: Case) -> Optional[Finding]:
    """The run under way, else the last success, took several times what is usual."""
    row, run = case.row, case.row.running
    if run is not None and _stuck(case) is None:
        took_s = (case.now_utc - run.started_at_utc).total_seconds()
        usual_s = overdue.usual_s(row, but_last=False)
        if usual_s is not None and _is_slow(row, took_s, usual_s):
            text = f"{run.job} is running for {in_hours(took_s)}, usually {in_hours(usual_s)}"
            return _finding(case, "slow", "warning", text, run.started_at_utc)
    usual_s = overdue.usual_s(row, but_last=True)
    if usual_s is None or not _is_slow(row, row.successes[-1].duration_s, usual_s):
        return None
    last = row.successes[-1]
    text = f"{row.facts.job} took {in_hours(last.duration_s)}, usually {in_hours(usual_s)}"
    return _finding(case, "slow", "warning", text, last.finished_at_utc)


def _is_slow(row: JobRow, took_s: float, usual_s: float) -> bool:
    return took_s > max(_SLOW_AT_LEAST_S, usual_s * row.facts.alerts.slow_factor)


def _skipping(case: Case) -> Optional[Finding]:
    row = case.row
    if row.skips_in_row < row.facts.alerts.max_skips or _gives_way_rightly(case):
        return None
    holder = f" by run {short_id(row.last_skip_holder)}" if row.last_skip_holder else ""
    text = f"{row.facts.job} was skipped {row.skips_in_row} times in a row: {row.last_skip_reason}{holder}"
    since = row.last_run.started_at_utc if row.last_run else row.first_seen_utc
    return _finding(case, "skipping", "warning", f"{text}. {_last_success(row)}", since)


def _gives_way_rightly(case: Case) -> bool:
    """Many hosts with one crontab skip at every slot, all but one; that is how it should be, if the one succeeds."""
    row, last = case.row, case.row.last_run
    if row.last_skip_reason == "already_done":
        return True
    if last is None or last.run_id != row.last_skip_holder:
        return False
    latest = case.schedule.latest_due(case.now_utc) if case.schedule else None
    at_work = latest is not None and overdue.is_under_way(row, latest, case.now_utc)
    return last.status == "success" or at_work


# --- words ---


def _finding(
    case: Case, kind: str, state: str, summary: str, since_utc: datetime, due_utc: Optional[datetime] = None
) -> Finding:
    """`due_utc`: when something should have been started, if that is not since when it is so."""
    advice = check_first(kind, case.row, case.verdict, case.tail, case.last_good, due_utc or since_utc)
    return Finding(case.row.facts.job, kind, state, summary, since_utc, advice)


def _both(slot: Slot) -> str:
    """Where the company reads it and where the logs do: `2026-01-20 02:00 (2026-01-20T01:00Z)`."""
    return f"{slot.local:%Y-%m-%d %H:%M} ({utc_text(slot.at_utc)})"


def _when(row: JobRow, at_utc: datetime) -> str:
    """Local time in the job's zone; on a host that lacks it, UTC."""
    try:
        return f"{at_utc.astimezone(load_zone(row.facts.zone)):%Y-%m-%d %H:%M}"
    except ScheduleError:
        return f"{at_utc:%Y-%m-%d %H:%MZ}"


def _pids(verdict: Verdict) -> str:
    return " ".join(str(pid) for pid in verdict.pids)
