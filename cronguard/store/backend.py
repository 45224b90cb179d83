"""The store's operations in terms of three things that a backend knows: read, transact, create the tables.

Everything here is the same on SQLite and PostgreSQL; a difference in meaning would be a fault. What a transaction does
may be done again from its start when the connection broke under it: all of it is keyed by run id.
"""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Dict, List, Optional, Sequence

from cronguard.core.model import (
    ClaimAnswer,
    Claimed,
    ClaimRequest,
    Finding,
    Finish,
    Incident,
    JobFacts,
    JobRow,
    Judge,
    Notice,
    Report,
    RunRow,
    Sight,
    Skip,
)
from cronguard.errors import StoreDown
from cronguard.store import claiming, finishing, forgetting, incidents, orders, pruning, rows, schema, summaries
from cronguard.store.dialect import Collision, Session, Statement
from cronguard.store.redoing import RedoingStore
from cronguard.store.waiting import Deadline, Pauses, boot_time_s

if TYPE_CHECKING:  # not on the path of a run
    from cronguard.store.installing import Installed

# SQLite before 3.32 takes 999 parameters in a statement.
KEYS_AT_ONCE = 500
FOUND_AT_MOST = 10


class SqlStore(RedoingStore):
    """A `Store` (see contract.py) over some SQL database."""

    _prepared: bool  # the tables are known to be of our version

    # A backend answers these, and what `database` asks for.

    def install(self, roles: Sequence[str], within_s: float) -> Installed:
        raise NotImplementedError

    def script(self, roles: Sequence[str], within_s: float) -> List[str]:
        raise NotImplementedError

    # A backend may answer these.

    def _before_claim(self, request: ClaimRequest) -> List[Statement]:
        """Statements that open a claim's transaction."""
        return []

    def _before_sync(self) -> List[Statement]:
        """Statements that let one check at a time at the incidents."""
        return []

    def _take(
        self, request: ClaimRequest, view: claiming.View, verdicts: claiming.Verdicts, deadline: Deadline
    ) -> Optional[ClaimAnswer]:
        """One try at the claim, after that look; None: things moved meanwhile, look again."""
        try:
            return self._transact(lambda session: self._claim_in(session, request, verdicts), deadline)
        except (Collision, claiming.Unjudged):
            return None

    def _claim_unsettled(self, request: ClaimRequest) -> ClaimAnswer:
        """What to say when the time was over and it never came to a decision."""
        raise StoreDown(f"store: {self.name}: lock {request.lock} could not be taken: others kept changing it")

    def _version(self, deadline: Deadline) -> int:
        """That of the tables, which nobody may have brought up to date yet."""
        if self._prepared:
            return schema.VERSION
        return schema.version_of(self._read([Statement(schema.VERSION_SQL)], deadline)[0])

    # The contract.

    def look(self, job: str, lock: str, run_key: str, judge: Judge, within_s: float) -> Sight:
        view = self._view(job, lock, run_key, "", Deadline(within_s))
        return claiming.sight_of(view, claiming.judged(view, judge), self.leased)

    def claim(self, request: ClaimRequest, judge: Judge, within_s: float) -> ClaimAnswer:
        deadline = Deadline(within_s)
        pauses = Pauses(deadline, longest_s=0.2)
        while True:
            answer = self._look_and_take(request, judge, deadline)
            if answer is not None:
                return answer
            if not pauses.take() or deadline.over:
                return self._claim_unsettled(request)

    def renew(self, claim: Claimed, lease_s: float, within_s: float) -> str:
        renewal = orders.renewal(claim.lock, claim.run_id, claim.fence, lease_s, self.dialect.lease_end)
        extended, mark = self._transact(lambda session: session.run(renewal, last=True), Deadline(within_s))
        if extended.changed != 1:
            return "lost"
        return "cancelled" if mark.rows[0][0] else "ours"

    def finish(self, claim: Claimed, finish: Finish, within_s: float) -> bool:
        def work(session: Session) -> bool:
            return finishing.finish(session, self.dialect, claim.run_id, claim.fence, finish)

        return self._transact(work, Deadline(within_s))

    def note_pings(self, run_id: str, pings: str, within_s: float) -> None:
        note = Statement("UPDATE runs SET pings = ? WHERE run_id = ?", (rows.clean(pings), run_id))
        self._changed(note, within_s)

    def record_skip(self, skip: Skip, within_s: float) -> None:
        self._transact(lambda session: finishing.record_skip(session, self.dialect, skip), Deadline(within_s))

    def deliver(self, report: Report, within_s: float) -> None:
        deadline = Deadline(within_s)
        try:
            self._transact(lambda session: finishing.deliver(session, self.dialect, report, forced=False), deadline)
        except Collision:
            self._transact(lambda session: finishing.deliver(session, self.dialect, report, forced=True), deadline)

    def history(
        self, job: str, limit: int, statuses: Sequence[str], since_utc: Optional[datetime], within_s: float
    ) -> List[RunRow]:
        conditions, values = ["job = ?"], [job]
        if statuses:
            conditions.append(f"status IN ({', '.join('?' * len(statuses))})")
            values += statuses
        parameters = (*values, since_utc, limit) if since_utc else (*values, limit)
        if since_utc:
            conditions.append("started_at_utc >= ?")
        return self._runs(
            f"WHERE {' AND '.join(conditions)} ORDER BY started_at_utc DESC, run_id DESC LIMIT ?", parameters, within_s
        )

    def find_runs(self, prefix: str, within_s: float) -> List[RunRow]:
        # A range and not LIKE: the index serves it on both, and `_` and `%` mean nothing.
        after = prefix + "\U0010ffff"
        return self._runs(
            f"WHERE run_id >= ? AND run_id < ? ORDER BY run_id LIMIT {FOUND_AT_MOST}", (prefix, after), within_s
        )

    def jobs(self, names: Sequence[str], within_s: float) -> List[JobRow]:
        deadline = Deadline(within_s)
        (result,) = self._read([summaries.select_statement(names, self._version(deadline))], deadline)
        return [summaries.job_row(values, self.leased) for values in result.rows]

    def remember(self, facts: JobFacts, now_utc: datetime, within_s: float) -> None:
        self._changed(summaries.remembered(facts, now_utc), within_s)

    def undone(self, job: str, run_keys: Sequence[str], within_s: float) -> List[str]:
        chunks = [run_keys[start : start + KEYS_AT_ONCE] for start in range(0, len(run_keys), KEYS_AT_ONCE)]
        reads = [
            Statement(
                "SELECT run_key FROM runs WHERE job = ? AND status = 'success'"
                f" AND run_key IN ({', '.join('?' * len(chunk))})",
                (job, *chunk),
            )
            for chunk in chunks
        ]
        results = self._read(reads, Deadline(within_s)) if reads else []
        done = {values[0] for result in results for values in result.rows}
        return [run_key for run_key in run_keys if run_key not in done]

    def claims(self, job: str, run_keys: Sequence[str], within_s: float) -> Dict[str, int]:
        read = Statement(
            "SELECT run_key, max(claim_no) FROM runs WHERE job = ? AND claim_no IS NOT NULL AND status <> 'success'"
            f" AND run_key {self.dialect.among_texts} GROUP BY run_key",
            (job, rows.texts_json(run_keys)),
        )
        (result,) = self._read([read], Deadline(within_s))
        return {run_key: int(claims) for run_key, claims in result.rows}

    def note_settled(self, job: str, from_utc: datetime, until_utc: datetime, within_s: float) -> None:
        self._changed(summaries.settled(job, from_utc, until_utc), within_s)

    def runs_since(self, since_utc: datetime, limit: int, within_s: float) -> List[RunRow]:
        read = Statement(
            f"SELECT {rows.summary_columns('runs')} FROM runs WHERE started_at_utc >= ?"
            " ORDER BY started_at_utc DESC, run_id DESC LIMIT ?",
            (since_utc, limit),
        )
        (result,) = self._read([read], Deadline(within_s))
        return [rows.run_row(values) for values in result.rows]

    def pause(self, job: str, reason: str, until_utc: Optional[datetime], now_utc: datetime, within_s: float) -> bool:
        return self._changed(orders.pause(job, reason, until_utc, now_utc), within_s)

    def resume(self, job: str, now_utc: datetime, within_s: float) -> bool:
        return self._changed(orders.resume(job, now_utc), within_s)

    def request_cancel(self, job: str, within_s: float) -> Optional[RunRow]:
        return self._transact(lambda session: orders.request_cancel(session, job), Deadline(within_s))

    def prune(
        self, job: str, before_utc: datetime, keep: int, keep_skips: int, limit: int, within_s: float
    ) -> int:
        deadline = Deadline(within_s)
        gone = 0
        while gone < limit and not deadline.over:
            limits = pruning.Limits(before_utc, keep, keep_skips, min(pruning.STEP, limit - gone))
            try:
                went = self._prune_step(job, limits, deadline)
            except StoreDown:
                if gone:
                    break  # the time was over within a step; those before it are done
                raise
            gone += went
            if went < limits.most:
                break
        return gone

    def forget_job(self, job: str, within_s: float) -> bool:
        return self._transact(lambda session: forgetting.forget_job(session, self.dialect, job), Deadline(within_s))

    def sync_incidents(
        self, jobs: Sequence[str], findings: Sequence[Finding], now_utc: datetime, remind_s: float, within_s: float
    ) -> List[Notice]:
        check = incidents.Sync(jobs, findings, now_utc, remind_s, incidents.new_teller())

        def work(session: Session) -> List[Notice]:
            session.run(self._before_sync())
            return incidents.sync(session, check)

        return self._transact(work, Deadline(within_s))

    def settle_notice(self, notice: Notice, delivered: bool, now_utc: datetime, within_s: float) -> None:
        self._changed(incidents.settle(notice, delivered, now_utc), within_s)

    def incidents(self, within_s: float) -> List[Incident]:
        (result,) = self._read([incidents.select_open()], Deadline(within_s))
        return [incidents.incident_of(values) for values in result.rows]

    # How a claim goes.

    def _look_and_take(self, request: ClaimRequest, judge: Judge, deadline: Deadline) -> Optional[ClaimAnswer]:
        """Look first, so that those who only get a refusal touch no lock; judging happens outside any transaction."""
        view = self._view(request.facts.job, request.lock, request.run_key, request.run_id, deadline)
        verdicts = claiming.judged(view, judge)
        if view.own is None:
            decision = claiming.decide(view, request, verdicts, self.leased)
            if not isinstance(decision, claiming.Opening):
                return decision
        return self._take(request, view, verdicts, deadline)

    def _claim_in(self, session: Session, request: ClaimRequest, verdicts: claiming.Verdicts) -> ClaimAnswer:
        reads = claiming.view_statements(
            request.facts.job, request.lock, request.run_key, request.run_id, self.dialect
        )
        opening = [*self._before_claim(request), *claiming.lock_statements(request, self.dialect)]
        view = claiming.view_of(session.run([*opening, *reads])[len(opening) :])
        if view.own is not None:
            return self._resume(session, request, view.own)
        decision = claiming.decide(view, request, verdicts, self.leased)
        if not isinstance(decision, claiming.Opening):
            return decision
        closings = claiming.closing_statements(decision.gone, request, self.dialect)
        used = claiming.used_up(view, request)
        if used is not None:
            session.run(closings)
            return used
        claim_no = view.claims + 1
        takings = claiming.taking_statements(request, claim_no, decision.done, self.dialect)
        sent_at = boot_time_s()
        results = session.run([*closings, *takings])[len(closings) :]
        if results[claiming.TAKEN].changed != 1:
            raise Collision
        return Claimed(
            run_id=request.run_id, lock=request.lock, fence=int(results[-1].rows[0][0]), claim_no=claim_no,
            sent_at=sent_at, trigger=rows.trigger_of(request, claim_no),
            took_over=tuple(row.run_id for row in decision.gone if row.status == "running"),
        )

    def _resume(self, session: Session, request: ClaimRequest, own: RunRow) -> Claimed:
        """An earlier try went through although its answer was lost: the claim is ours, extend it."""
        sent_at = boot_time_s()
        result, _ = session.run(
            orders.renewal(own.lock, own.run_id, own.fence, request.lease_s, self.dialect.lease_end)
        )
        if own.status != "running" or own.fence is None or own.claim_no is None or result.changed != 1:
            raise StoreDown(f"store: {self.name}: the claim of {own.job} ended before its outcome could be learnt")
        return Claimed(own.run_id, own.lock, own.fence, own.claim_no, sent_at, own.trigger)

    # Smaller steps.

    def _prune_step(self, job: str, limits: pruning.Limits, deadline: Deadline) -> int:
        return self._transact(lambda session: pruning.prune(session, self.dialect, job, limits), deadline)

    # Reading.

    def _view(self, job: str, lock: str, run_key: str, run_id: str, deadline: Deadline) -> claiming.View:
        reads = claiming.view_statements(job, lock, run_key, run_id, self.dialect)
        return claiming.view_of(self._read(reads, deadline))

    def _runs(self, where: str, values: Sequence[object], within_s: float) -> List[RunRow]:
        read = Statement(f"SELECT {rows.columns('runs')} FROM runs {where}", tuple(values))
        (result,) = self._read([read], Deadline(within_s))
        return [rows.run_row(values) for values in result.rows]
