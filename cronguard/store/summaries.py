"""The columns of `jobs` that spare status and check the history: one statement an event, in its transaction.

`failures_in_row` is the streak that alerts go by (FR-106): runs by hand neither lengthen nor end it, skips do not
either, and a slot that failed counts once however often it is tried again. A success by schedule, retry or backfill
ends it.
"""

from __future__ import annotations

import json
from datetime import datetime, timedelta, timezone
from functools import lru_cache
from typing import List, Optional, Sequence, Tuple

from cronguard.core.model import Alerts, JobFacts, JobRow, RunRow, ScheduleText, Skip, Success
from cronguard.store import rows
from cronguard.store.dialect import Statement, Values
from cronguard.store.schema import VERSION

_FACTS = (
    "schedule_kind", "schedule_text", "zone", "key", "timeout_s", "grace_s", "max_late_s", "look_back_s", "redo",
    "alerts", "limit_s",
)
_NEW = ("job", *_FACTS, "first_seen_at", "since_at", "defined_at")  # what is known of a job at its first sight
_TIMES = ("schedule_kind", "schedule_text", "zone", "key")  # when it is due, and what once means
_STATE = (
    "first_seen_at", "since_at", "paused_since_at", "paused_until_at", "paused_reason", "last_success_at",
    "last_success_key", "last_success_slot_at", "successes", "failures_in_row", "skips_in_row", "last_skip_reason",
    "last_skip_holder", "pruned_before_at", "strip", "runs_total", "failures_total", "skips_total", "last_claim_s",
    "defined_at", "settled_from_at", "settled_until_at",
)
_SINCE_VERSION_2 = ("defined_at", "settled_from_at", "settled_until_at")
_LETTERS = {"success": "s", "failed": "f", "timeout": "t", "aborted": "a", "lost": "l"}
_SUCCESSES_KEPT = 21
_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)
_MICROSECOND = timedelta(microseconds=1)

# Neither means trouble, however often it is said: the work is done, or a person wants it so.
_HARMLESS_SKIPS = ("already_done", "paused")


# --- what is known of a job ---


def remembered(facts: JobFacts, seen_at: datetime) -> Statement:
    """The job as it is now defined; its first sight is kept. With another schedule or zone it is looked at anew from
    now on: slots of before are not missed by it. A start without a schedule (by a script, say) does not take away the
    one that the crontab line has: a job of which nothing is expected any more would be silent for ever."""
    kept = "excluded.schedule_kind IS NULL AND jobs.schedule_kind IS NOT NULL"
    updates = ", ".join(
        f"{name} = CASE WHEN {kept} THEN jobs.{name} ELSE excluded.{name} END"
        if name in _TIMES
        else f"{name} = excluded.{name}"
        for name in _FACTS
    )
    since = ", ".join(
        f"{column} = CASE WHEN NOT ({kept}) AND ({_changed(names)}) THEN excluded.{column} ELSE jobs.{column} END"
        for column, names in (("since_at", _TIMES[:3]), ("defined_at", _TIMES))
    )
    return Statement(
        f"INSERT INTO jobs ({', '.join(_NEW)}) VALUES ({', '.join('?' * len(_NEW))})"
        f" ON CONFLICT (job) DO UPDATE SET {updates}, {since}",
        _facts_values(facts, seen_at),
    )


def _changed(names: Sequence[str]) -> str:
    return " OR ".join(f"coalesce(jobs.{name}, '') <> coalesce(excluded.{name}, '')" for name in names)


def introduced(facts: JobFacts, seen_at: datetime) -> Statement:
    """The same for what says little of how the job is defined now: a job that is known stays as it is."""
    return Statement(
        f"INSERT INTO jobs ({', '.join(_NEW)}) VALUES ({', '.join('?' * len(_NEW))}) ON CONFLICT (job) DO NOTHING",
        _facts_values(facts, seen_at),
    )


def seen(facts: JobFacts, seen_at: datetime, trigger: str) -> Statement:
    """After an invocation. What `cronguard run backup -- ...` by hand leaves away, the schedule above all, is still so;
    nothing of it is forgotten. A backfill is by hand as well."""
    return introduced(facts, seen_at) if trigger in ("manual", "backfill") else remembered(facts, seen_at)


def _facts_values(facts: JobFacts, seen_at: datetime) -> Values:
    kind, text = facts.schedule if facts.schedule else (None, None)
    return (
        facts.job, kind, text, facts.zone, facts.key, facts.timeout_s, facts.grace_s, facts.max_late_s,
        facts.look_back_s, facts.redo, json.dumps(facts.alerts._asdict()), facts.limit_s, seen_at, seen_at, seen_at,
    )


def settled(job: str, from_at: datetime, until_at: datetime) -> Statement:
    """Nothing is left to do for `--catch-up oldest` in [from, until)."""
    return Statement(
        "UPDATE jobs SET settled_from_at = ?, settled_until_at = ? WHERE job = ?", (from_at, until_at, job)
    )


# --- what happened to it ---


def claimed(job: str, run_id: str) -> Statement:
    """A run began: the streak of skips is over."""
    return Statement(
        "UPDATE jobs SET last_run_id = ?, running_run_id = ?, skips_in_row = 0, runs_total = runs_total + 1"
        " WHERE job = ?",
        (run_id, run_id, job),
    )


def claim_took(job: str, claim_s: float) -> Statement:
    """How long the latest claim took to get: what a crowded or distant store costs every start."""
    return Statement("UPDATE jobs SET last_claim_s = ? WHERE job = ?", (claim_s, job))


def succeeded(row: RunRow, successes: str) -> List[Statement]:
    """A run ended well; `successes` is the column's value before."""
    return [
        Statement(
            f"UPDATE jobs SET {_streak_ended(row)} strip = substr(strip || 's', 2),"
            " running_run_id = CASE WHEN running_run_id = ? THEN NULL ELSE running_run_id END WHERE job = ?",
            (row.run_id, row.job),
        ),
        _kept(row, successes),
    ]


def unsuccessful(row: RunRow) -> Statement:
    """A run ended in another way, or was found dead."""
    return Statement(
        "UPDATE jobs SET failures_in_row = CASE WHEN ? = 'manual' OR (failures_in_row > 0 AND EXISTS"
        " (SELECT 1 FROM runs WHERE job = ? AND run_key = ? AND claim_no < ? AND trigger <> 'manual'))"
        " THEN failures_in_row ELSE failures_in_row + 1 END, failures_total = failures_total + 1,"
        " strip = substr(strip || ?, 2),"
        " running_run_id = CASE WHEN running_run_id = ? THEN NULL ELSE running_run_id END WHERE job = ?",
        (row.trigger, row.job, row.run_key, row.claim_no, _LETTERS[row.status], row.run_id, row.job),
    )


def found_successful(row: RunRow, successes: str) -> List[Statement]:
    """A run that had been closed as lost turned out a success; streak and letter are put right if nothing ran since."""
    return [
        Statement(
            f"UPDATE jobs SET {_streak_ended(row)} strip = substr(strip, 1, 19) || 's'"
            " WHERE job = ? AND last_run_id = ?",
            (row.job, row.run_id),
        ),
        _kept(row, successes),
    ]


def skipped(skip: Skip) -> List[Statement]:
    """An invocation started nothing; under `--on-conflict fail` that is a failure."""
    job = skip.facts.job
    if skip.status != "skipped":
        counted = "" if skip.trigger == "manual" else "failures_in_row = failures_in_row + 1,"
        return [
            Statement(
                f"UPDATE jobs SET {counted} failures_total = failures_total + 1, strip = substr(strip || ?, 2)"
                " WHERE job = ?",
                (_LETTERS[skip.status], job),
            )
        ]
    if skip.reason in _HARMLESS_SKIPS:
        return [Statement("UPDATE jobs SET skips_total = skips_total + 1 WHERE job = ?", (job,))]
    return [
        Statement(
            "UPDATE jobs SET skips_in_row = skips_in_row + 1, skips_total = skips_total + 1, last_skip_reason = ?,"
            " last_skip_holder = ? WHERE job = ?",
            (skip.reason, skip.holder, job),
        )
    ]


def _streak_ended(row: RunRow) -> str:
    return "" if row.trigger == "manual" else "failures_in_row = 0,"


def _kept(row: RunRow, successes: str) -> Statement:
    """The latest success; an older one that is delivered late, or filled in, moves nothing back."""
    ended_at, slot_at = row.finished_at_utc, row.slot_at_utc
    changes = [
        "successes = ?",
        "last_success_key = CASE WHEN last_success_at > ? THEN last_success_key ELSE ? END",
        "last_success_at = CASE WHEN last_success_at > ? THEN last_success_at ELSE ? END",
    ]
    values = [_successes_with(successes, row), ended_at, row.run_key, ended_at, ended_at]
    if slot_at is not None:
        changes.append("last_success_slot_at = CASE WHEN last_success_slot_at > ? THEN last_success_slot_at ELSE ? END")
        values += [slot_at, slot_at]
    return Statement(f"UPDATE jobs SET {', '.join(changes)} WHERE job = ?", (*values, row.job))


def _successes_with(text: str, row: RunRow) -> str:
    """The JSON list of the latest successes with one more: [microseconds since the epoch, seconds it took]."""
    assert row.finished_at_utc is not None
    latest = [(row.finished_at_utc - _EPOCH) // _MICROSECOND, round(row.duration_s or 0.0, 3)]
    return json.dumps(sorted([*json.loads(text), latest])[-_SUCCESSES_KEPT:])


# --- reading it ---


def select_statement(names: Sequence[str], version: int = VERSION) -> Statement:
    """The summaries with the latest and the running row, without their output, and the running row's lease.

    Tables of a version before are read as they are: looking changes nothing, and may have no right to."""
    absent = _SINCE_VERSION_2 if version < 2 else ()
    own = ", ".join("NULL" if name in absent else f"j.{name}" for name in ("job", *_FACTS, *_STATE))
    where = f"WHERE j.job IN ({', '.join('?' * len(names))})" if names else ""
    return Statement(
        f"SELECT {own}, {rows.summary_columns('a')}, {rows.summary_columns('b')}, l.lease_until FROM jobs j"
        " LEFT JOIN runs a ON a.run_id = j.last_run_id LEFT JOIN runs b ON b.run_id = j.running_run_id"
        " LEFT JOIN locks l ON l.lock = b.lock AND l.owner_run = b.run_id"
        f" {where} ORDER BY j.job",
        tuple(names),
    )


def job_row(values: Values, leased: bool) -> JobRow:
    """One row of that. Where claims are not leased, no claim has an end."""
    state = dict(zip(_STATE, values[1 + len(_FACTS) :]))
    runs = values[1 + len(_FACTS) + len(_STATE) : -1]
    width = len(rows.RUN_COLUMNS)
    successes = _successes_of(state["successes"])
    paused_until = rows.instant(state["paused_until_at"])
    return JobRow(
        facts=_facts_of(values[: 1 + len(_FACTS)]),
        first_seen_utc=rows.known_instant(state["first_seen_at"]),
        paused_since_utc=rows.instant(state["paused_since_at"]),
        paused_until_utc=paused_until,
        paused_reason=state["paused_reason"],
        last_success_utc=rows.instant(state["last_success_at"]),
        last_success_key=state["last_success_key"],
        last_run=_run_or_none(runs[:width]),
        running=_run_or_none(runs[width:]),
        usual_duration_s=_median_of(successes),
        failures_in_row=int(state["failures_in_row"]),
        skips_in_row=int(state["skips_in_row"]),
        strip=state["strip"].strip(),
        since_utc=_since(rows.known_instant(state["since_at"]), paused_until),
        last_success_slot_utc=rows.instant(state["last_success_slot_at"]),
        successes=successes,
        running_lease_utc=rows.instant(values[-1]) if leased else None,
        last_skip_reason=state["last_skip_reason"],
        last_skip_holder=state["last_skip_holder"],
        pruned_before_utc=rows.instant(state["pruned_before_at"]),
        runs_total=int(state["runs_total"]),
        failures_total=int(state["failures_total"]),
        skips_total=int(state["skips_total"]),
        last_claim_s=state["last_claim_s"],
        defined_utc=rows.instant(state["defined_at"]),
        settled_from_utc=rows.instant(state["settled_from_at"]),
        settled_until_utc=rows.instant(state["settled_until_at"]),
    )


def _facts_of(values: Values) -> JobFacts:
    job, kind, text, *others, alerts, limit_s = values
    return JobFacts._make((job, ScheduleText(kind, text) if kind else None, *others, _alerts_of(alerts), limit_s))


@lru_cache(maxsize=100)
def _alerts_of(text: str) -> Alerts:
    """Cached, for most of 10,000 jobs have the same. A newer version's fields are passed over."""
    return Alerts(**{name: value for name, value in json.loads(text).items() if name in Alerts._fields})


def _since(since_at: datetime, paused_until: Optional[datetime]) -> datetime:
    """A pause that ends by itself leaves its end in the row: nothing was due before."""
    return since_at if paused_until is None else max(since_at, paused_until)


def _successes_of(text: str) -> Tuple[Success, ...]:
    return tuple(Success(_EPOCH + ended * _MICROSECOND, duration_s) for ended, duration_s in json.loads(text))


def _median_of(successes: Sequence[Success]) -> Optional[float]:
    """The upper of two middle values."""
    durations = sorted(success.duration_s for success in successes)
    return durations[len(durations) // 2] if durations else None


def _run_or_none(values: Values) -> Optional[RunRow]:
    return None if values[0] is None else rows.run_row(values)
