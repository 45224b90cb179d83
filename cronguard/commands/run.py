"""`cronguard run`: resolve, place, pass, leave.

Only this module knows the order of an invocation. The keeper is forked before any thread, connection or lock exists;
the slot is fixed before the jitter; whatever goes wrong before the command was started still sends one fail ping.
"""

from __future__ import annotations

import zlib
from typing import Mapping, NamedTuple, Optional, Tuple

from cronguard import __version__
from cronguard.core import exitcodes, policy
from cronguard.core.config import resolve_job, text_as_given
from cronguard.core.heartbeat import STYLES
from cronguard.core.masking import mask_argv, mask_endpoint
from cronguard.core.model import Event, Invocation, JobSpec, RunRequest, Say
from cronguard.core.zones import tzdata_version
from cronguard.errors import ConfigError, CronguardError
from cronguard.pipeline.delivering import deliver_spooled
from cronguard.pipeline.passage import Passage, Place, Surroundings
from cronguard.pipeline.placing import facts_of, place_at, zone_for
from cronguard.pipeline.preview import preview
from cronguard.pipeline.slot import run_slot
from cronguard.store.flock import HostLock
from cronguard.store.spool import Spool
from cronguard.store.worker import StoreWorker
from cronguard.system import clock, host, identity
from cronguard.system.keeper import Keeper, fork_keeper
from cronguard.system.pinger import Ping, Pinger
from cronguard.system.secrets import resolve
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
            _fail_ping(request, invocation, error)
        raise
    finally:
        signals.restore()


def _run(request: RunRequest, invocation: Invocation, signals: Signals, say: Say) -> RunResult:
    workspace = open_workspace(invocation, request.job)
    resolved = resolve_job(request, workspace.document, workspace.file_name, invocation.environ)
    spec = resolved.spec
    for warning in resolved.warnings:
        say(Event("setting", "warning", {"job": spec.job}, warning))
    if spec.catch_up == "oldest":
        raise ConfigError(("--catch-up: oldest: this version only has latest",), "leave it out")
    zone = zone_for(spec, say)
    place = place_at(spec, zone, clock.now_utc(invocation.environ))
    if request.dry_run:
        return _dry_run(request, invocation, workspace, spec, place)
    host.state_dir(invocation.environ)
    keeper = fork_keeper()
    try:
        worker = workspace.worker()
        try:
            s = _surroundings(request, invocation, workspace, spec, zone, worker, keeper, signals, say)
            return _pass(s, place)
        finally:
            worker.close(1.0)
    finally:
        keeper.goodbye()


def _pass(s: Surroundings, place: Place) -> RunResult:
    delay_s = _jitter(s.spec, s.owner.host)
    if delay_s and pause(delay_s, s.signals, None) is not None:
        return RunResult(exitcodes.for_signal(s.signals.first or 15))
    deliver_spooled(s.store, s.spool, {"job": s.spec.job}, s.say)
    return _result(s.spec, run_slot(s, place))


def _result(spec: JobSpec, passage: Passage) -> RunResult:
    failed = passage.status not in ("success", "skipped")
    return RunResult(passage.leave_with, tail=passage.tail if spec.quiet and failed else b"")




def _jitter(spec: JobSpec, host_name: str) -> float:
    """A delay that is the same each time for one job on one host, and spread evenly over all of them (FR-63)."""
    share = zlib.crc32(f"{spec.job}\0{host_name}".encode()) / 2**32
    return spec.jitter_s * share


# --- surroundings ---


def _surroundings(
    request: RunRequest,
    invocation: Invocation,
    workspace: Workspace,
    spec: JobSpec,
    zone: str,
    worker: StoreWorker,
    keeper: Keeper,
    signals: Signals,
    say: Say,
) -> Surroundings:
    environ = invocation.environ
    argv = ("/bin/sh", "-c", *spec.command) if spec.shell else spec.command
    ping_url = _ping_url(spec, environ, say)
    urls = (ping_url, workspace.store)
    return Surroundings(
        spec=spec,
        facts=facts_of(spec, zone),
        zone=zone,
        tzdata=tzdata_version(),
        owner=identity.own_identity(keeper.pid, environ),
        user=host.user_name(),
        version=__version__,
        argv=argv,
        masked_argv=mask_argv(argv),
        directory=host.working_directory(spec.chdir),
        environ=environ,
        state_dir=workspace.state_dir,
        trigger="manual" if request.on_terminal or request.force else "schedule",
        force=request.force,
        store=worker,
        host_lock=HostLock(f"{workspace.state_dir}/locks", spec.lock) if spec.on_store_error == "run" else None,
        spool=Spool(workspace.spool_dir),
        keeper=keeper,
        signals=signals,
        judge=identity.make_judge(workspace.state_dir, environ),
        ping_url=ping_url,
        secrets=tuple(url for url in urls if url is not None and mask_endpoint(url) != url),
        say=say,
        now=lambda: clock.now_utc(environ),
    )


def _ping_url(spec: JobSpec, environ: Mapping[str, str], say: Say) -> Optional[str]:
    """The heartbeat's URL; one that cannot be read is said and done without (P7)."""
    if spec.ping is None:
        return None
    try:
        return resolve(spec.ping, environ, "--ping")
    except ConfigError as error:
        say(Event("ping_failed", "warning", {"job": spec.job}, f"{spec.job} runs without a heartbeat: {error}"))
        return None


# --- before the command ---


def _fail_ping(request: RunRequest, invocation: Invocation, error: CronguardError) -> None:
    """One fail ping for what never started, if the URL can still be made out (FR-48)."""
    try:
        document: Mapping[str, object] = open_workspace(invocation, request.job).document
    except CronguardError:
        document = {}
    text, style = (text_as_given(name, request, document, invocation.environ) for name in ("ping", "ping_style"))
    if not text:
        return
    try:
        url = resolve(text, invocation.environ, "--ping")
    except ConfigError:
        return
    pinger = Pinger(url, style if style in STYLES else "auto", identity.new_run_id())
    pinger.finish(Ping("fail", message=str(error)), b"", None)


def _dry_run(
    request: RunRequest, invocation: Invocation, workspace: Workspace, spec: JobSpec, place: Place
) -> RunResult:
    lateness = None if place.slot is None else (place.at_utc - place.slot.at_utc).total_seconds()
    question = policy.Question(spec, request.force, lateness, 0.0, invocation.environ.get("CRONGUARD_RUN_ID"))
    worker = workspace.worker()
    try:
        shown = preview(place, question, worker, identity.make_judge(workspace.state_dir, invocation.environ))
    finally:
        worker.close(1.0)
    return RunResult(shown.exit_code, shown.lines)
