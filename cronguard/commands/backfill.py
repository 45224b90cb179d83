"""`cronguard backfill`: what is missing in a stretch of time, and making it up.

How the job runs is what the command line and the config file say, and beyond that what the store remembers of it: most
crontab lines give the schedule as an option, and whoever repairs at night does not know it by heart. A slot is missing
only if the job was known, with the same schedule, zone and key, when it was due: before that nobody knows what was
done, or under which key. One start ping and one terminal ping for the whole (FR-49).
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Dict, List, Mapping, NamedTuple, Optional, Tuple

from cronguard.core import exitcodes
from cronguard.core.config import resolve_job, resolve_settings, text_as_given
from cronguard.core.document import table_of
from cronguard.core.instants import local_text, parse_instant, utc_text
from cronguard.core.missing import Missing, Timetable
from cronguard.core.model import Event, Invocation, JobRow, JobSpec, RunRequest, Say
from cronguard.core.names import no_such_job
from cronguard.core.overdue import known_since
from cronguard.core.schedule import parse_schedule
from cronguard.core.settings import RIVALS
from cronguard.core.values import judged, whole_number
from cronguard.core.zones import is_utc
from cronguard.errors import ConfigError, CronguardError, ScheduleError, UsageError
from cronguard.pipeline.backfilling import Filled, Plan, Tally, Watch, fill
from cronguard.pipeline.delivering import deliver_spooled
from cronguard.pipeline.gaps import MOST, Gaps, Wanted, find_gaps, say_left_out
from cronguard.pipeline.passage import Surroundings
from cronguard.pipeline.placing import zone_for
from cronguard.pipeline.surroundings import Ground, Tools, fail_ping, surroundings
from cronguard.store.worker import StoreWorker
from cronguard.system import clock, host
from cronguard.system.clock import boot_s
from cronguard.system.identity import new_run_id
from cronguard.system.keeper import Keeper, fork_keeper
from cronguard.system.pinger import Ping, Pinger
from cronguard.system.signals import Signals
from cronguard.workspace import Workspace, open_workspace

WITHIN_S = 10.0

# Settings that mean nothing here, whatever config file or remembered job say.
_SET_ASIDE = {"catch_up": "latest", "max_late": "none", "jitter": "0"}


class BackfillRequest(NamedTuple):
    """`run`: job, command and options as `run` takes them, and its `force` and `dry_run`; the others as typed."""

    run: RunRequest
    start: Optional[str]
    end: Optional[str] = None
    most: Optional[str] = None
    whole: bool = False


class Found(NamedTuple):
    """`--dry-run`: what would be made up."""

    spec: JobSpec
    zone: str
    gaps: Gaps


class Backfilled(NamedTuple):
    """`trouble`: why cronguard could not do its part, None if it could. `tail` is for `--quiet` after a failure."""

    exit_code: int
    tally: Tally
    more: bool
    trouble: Optional[CronguardError]
    tail: bytes = b""


class _Scene(NamedTuple):
    """What the job is, as of when."""

    request: BackfillRequest
    spec: JobSpec
    zone: str
    row: Optional[JobRow]
    now_utc: datetime


def find(request: BackfillRequest, invocation: Invocation, say: Say) -> Found:
    """What a backfill would make up; touches nothing. CronguardError when nobody can tell."""
    workspace = open_workspace(invocation, request.run.job)
    worker = workspace.worker()
    try:
        scene = _scene(request, workspace, worker, invocation, say)
        return Found(scene.spec, scene.zone, _gaps(scene, worker, say))
    finally:
        worker.close(1.0)


def backfill(request: BackfillRequest, invocation: Invocation, say: Say, watch: Watch) -> Backfilled:
    """Make it up. Raises CronguardError (exit code 125) when it could not begin."""
    signals = Signals()
    signals.install()
    notice = clock.test_notice(invocation.environ)
    if notice:
        say(Event("test_mode", "warning", {"job": request.run.job}, notice))
    document: Mapping[str, object] = {}
    try:
        workspace = open_workspace(invocation, request.run.job)
        document = workspace.document
        host.state_dir(invocation.environ)
        keeper = fork_keeper()
        try:
            return _with_keeper(request, workspace, keeper, signals, invocation, say, watch)
        finally:
            keeper.goodbye()
    except CronguardError as error:
        fail_ping(request.run, document, invocation.environ, error)
        raise
    finally:
        signals.restore()


def _with_keeper(
    request: BackfillRequest,
    workspace: Workspace,
    keeper: Keeper,
    signals: Signals,
    invocation: Invocation,
    say: Say,
    watch: Watch,
) -> Backfilled:
    worker = workspace.worker()
    try:
        worker.call(lambda store: store.prepare(WITHIN_S), WITHIN_S)
        scene = _scene(request, workspace, worker, invocation, say)
        ground = Ground(invocation.environ, workspace.state_dir, workspace.spool_dir, workspace.store)
        tools = Tools(keeper, worker, signals, say)
        s = surroundings(scene.spec, scene.zone, "backfill", False, ground, tools)
        # A host whose runs may do without the store shares their lock with us; we ourselves need the store.
        s = s._replace(spec=scene.spec._replace(on_store_error="fail"))
        deliver_spooled(worker, s.spool, {"job": scene.spec.job}, say)
        gaps = _gaps(scene, worker, say)
        plan = Plan(_times(scene), gaps.missing, scene.now_utc, gaps.unknown)
        return _result(scene, gaps, _fill(s, plan, watch), say)
    finally:
        worker.close(1.0)


def _fill(s: Surroundings, plan: Plan, watch: Watch) -> Filled:
    """With the pings of the whole: a start ping with the first command, and none at all if nothing was begun."""
    if s.ping_url is None:
        return fill(s, plan, watch)
    pinger = Pinger(s.ping_url, s.spec.ping_style, new_run_id())
    began = boot_s()
    started: List[bool] = []

    def start() -> None:
        if not started:
            started.append(True)
            pinger.start()

    filled = fill(s._replace(ping_url=None, on_started=start), plan, watch)
    stop = filled.stop
    if started or filled.tally.failed or (stop is not None and stop.trouble is not None):
        ping = Ping("success") if stop is None else Ping("fail", message=f"slot {stop.key}: {stop.why}")
        told = pinger.finish(ping, b"" if stop is None else stop.tail, boot_s() - began)
        if "not delivered" in told:
            s.say(Event("ping_failed", "warning", {"job": s.spec.job}, f"heartbeat of {s.spec.job}: {told}"))
    return filled


def _result(scene: _Scene, gaps: Gaps, filled: Filled, say: Say) -> Backfilled:
    stop, tally = filled.stop, filled.tally
    if stop is None:
        return Backfilled(exitcodes.DONE, tally, gaps.more, None)
    rest = f"{tally.left + tally.failed} of {len(gaps.missing)} are not done; the same command goes on with them"
    say(Event("stopped", "error", {"job": scene.spec.job, "key": stop.key}, f"{stop.why}; {rest}"))
    tail = stop.tail if scene.spec.quiet else b""
    return Backfilled(stop.leave_with, tally, gaps.more, stop.trouble, tail)


# --- what the job is ---


def _scene(
    request: BackfillRequest, workspace: Workspace, worker: StoreWorker, invocation: Invocation, say: Say
) -> _Scene:
    job, environ = request.run.job, invocation.environ
    row = next(iter(worker.call(lambda store: store.jobs((job,), WITHIN_S), WITHIN_S)), None)
    if text_as_given("run_key", request.run, workspace.document, environ) is not None:
        raise ConfigError(["run_key: its keys are not worked out from the schedule, so nobody knows what is missing"])
    options = {**_remembered(row, request.run, workspace.document, environ), **request.run.options, **_SET_ASIDE}
    resolve = resolve_settings if request.run.dry_run else resolve_job
    asked = request.run._replace(options=options)
    resolved = resolve(asked, workspace.document, workspace.file_name, environ)
    spec = resolved.spec
    for warning in resolved.warnings:
        say(Event("setting", "warning", {"job": job}, warning))
    if spec.schedule is None:
        if row is None and job not in table_of(workspace.document, "jobs"):
            raise no_such_job(job, table_of(workspace.document, "jobs"))
        what = f"no schedule: {job}: neither the command line, the config file nor its last run has one"
        raise UsageError(what, "add --cron, --calendar or --every")
    if spec.key == "none":
        raise UsageError("--key: none: every run is its own, so no slot is ever missing", "say what once means")
    if request.run.force:
        spec = spec._replace(redo="failed")
    return _Scene(request, spec, zone_for(spec, say), row, clock.now_utc(environ))


def _remembered(
    row: Optional[JobRow], request: RunRequest, document: Mapping[str, object], environ: Mapping[str, str]
) -> Dict[str, str]:
    """What nobody says now and the store knows: when the job is due, what once means, how long it may take."""
    if row is None or row.facts.schedule is None:
        return {}
    facts, schedule = row.facts, row.facts.schedule
    known = {"timezone": facts.zone, "key": facts.key, "redo": facts.redo, "grace": _seconds(facts.grace_s)}
    known["timeout"] = _seconds(facts.timeout_s or 0)
    if row.last_run is not None:
        known["lock"] = row.last_run.lock

    def is_given(name: str) -> bool:
        return text_as_given(name, request, document, environ) is not None

    remembered = {name: text for name, text in known.items() if not is_given(name)}
    if not any(is_given(kind) for kind in RIVALS[0]):
        remembered[schedule.kind] = schedule.text
    return remembered


def _seconds(seconds: float) -> str:
    return f"{seconds:.3f}s" if seconds else "0"


def _times(scene: _Scene) -> Timetable:
    assert scene.spec.schedule is not None
    return Timetable(parse_schedule(scene.spec.schedule, scene.zone), scene.spec.key, scene.zone)


# --- what is missing ---


def _gaps(scene: _Scene, worker: StoreWorker, say: Say) -> Gaps:
    wanted = _wanted(scene)
    gaps = find_gaps(scene.spec.job, _times(scene), wanted, worker)
    if scene.row is None:
        text = "the job has never run: all of the time asked for is taken; to go on later after a stop add --all"
        say(Event("new_job", "warning", {"job": scene.spec.job}, text))
    say_left_out(scene.spec.job, wanted, gaps, say)
    return gaps


def _wanted(scene: _Scene) -> Wanted:
    request, row, now_utc = scene.request, scene.row, scene.now_utc
    low = _instant("--from", request.start, scene)
    due = now_utc + timedelta.resolution
    high = due if request.end is None else min(_instant("--to", request.end, scene), due)
    if low >= high:
        raise UsageError(f"--from: {request.start}: not before {'now' if high == due else '--to'}")
    return Wanted(
        low_utc=low,
        high_utc=high,
        most=MOST if request.most is None else judged("--max", whole_number(1, MOST), request.most),
        known_utc=None if row is None or request.whole else _known_since(row, scene),
        pruned_before_utc=None if row is None else row.pruned_before_utc,
        forced=request.run.force,
        retried=scene.spec.redo != "never",
    )


def _known_since(row: JobRow, scene: _Scene) -> datetime:
    """Never, if what it is to be now is not what it was when it last ran."""
    known = (row.facts.schedule, row.facts.zone, row.facts.key)
    return known_since(row) if known == (scene.spec.schedule, scene.zone, scene.spec.key) else scene.now_utc


def _instant(option: str, text: Optional[str], scene: _Scene) -> datetime:
    if text is None:
        raise UsageError(f"no {option}: since when?", f"write {option} 2026-01-20 or, for so long ago, {option} 36h")
    try:
        return parse_instant(text, scene.zone, scene.now_utc)
    except ScheduleError as error:
        raise UsageError(f"{option}: {error.message}", error.hint) from None


# --- as data ---


def summary(result: Backfilled) -> str:
    """`backfilled=9 already_done=1 failed=0 left=0`, and `more=yes` if more is missing than was asked for."""
    done, already_done, failed, left = result.tally
    more = " more=yes" if result.more else ""
    return f"backfilled={done} already_done={already_done} failed={failed} left={left}{more}"


def result_as_json(result: Backfilled) -> Dict[str, object]:
    """The JSON of a backfill, version 1: keys are only ever added."""
    done, already_done, failed, left = result.tally
    numbers = {"backfilled": done, "already_done": already_done, "failed": failed, "left": left}
    return {"version": 1, **numbers, "more": result.more, "exit_code": result.exit_code}


def found_as_json(found: Found) -> Dict[str, object]:
    """The JSON of `--dry-run`, version 1: keys are only ever added. Slots as `next` has them."""
    gaps = found.gaps
    slots = [dict(zip(("key", "local", "utc", "note"), texts_of(unit, found.zone))) for unit in gaps.missing]
    listed = [
        {**slot, "note": unit.slot.note, "claims": unit.claims} for slot, unit in zip(slots, gaps.missing)
    ]
    left_out = {"before_known": gaps.before_known, "pruned": gaps.pruned, "tried": gaps.tried}
    return {"version": 1, "job": found.spec.job, "zone": found.zone, "slots": listed, "more": gaps.more,
            "left_out": left_out}  # fmt: skip


def texts_of(unit: Missing, zone: str) -> Tuple[str, str, str, str]:
    """Key, real local time, UTC, and the note on it."""
    slot = unit.slot
    return unit.key, local_text(slot.local, is_utc(zone)), utc_text(slot.at_utc), slot.note or ""
