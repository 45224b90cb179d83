"""One effect, from its mark to its settlement: what `cronguard once` and the Python import share.

mark -> effect -> settle. The mark is there before the effect begins, so that whatever happens in between is found: at
most once, it is left alone; at least once, the policy of the job decides, and never a guess (FR-71). An effect that is
under way renews its mark; only where another host might do it again meanwhile is it stopped when it cannot.
"""

from __future__ import annotations

from typing import Dict, NamedTuple, Optional, Union

from cronguard.core import exitcodes, ledger
from cronguard.core.effect_settings import EffectSpec
from cronguard.core.effect_texts import allowing, standing, what_to_do
from cronguard.core.ledger import Again, Begun, Effect, EffectAnswer, EffectRequest, Fence, Fenced, Mark
from cronguard.core.model import Event, Judge, Lease, Owner, Say
from cronguard.core.names import short_id
from cronguard.errors import StoreError
from cronguard.pipeline.passage import Budget
from cronguard.store.worker import StoreWorker
from cronguard.system.identity import forget_session, new_run_id

LEASE_S = 120.0
BEGIN_S = 30.0
SETTLE_S = 15.0


class Scene(NamedTuple):
    """What an effect is about and works with. `fence` None: not in a run that could lose its lock."""

    effect: Effect
    spec: EffectSpec
    owner: Owner
    fence: Optional[Fence]
    store: StoreWorker
    state_dir: str
    judge: Judge
    say: Say

    @property
    def at_most_once(self) -> bool:
        return self.spec.effect == "at-most-once"


class Left(NamedTuple):
    """It was not begun. `state`: done, failed, under_way or unknown, or fenced: our run has lost its lock."""

    leave_with: int
    state: str
    why: str


def judged(mark: Mark, judge: Judge) -> str:
    """The state of a mark, its owner judged if that matters."""
    verdict = judge(mark.owner, mark.token) if mark.status == "started" and mark.owner else None
    return ledger.state_of(mark, verdict)


def begin(scene: Scene) -> Union[Begun, Left]:
    """Mark it, or say why not. StoreError when the store cannot: then it must not begin."""
    budget = Budget(BEGIN_S)
    scene.store.call(lambda store: store.prepare(budget.left()), budget.left())
    for warning in scene.store.warnings:
        scene.say(Event("store_warning", "warning", {"job": scene.effect.job}, warning))
    wish = EffectRequest(scene.effect, new_run_id(), None, scene.owner, scene.fence, LEASE_S)
    while True:
        answer = _mark(scene.store, wish, budget)
        if isinstance(answer, Begun):
            return answer
        if isinstance(answer, Fenced):
            return _fenced(scene, answer)
        state = judged(answer, scene.judge)
        if state == "unknown":
            forget_session(scene.state_dir, answer.token)  # nothing of it is left that we could see
        decision = ledger.decide(scene.spec.effect, scene.spec.on_unknown, answer, state)
        if not isinstance(decision, Again):
            return _left(scene, answer, state, decision)
        wish = wish._replace(replaces=decision.replaces)


def kept(scene: Scene, begun: Begun) -> Optional[Lease]:
    """Renew the mark from now on. Answers the lease without which the effect must not go on; None: it may.

    At most once nobody else will begin it, however long we are silent; on SQLite whoever asks sees that we live."""
    lease = scene.store.keep_renewed(lambda store, within_s: store.renew_effect(begun, LEASE_S, within_s), LEASE_S)
    return None if scene.at_most_once or not scene.store.leased else lease


def settle(scene: Scene, begun: Begun, status: str, message: str) -> None:
    """Write what became of it: `done` or `failed`. Never raises for the store's sake: the effect has been."""
    fields = _fields(scene.effect, status=status)
    try:
        ours = scene.store.call(lambda store: store.settle_effect(begun, status, message, SETTLE_S), SETTLE_S)
    except StoreError as error:
        text = f"that it is {status} could not be recorded ({error}): from now on nobody knows whether it happened"
        scene.say(Event("not_settled", "warning", fields, text))
        return
    if not ours:
        text = f"it is {status}, but its mark is no longer ours: somebody forgot, settled or replaced it meanwhile"
        scene.say(Event("not_settled", "warning", fields, text))


def withdraw(scene: Scene, begun: Begun) -> None:
    """It was never begun after all. Never raises for the store's sake."""
    try:
        scene.store.call(lambda store: store.withdraw_effect(begun, SETTLE_S), SETTLE_S)
    except StoreError as error:
        text = f"it was never begun, but its mark could not be taken back: {error}; {allowing(scene.effect)}"
        scene.say(Event("not_withdrawn", "warning", _fields(scene.effect), text))


def _mark(worker: StoreWorker, wish: EffectRequest, budget: Budget) -> EffectAnswer:
    return worker.call(lambda store: store.begin_effect(wish, budget.left()), budget.left())


def _fenced(scene: Scene, answer: Fenced) -> Left:
    why = f"run {short_id(answer.run_id)} no longer holds the lock of its job; it must not do anything more"
    scene.say(Event("refused", "error", _fields(scene.effect, run=answer.run_id), f"not begun: {why}"))
    return Left(exitcodes.NOT_STARTED, "fenced", why)


def _left(scene: Scene, mark: Mark, state: str, decision: ledger.Leave) -> Left:
    done_with = decision.leave_with == exitcodes.DONE
    why = standing(mark, state)
    if decision.doubtful or state == "unknown":
        why = f"{why}; {what_to_do(mark.effect)}"
    level = "info" if done_with and not decision.doubtful else "warning"
    fields = _fields(scene.effect, state=state)
    scene.say(Event("skipped" if done_with else "refused", level, fields, f"not begun: {why}"))
    return Left(decision.leave_with, state, why)


def _fields(effect: Effect, **more: object) -> Dict[str, object]:
    slot = {"key": effect.run_key} if effect.run_key else {}
    return {"job": effect.job, "effect": effect.key, **slot, **more}
