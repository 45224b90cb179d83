"""Who may have the claim: what the tables show, what follows from it, and the statements that write it down.

No connection and no clock here; both backends run these statements inside a transaction that excludes other claimers of
the lock. Decides by what the rows say, never by whether a lock call was refused (design, section 5).
"""

from __future__ import annotations

from datetime import datetime
from typing import List, Mapping, NamedTuple, Optional, Tuple, Union

from cronguard.core.model import (
    ClaimRequest,
    Done,
    Held,
    Judge,
    Paused,
    Pruned,
    RunRow,
    Sight,
    Used,
    Verdict,
)
from cronguard.store import rows, summaries
from cronguard.store.dialect import Dialect, Result, Statement

HELD = "held"
ORPHANS = "orphans"
GONE = "gone"

# What makes a row of `locks` a free lock.
FREE = "owner_run = NULL, owner_job = NULL, lease_until = NULL, cancel_requested = FALSE"


class Standing(NamedTuple):
    """A run whose claim stands in the way: it is running, or it has ended and left processes that keep the claim."""

    row: RunRow
    lease_live: bool


class View(NamedTuple):
    """Everything that a claim is decided on, read in one go."""

    known: bool
    paused: Optional[str]
    standing: Tuple[Standing, ...]
    done_run: Optional[str]
    last_claim: Optional[str]  # the latest run that claimed the key
    claims: int
    own: Optional[RunRow]  # this very run, if an earlier try went through
    pruned_before: Optional[datetime]


class Opening(NamedTuple):
    """The claim may be taken once the rows of these dead runs are closed; the key was done if `done` says so."""

    gone: Tuple[RunRow, ...]
    done: bool


Verdicts = Mapping[str, Verdict]


class Unjudged(Exception):
    """A claim came into sight that nobody has judged; judging reads /proc and is never done inside a transaction."""


def lock_statements(request: ClaimRequest, dialect: Dialect) -> List[Statement]:
    """Take the rows of `locks` that matter; they are read again by statements of their own, in a newer snapshot."""
    return [
        Statement("INSERT INTO locks (lock) VALUES (?) ON CONFLICT (lock) DO NOTHING", (request.lock,)),
        Statement(
            f"SELECT lock FROM locks WHERE lock = ? OR owner_job = ? ORDER BY lock {dialect.for_update}",
            (request.lock, request.facts.job),
        ),
    ]


def view_statements(job: str, lock: str, run_key: str, run_id: str, dialect: Dialect) -> List[Statement]:
    """The reads behind a `View`. Unions of index look-ups: an OR would read the whole history (FR-67).

    The job's row comes last: a prune between two reads may take a success away, but then the watermark shows it.
    """
    return [
        Statement(
            f"SELECT {rows.columns('r')}, l.lease_until > {dialect.now}"
            " FROM runs r LEFT JOIN locks l ON l.lock = r.lock AND l.owner_run = r.run_id WHERE r.run_id IN ("
            "SELECT owner_run FROM locks WHERE lock = ? OR owner_job = ?"
            " UNION SELECT run_id FROM runs WHERE status = 'running' AND job = ?"
            " UNION SELECT run_id FROM runs WHERE status = 'running' AND lock = ?)",
            (lock, job, job, lock),
        ),
        Statement(
            "SELECT run_id FROM runs WHERE job = ? AND run_key = ? AND status = 'success'"
            " ORDER BY started_at_utc LIMIT 1",
            (job, run_key),
        ),
        Statement(
            "SELECT run_id, claim_no FROM runs WHERE job = ? AND run_key = ? AND claim_no IS NOT NULL"
            " ORDER BY claim_no DESC LIMIT 1",
            (job, run_key),
        ),
        Statement(f"SELECT {rows.columns('r')} FROM runs r WHERE r.run_id = ?", (run_id,)),
        Statement(
            "SELECT CASE WHEN paused_since_at IS NOT NULL"
            f" AND (paused_until_at IS NULL OR paused_until_at > {dialect.now}) THEN paused_reason END,"
            " pruned_before_at FROM jobs WHERE job = ?",
            (job,),
        ),
    ]


def view_of(results: List[Result]) -> View:
    """The `View` that those reads gave."""
    standing, done, claims, own, jobs = (result.rows for result in results)
    return View(
        known=bool(jobs),
        paused=jobs[0][0] if jobs else None,
        standing=tuple(Standing(rows.run_row(values[:-1]), bool(values[-1])) for values in standing),
        done_run=done[0][0] if done else None,
        last_claim=claims[0][0] if claims else None,
        claims=int(claims[0][1]) if claims else 0,
        own=rows.run_row(own[0]) if own else None,
        pruned_before=rows.instant(jobs[0][1]) if jobs else None,
    )


def judged(view: View, judge: Judge) -> Verdicts:
    """What can be said of everybody in the way."""
    return {claim.row.run_id: judge(rows.owner_of(claim.row), claim.row.run_id) for claim in view.standing}


def standing_of(claim: Standing, verdict: Verdict, leased: bool) -> str:
    """HELD, ORPHANS or GONE.

    A live lease counts unless its owner is provably dead. An ended one counts for nothing on PostgreSQL (`leased`),
    where owners renew; on SQLite an owner who lives is believed whatever the clock says. Processes of the command that
    are still there keep the claim always: P1. Of a run that has ended only such processes count.
    """
    ended = claim.row.status != "running"
    if verdict.pids:
        return HELD if verdict.state == "alive" and not ended else ORPHANS
    if verdict.state == "dead" or (verdict.state == "alive" and ended):
        return GONE
    if verdict.state == "alive" and not leased:
        return HELD
    return HELD if claim.lease_live else GONE


def obstacle(view: View, verdicts: Verdicts, run_id: str, leased: bool) -> Optional[Held]:
    """The first claim of somebody else that counts; raises Unjudged for one that came up since the judging."""
    for claim in view.standing:
        if claim.row.run_id == run_id:
            continue
        if claim.row.run_id not in verdicts:
            raise Unjudged
        verdict = verdicts[claim.row.run_id]
        state = standing_of(claim, verdict, leased)
        if state != GONE:
            return Held(rows.holder_of(claim.row), verdict.pids if state == ORPHANS else ())
    return None


def unjudgeable(view: View, verdicts: Verdicts, lock: str) -> Optional[Held]:
    """The run that holds that lock by the rows, if nothing can be said of its owner."""
    for claim in view.standing:
        if claim.row.lock == lock and verdicts[claim.row.run_id].state == "unknown":
            return Held(rows.holder_of(claim.row))
    return None


def decide(view: View, request: ClaimRequest, verdicts: Verdicts, leased: bool) -> Union[Opening, Done, Paused, Held]:
    """Done, paused, held, in this order; `attempts_used` is decided after the dead rows were closed."""
    done = view.done_run is not None and request.keyed
    if done and not request.force:
        return Done(str(view.done_run))
    if view.paused is not None:
        return Paused(view.paused)
    held = obstacle(view, verdicts, request.run_id, leased)
    if held is not None:
        return held
    others = (claim.row for claim in view.standing if claim.row.run_id != request.run_id)
    return Opening(tuple(others), done)


def used_up(view: View, request: ClaimRequest) -> Union[Used, Pruned, None]:
    """`--redo never`, and the key was claimed before; or the slot is so old that it may have been done and pruned."""
    if request.force:
        return None
    if request.redo == "never" and view.claims:
        return Used(str(view.last_claim))
    slot, before = request.slot, view.pruned_before
    if before is not None and slot is not None and request.keyed and not request.named and slot.at_utc <= before:
        return Pruned(before)
    return None


def sight_of(view: View, verdicts: Verdicts, leased: bool) -> Sight:
    """The same, for somebody who only looks."""
    held = obstacle(view, verdicts, "", leased)
    return Sight(
        done_run=view.done_run,
        paused=view.paused,
        holder=held.holder if held else None,
        orphans=held.orphans if held else (),
        claims=view.claims,
        known=view.known,
    )


def closing_statements(gone: Tuple[RunRow, ...], request: ClaimRequest, dialect: Dialect) -> List[Statement]:
    """Close the rows of dead runs as `lost` and free what they held, and what a run held that has no row any more."""
    statements = [
        Statement(
            f"UPDATE locks SET {FREE}"
            f" WHERE lock = ? AND lease_until <= {dialect.now}"
            " AND NOT EXISTS (SELECT 1 FROM runs WHERE run_id = owner_run)",
            (request.lock,),
        )
    ]
    for row in gone:
        if row.status == "running":
            statements += [
                Statement(
                    f"UPDATE runs SET status = 'lost', finished_at_utc = {dialect.now}, message = ?"
                    " WHERE run_id = ? AND status = 'running'",
                    (f"never finished; closed by run {request.run_id}", row.run_id),
                ),
                summaries.unsuccessful(row._replace(status="lost")),
            ]
        statements.append(
            Statement(
                f"UPDATE locks SET {FREE} WHERE lock = ? AND owner_run = ? AND fence = ?",
                (row.lock, row.run_id, row.fence),
            )
        )
    return statements


TAKEN = 1  # index of the statement below that must change exactly one row


def taking_statements(request: ClaimRequest, claim_no: int, forced: bool, dialect: Dialect) -> List[Statement]:
    """Insert the run row and take the free lock; the last statement reads the fence."""
    row = rows.claimed_row(request, claim_no, None, forced)
    job = request.facts.job
    return [
        insert_run(row, rows.keyed_by(request)),
        Statement(
            f"UPDATE locks SET owner_run = ?, owner_job = ?, fence = {dialect.next_fence},"
            f" lease_until = {dialect.lease_end} WHERE lock = ? AND owner_run IS NULL",
            (request.run_id, job, request.lease_s, request.lock),
        ),
        Statement(
            "UPDATE runs SET fence = (SELECT fence FROM locks WHERE lock = ?) WHERE run_id = ?",
            (request.lock, request.run_id),
        ),
        summaries.seen(request.facts, request.now_utc, request.trigger),
        summaries.claimed(job, request.run_id),
        Statement("SELECT fence FROM locks WHERE lock = ?", (request.lock,)),
    ]


def insert_run(row: RunRow, keyed_by: str) -> Statement:
    """The whole row. `keyed_by` is for prune alone, which must know what may be asked for again."""
    names = (*rows.RUN_COLUMNS, "keyed_by")
    marks = ", ".join("?" * len(names))
    return Statement(f"INSERT INTO runs ({', '.join(names)}) VALUES ({marks})", (*rows.run_values(row), keyed_by))
