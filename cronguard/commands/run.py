"""`cronguard run`: resolve, place, pass, leave.

Only this module knows the order of an invocation. The keeper is forked before any thread, connection or lock exists;
the slot is fixed before the jitter; whatever goes wrong before the command was started still sends one fail ping.
"""

from __future__ import annotations

import zlib
from typing import Mapping, NamedTuple, Tuple

from cronguard.core import exitcodes, policy
from cronguard.core.config import resolve_job
from cronguard.core.model import Event, Invocation, JobSpec, RunRequest, Say
from cronguard.errors import CronguardError
from cronguard.pipeline.delivering import deliver_spooled
from cronguard.pipeline.passage import Passage, Place, Surroundings
from cronguard.pipeline.placing import place_at, zone_for
from cronguard.pipeline.preview import preview
from cronguard.pipeline.slot import run_slot
from cronguard.pipeline.surroundings import Ground, Tools, fail_ping, surroundings
from cronguard.system import clock, host, identity
from cronguard.system.keeper import fork_keeper
from cronguard.system.signals import Signals
from cronguard.system.supervisor import pause
from cronguard.workspace import Workspace, open_workspace


class RunResult(NamedTuple):
    """`lines` are for stdout (`--dry-run`), `tail` for stderr (`--quiet` after a failure)."""

    exit_code: int
    lines: Tuple[str, ...] = ()
    tail: bytes = b""


def run(request: RunRequest, invocation: Invocation, say: Say) -> RunResult:
    """One invocation. Raises CronguardError (exit code 125) when cronguard could not do its part."""
    signals = Signals()
    signals.install()
    notice = clock.test_notice(invocation.environ)
    if notice:
        say(Event("test_mode", "warning", {"job": request.job}, notice))
    try:
        return _run(request, invocation, signals, say)
    except CronguardError as error:
        if not request.dry_run:
            fail_ping(request, _document(request, invocation), invocation.environ, error)
        raise
    finally:
        signals.restore()


def _run(request: RunRequest, invocation: Invocation, signals: Signals, say: Say) -> RunResult:
    workspace = open_workspace(invocation, request.job)
    resolved = resolve_job(request, workspace.document, workspace.file_name, invocation.environ)
    spec = resolved.spec
    for warning in resolved.warnings:
        say(Event("setting", "warning", {"job": spec.job}, warning))
    zone = zone_for(spec, say)
    place = place_at(spec, zone, clock.now_utc(invocation.environ))
    if request.dry_run:
        return _dry_run(request, invocation, workspace, spec, zone, place)
    host.state_dir(invocation.environ)
    keeper = fork_keeper()
    try:
        worker = workspace.worker()
        try:
            ground = Ground(invocation.environ, workspace.state_dir, workspace.spool_dir, workspace.store)
            trigger = "manual" if request.on_terminal or request.force else "schedule"
            tools = Tools(keeper, worker, signals, say)
            return _pass(surroundings(spec, zone, trigger, request.force, ground, tools), place)
        finally:
            worker.close(1.0)
    finally:
        keeper.goodbye()


def _pass(s: Surroundings, place: Place) -> RunResult:
    delay_s = _jitter(s.spec, s.owner.host)
    if delay_s and pause(delay_s, s.signals, None) is not None:
        return RunResult(exitcodes.for_signal(s.signals.first or 15))
    deliver_spooled(s.store, s.spool, {"job": s.spec.job}, s.say)
    if s.spec.catch_up == "oldest":
        from cronguard.pipeline import catching_up  # not on the path of every run

        place = catching_up.choose_or_latest(s.spec, s.zone, place, s.store, s.say)
    return _result(s.spec, run_slot(s, place))


def _result(spec: JobSpec, passage: Passage) -> RunResult:
    failed = passage.status not in ("success", "skipped")
    return RunResult(passage.leave_with, tail=passage.tail if spec.quiet and failed else b"")


def _jitter(spec: JobSpec, host_name: str) -> float:
    """A delay that is the same each time for one job on one host, and spread evenly over all of them (FR-63)."""
    share = zlib.crc32(f"{spec.job}\0{host_name}".encode()) / 2**32
    return spec.jitter_s * share


def _document(request: RunRequest, invocation: Invocation) -> Mapping[str, object]:
    """The config file, if it can be read: the error may be that it cannot."""
    try:
        return open_workspace(invocation, request.job).document
    except CronguardError:
        return {}


def _dry_run(
    request: RunRequest, invocation: Invocation, workspace: Workspace, spec: JobSpec, zone: str, place: Place
) -> RunResult:
    worker = workspace.worker()
    try:
        why = ""
        if spec.catch_up == "oldest":
            from cronguard.pipeline import catching_up

            place, why, _ = catching_up.choose(spec, zone, place, worker, note=False)
        own_run = invocation.environ.get("CRONGUARD_RUN_ID")
        question = policy.Question(spec, request.force, place.late_s(place.at_utc), 0.0, own_run)
        judge = identity.make_judge(workspace.state_dir, invocation.environ)
        shown = preview(place, question, worker, judge, why)
    finally:
        worker.close(1.0)
    return RunResult(shown.exit_code, shown.lines)
