"""`cronguard once`: one effect, marked before it begins, so that it does not happen twice.

Takes no job lock and writes no run row. Inside a run the run's fence goes along: a run that lost its lock begins
nothing more. The keeper is forked before any thread or connection exists; its command reads our stdin and writes to our
stdout, for a script pipes into it what is to be sent.
"""

from __future__ import annotations

from typing import Dict, List, Mapping, NamedTuple, Tuple

from cronguard.core import exitcodes
from cronguard.core import outcome as judging
from cronguard.core.effect_settings import check_options, resolve_effect
from cronguard.core.effect_texts import TOKEN_VARIABLE, allowing, effect_environment, effect_of
from cronguard.core.ledger import Begun, Effect, fence_from, job_from
from cronguard.core.model import Event, Exit, Invocation, Outcome, Say
from cronguard.errors import CronguardError
from cronguard.pipeline.effect import LEASE_S, Left, Scene, begin, kept, settle, withdraw
from cronguard.system import host, identity
from cronguard.system.keeper import Keeper, fork_keeper
from cronguard.system.signals import Signals
from cronguard.system.supervisor import Command, KeptLease, Limits, not_run, supervise
from cronguard.workspace import open_workspace

# Ends of an attempt that never was one, as `Exit.stopped_by` has them. Not `keeper_lost`: nobody saw what it did.
_BEFORE_THE_START = ("signal", "lease", "cancelled")


class OnceRequest(NamedTuple):
    """`options` holds only what was given, setting name to raw text."""

    key: str
    command: Tuple[str, ...]
    options: Mapping[str, str]


class Performance(NamedTuple):
    """What the command of an effect works with."""

    argv: Tuple[str, ...]
    environ: Mapping[str, str]
    keeper: Keeper
    signals: Signals


def once(request: OnceRequest, invocation: Invocation, say: Say) -> int:
    """The exit code. Raises CronguardError (125) when cronguard could not do its part: nothing was begun."""
    signals = Signals()
    signals.install()
    try:
        return _once(request, invocation, signals, say)
    finally:
        signals.restore()


def _once(request: OnceRequest, invocation: Invocation, signals: Signals, say: Say) -> int:
    environ = invocation.environ
    check_options(request.options)
    job = job_from(request.options.get("job"), environ)
    effect = effect_of(job, request.key, request.options.get("per_slot") == "true", environ)
    fence = fence_from(environ)
    workspace = open_workspace(invocation, job)
    spec = resolve_effect(job, request.options, workspace.document, workspace.file_name)
    state_dir = host.state_dir(environ)
    performance = Performance(request.command, environ, fork_keeper(), signals)
    try:
        worker = workspace.worker()
        try:
            owner = identity.own_identity(performance.keeper.pid, environ)
            judge = identity.make_judge(state_dir, environ, TOKEN_VARIABLE)
            return _begin_and_perform(Scene(effect, spec, owner, fence, worker, state_dir, judge, say), performance)
        finally:
            worker.close(1.0)
    finally:
        performance.keeper.goodbye()


def _begin_and_perform(scene: Scene, performance: Performance) -> int:
    answer = begin(scene)
    if isinstance(answer, Left):
        return answer.leave_with
    exit_, started = _perform(scene, answer, performance)
    outcome = judging.judge(exit_, scene.spec.timeout_s)
    never_begun = exit_.start_error is not None or (not started and exit_.stopped_by in _BEFORE_THE_START)
    if never_begun:
        withdraw(scene, answer)
    else:
        settle(scene, answer, "done" if outcome.status == "success" else "failed", outcome.message)
    _say_finished(scene, outcome, never_begun)
    return outcome.leave_with


def _perform(scene: Scene, begun: Begun, performance: Performance) -> Tuple[Exit, bool]:
    """The facts, and whether the command was ever started."""
    command = Command(
        argv=performance.argv,
        env=_environment(scene.effect, begun, performance.environ),
        directory=None,
        stdin="inherit",
        capture=False,
        echo=True,
        tail_bytes=0,
        results_path=None,
    )
    limits = Limits(scene.spec.timeout_s, scene.spec.grace_s, "leave")
    pids: List[int] = []

    def started(pid: int) -> None:
        pids.append(pid)
        identity.note_session(scene.state_dir, begun.token, pid)

    try:
        lease = kept(scene, begun)
        watched = None if lease is None else KeptLease(lease, begun.sent_at)
        exit_ = supervise(
            performance.keeper, command, limits, performance.signals, watched, LEASE_S, begun.sent_at, started
        )
    except CronguardError as error:
        exit_ = not_run(start_error=str(error), start_code=exitcodes.OUR_FAULT)
    finally:
        scene.store.stop_renewing()
        identity.forget_session(scene.state_dir, begun.token)
    return exit_, bool(pids)


def _environment(effect: Effect, begun: Begun, environ: Mapping[str, str]) -> Dict[str, str]:
    """In a run the command goes on to belong to that one's job."""
    return {"CRONGUARD_JOB": effect.job, **environ, **effect_environment(effect, begun.token)}


def _say_finished(scene: Scene, outcome: Outcome, never_begun: bool) -> None:
    fields = {"job": scene.effect.job, "effect": scene.effect.key}
    if outcome.status == "success":
        scene.say(Event("completed", "info", fields))
    elif never_begun or not scene.at_most_once:
        scene.say(Event("failed", "error", fields, f"{outcome.message}; it may be tried again"))
    else:
        text = f"{outcome.message}; it is not tried again, for it may have happened; {allowing(scene.effect)}"
        scene.say(Event("failed", "error", fields, text))
