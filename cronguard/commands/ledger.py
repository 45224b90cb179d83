"""`items list|show|forget|settle` for the ledger: what `once` has marked, what of it nobody knows the end of, and how
a person who found out says so.

What is under way is left alone: to forget it would be to let it happen twice.
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import Callable, Dict, Iterator, List, NamedTuple, Optional, Sequence, Tuple

from cronguard.core.effect_texts import TOKEN_VARIABLE, checked_key, idempotency_of, standing
from cronguard.core.ledger import Effect, Mark
from cronguard.core.model import Invocation, Judge
from cronguard.core.names import check_job_name, shown
from cronguard.core.records import instant_as_json
from cronguard.core.values import judged as judged_option
from cronguard.core.values import one_of, whole_number
from cronguard.errors import NotFound, UsageError
from cronguard.pipeline.effect import judged
from cronguard.store.contract import Store
from cronguard.store.worker import StoreWorker
from cronguard.system import identity
from cronguard.workspace import open_workspace

WITHIN_S = 10.0
STATES = ("done", "failed", "under_way", "unknown")
MOST = 100_000
_LIMIT = 20


class MarksRequest(NamedTuple):
    """`state` and `limit` as typed, None if not given."""

    job: str
    state: Optional[str]
    limit: Optional[str]


class JudgedMark(NamedTuple):
    """A mark and what it means now."""

    mark: Mark
    state: str


class Changed(NamedTuple):
    """`refused`: a line for each key for which nothing was done."""

    effects: Tuple[Effect, ...]
    refused: Tuple[str, ...]


def list_marks(request: MarksRequest, invocation: Invocation) -> Tuple[JudgedMark, ...]:
    """The newest first. `unknown` and `under_way` are told apart by who is still alive, as seen from this host."""
    job = _checked_job(request.job)
    state = None if request.state is None else judged_option("--status", one_of(*STATES), request.state)
    limit = _LIMIT if request.limit is None else judged_option("--limit", whole_number(1, MOST), request.limit)
    begun_only = state in ("under_way", "unknown")
    statuses = () if state is None else ("started",) if begun_only else (state,)
    with _opened(job, invocation) as (worker, judge):
        marks = worker.call(lambda store: store.marks(job, statuses, MOST if begun_only else limit, WITHIN_S), WITHIN_S)
        found = (JudgedMark(mark, judged(mark, judge)) for mark in marks)
        return tuple(each for each in found if state in (None, each.state))[:limit]


def show_marks(job: str, key: str, invocation: Invocation) -> Tuple[JudgedMark, ...]:
    """All of one key: as a rule one, or one for each run key. NotFound if there is none."""
    wanted = checked_key(key)
    with _opened(_checked_job(job), invocation) as (worker, judge):
        marks = worker.call(lambda store: store.find_marks(job, (wanted,), WITHIN_S), WITHIN_S)
        found = tuple(JudgedMark(mark, judged(mark, judge)) for mark in marks)
    if not found:
        raise NotFound(f"no such effect: {shown(key)}: never begun", f"cronguard items list --ledger {job} shows them")
    return found


def forget_marks(job: str, keys: Sequence[str], run_key: Optional[str], invocation: Invocation) -> Changed:
    """Delete these marks: the effects may happen again. Not of what is under way."""
    return _change(job, keys, run_key, invocation, lambda store, effects: store.forget_effects(effects, WITHIN_S))


def settle_marks(job: str, keys: Sequence[str], run_key: Optional[str], invocation: Invocation) -> Changed:
    """Somebody found out that they happened: mark them as done. Not what is under way."""
    return _change(job, keys, run_key, invocation, lambda store, effects: store.resolve_effects(effects, WITHIN_S))


def as_json(found: Sequence[JudgedMark]) -> List[Dict[str, object]]:
    """Marks in JSON; keys are only ever added."""
    return [_mark_as_json(each) for each in found]


def _mark_as_json(each: JudgedMark) -> Dict[str, object]:
    mark = each.mark
    return {
        "job": mark.effect.job,
        "key": mark.effect.key,
        "run_key": mark.effect.run_key or None,
        "state": each.state,
        "attempts": mark.attempts,
        "run_id": mark.run_id,
        "host": mark.owner.host if mark.owner else None,
        "pid": mark.owner.pid if mark.owner else None,
        "started_at": instant_as_json(mark.started_at_utc),
        "finished_at": instant_as_json(mark.finished_at_utc),
        "message": mark.message,
        "idempotency_key": idempotency_of(mark.effect),
    }


def _change(
    job: str,
    keys: Sequence[str],
    run_key: Optional[str],
    invocation: Invocation,
    change: Callable[[Store, Sequence[Effect]], List[Effect]],
) -> Changed:
    if not keys:
        raise UsageError("KEY: none given")
    wanted = {key: Effect(_checked_job(job), checked_key(key), run_key or "") for key in keys}
    with _opened(job, invocation) as (worker, judge):
        marks = worker.call(lambda store: store.find_marks(job, list(wanted), WITHIN_S), WITHIN_S)
        by_effect = {mark.effect: JudgedMark(mark, judged(mark, judge)) for mark in marks}
        refusals = {key: _why_not(effect, by_effect) for key, effect in wanted.items()}
        free = [effect for key, effect in wanted.items() if refusals[key] is None]
        done = worker.call(lambda store: change(store, free), WITHIN_S)
    return Changed(tuple(done), tuple(f"{shown(key)}: {why}" for key, why in refusals.items() if why is not None))


def _why_not(effect: Effect, there: Dict[Effect, JudgedMark]) -> Optional[str]:
    found = there.get(effect)
    if found is not None:
        return standing(found.mark, "under_way") if found.state == "under_way" else None
    others = [other.run_key for other in there if other.key == effect.key]
    if not others:
        return "never begun"
    return f"not with that run key; there is --run-key {' and '.join(shown(each) for each in others[:3])}"


def _checked_job(job: str) -> str:
    problem = check_job_name(job)
    if problem is not None:
        raise UsageError(f"JOB: {problem}")
    return job


@contextmanager
def _opened(job: str, invocation: Invocation) -> Iterator[Tuple[StoreWorker, Judge]]:
    workspace = open_workspace(invocation, job)
    worker = workspace.worker()
    try:
        worker.call(lambda store: store.prepare(WITHIN_S), WITHIN_S)
        yield worker, identity.make_judge(workspace.state_dir, invocation.environ, TOKEN_VARIABLE)
    finally:
        worker.close(1.0)
