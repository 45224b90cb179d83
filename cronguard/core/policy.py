"""What to do with what the store shows: go, skip, wait or refuse. The same rules for a look and a refused claim."""

from __future__ import annotations

from typing import NamedTuple, Optional, Tuple, Union

from cronguard.core.durations import format_duration
from cronguard.core.model import ClaimAnswer, Done, Held, Holder, JobSpec, Paused, Pruned, Sight, Used
from cronguard.core.names import short_id


class Question(NamedTuple):
    """The part of an invocation that decides. `own_run`: the run this process was started by, if any."""

    spec: JobSpec
    force: bool
    lateness_s: Optional[float]
    waited_s: float
    own_run: Optional[str]


class Go(NamedTuple):
    """Claim it."""


class SkipIt(NamedTuple):
    """Do not start the command, leave quietly."""

    reason: str
    detail: str
    holder: Optional[Holder] = None
    orphans: Tuple[int, ...] = ()
    done_run: Optional[str] = None


class Wait(NamedTuple):
    """Look again in a second."""

    holder: Holder


class Refuse(NamedTuple):
    """`--on-conflict fail`: an error, with a row and a fail ping."""

    reason: str
    detail: str
    holder: Holder


Decision = Union[Go, SkipIt, Wait, Refuse]
NOTHING = Sight(done_run=None, paused=None, holder=None, orphans=(), claims=0, known=False)


def decide(question: Question, sight: Sight) -> Decision:
    """In the order of what a person would want to hear: done, paused, busy, too late, used up."""
    spec, force = question.spec, question.force
    if sight.done_run is not None and not force:
        return SkipIt("already_done", f"done by run {short_id(sight.done_run)}", done_run=sight.done_run)
    if sight.paused is not None:
        return SkipIt("paused", f"it is paused: {sight.paused}" if sight.paused else "it is paused")
    if sight.holder is not None:
        return _conflict(question, sight.holder, sight.orphans)
    if force:
        return Go()
    if _is_too_late(question):
        age, limit = format_duration(question.lateness_s or 0), format_duration(spec.max_late_s or 0)
        return SkipIt("too_late", f"the slot is {age} old and --max-late is {limit}")
    if sight.pruned:
        what = "whether the slot was done is no longer known: rows of that time were pruned; --force runs it"
        return SkipIt("attempts_used", what)
    if spec.redo == "never" and sight.claims > 0:
        return SkipIt("attempts_used", "the slot was tried before and --redo is never")
    return Go()


def _is_too_late(question: Question) -> bool:
    """Never without a key: then a start is for no slot in particular (design, section 4)."""
    spec, lateness_s = question.spec, question.lateness_s
    keyed = spec.key != "none" or spec.run_key is not None
    return keyed and spec.max_late_s is not None and lateness_s is not None and lateness_s > spec.max_late_s


def sight_of(answer: ClaimAnswer) -> Sight:
    """A refused claim, as if it had been seen before: between look and claim somebody was faster."""
    if isinstance(answer, Held):
        return NOTHING._replace(holder=answer.holder, orphans=answer.orphans, known=True)
    if isinstance(answer, Done):
        return NOTHING._replace(done_run=answer.run_id, known=True)
    if isinstance(answer, Paused):
        return NOTHING._replace(paused=answer.reason, known=True)
    if isinstance(answer, Used):
        return NOTHING._replace(claims=1, known=True)
    if isinstance(answer, Pruned):
        return NOTHING._replace(pruned=True, known=True)
    raise TypeError(f"not a refusal: {answer!r}")


def _conflict(question: Question, holder: Holder, orphans: Tuple[int, ...]) -> Decision:
    spec = question.spec
    if orphans:
        pids = ", ".join(str(pid) for pid in orphans)
        what = f"processes {pids} of the unfinished run {short_id(holder.run_id)} are still there on {holder.host}"
        reason = "orphans"
    else:
        what = f"run {short_id(holder.run_id)} of {holder.job} holds it on {holder.host}"
        reason = "lock_held"
    if spec.on_conflict == "fail":
        return Refuse(reason, what, holder)
    if holder.run_id == question.own_run:  # waiting for it would be waiting for ourselves
        return SkipIt(reason, "inside its own run", holder=holder)
    if spec.on_conflict == "wait" and question.waited_s < spec.wait_s:
        return Wait(holder)
    return SkipIt(reason, what, holder=holder, orphans=orphans)
