"""`backfill`: make up missing slots of a stretch of time, oldest first, one at a time.

Which slots a job has is what the line or the config file says, else what the store remembers. Nothing is proposed from
before the job was known, unless asked for (FR-82), nor what was pruned: whether that was done nobody knows any more.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from itertools import islice
from typing import Dict, List, Mapping, NamedTuple, Optional, Tuple

from cronguard.core.config import resolve_job, resolve_settings
from cronguard.core.instants import parse_instant
from cronguard.core.missing import Missing, Stretch, Timetable
from cronguard.core.model import Event, Invocation, JobRow, JobSpec, RunRequest, Say
from cronguard.core.schedule import parse_schedule
from cronguard.core.values import judged, whole_number
from cronguard.errors import CronguardError, ScheduleError, UsageError
from cronguard.pipeline.backfilling import Made, Progress, backfill
from cronguard.pipeline.catching_up import FIND_S, search
from cronguard.pipeline.delivering import deliver_spooled
from cronguard.pipeline.placing import zone_for
from cronguard.pipeline.surroundings import Ground, Tools, fail_ping, surroundings
from cronguard.store.worker import StoreWorker
from cronguard.system import clock, host
from cronguard.system.keeper import fork_keeper
from cronguard.system.signals import Signals
from cronguard.workspace import Workspace, open_workspace

MOST = 1_000_000
_COUNTED = 1000  # slots from before the job was known: more than that are `more than`
# Settings that mean something else, or nothing, where each slot has its own key and is late by nature.
_NOT_HERE = ("run_key", "catch_up", "look_back", "max_late", "jitter")


class BackfillRequest(NamedTuple):
    """`run` as for a run; the others as typed. `everything`: also what is older than the job itself."""

    run: RunRequest
    begin: Optional[str]
    end: Optional[str]
    most: Optional[str]
    everything: bool


class Plan(NamedTuple):
    """`missing`, oldest first, at most as many as were asked for; `more`: how many beyond that. `notes`: what was left
    out and why."""

    job: str
    zone: str
    missing: Tuple[Missing, ...]
    more: int
    notes: Tuple[str, ...]


class Backfilled(NamedTuple):
    """`made` is None after a dry run."""

    plan: Plan
    made: Optional[Made]


class _Job(NamedTuple):
    """What is to be gone through."""

    spec: JobSpec
    zone: str
    times: Timetable
    plan: Plan


def run_backfill(request: BackfillRequest, invocation: Invocation, say: Say, progress: Progress) -> Backfilled:
    """One invocation. Raises CronguardError (exit code 125) when cronguard could not do its part."""
    signals = Signals()
    signals.install()
    notice = clock.test_notice(invocation.environ)
    if notice:
        say(Event("test_mode", "warning", {"job": request.run.job}, notice))
    try:
        return _run(request, invocation, signals, say, progress)
    except CronguardError as error:
        if not request.run.dry_run:
            fail_ping(request.run, _document(request.run, invocation), invocation.environ, error)
        raise
    finally:
        signals.restore()


def as_json(plan: Plan) -> Dict[str, object]:
    """The JSON of `--dry-run`, version 1: keys are only ever added."""
    slots = [
        {
            "key": unit.key,
            "local": unit.slot.local.isoformat(),
            "utc": unit.slot.at_utc.strftime("%Y-%m-%dT%H:%M:%SZ"),
            "note": unit.slot.note,
            "claims": unit.claims,
        }
        for unit in plan.missing
    ]
    return {
        "version": 1, "job": plan.job, "zone": plan.zone, "slots": slots, "more": plan.more, "notes": list(plan.notes)
    }  # fmt: skip


def _run(
    request: BackfillRequest, invocation: Invocation, signals: Signals, say: Say, progress: Progress
) -> Backfilled:
    most = MOST if request.most is None else judged("--max", whole_number(1, MOST), request.most)
    if not request.begin:
        raise UsageError("--from: missing", "say since when: an instant, a date, or a duration ago such as 36h")
    workspace = open_workspace(invocation, request.run.job)
    spec = _spec(request.run, workspace, invocation.environ, say)
    if request.run.dry_run:
        worker = workspace.worker()
        try:
            return Backfilled(_planned(request, spec, most, worker, invocation, say).plan, None)
        finally:
            worker.close(1.0)
    host.state_dir(invocation.environ)
    keeper = fork_keeper()
    try:
        worker = workspace.worker()
        try:
            worker.call(lambda store: store.prepare(FIND_S), FIND_S)
            job = _planned(request, spec, most, worker, invocation, say)
            ground = Ground(invocation.environ, workspace.state_dir, workspace.spool_dir, workspace.store)
            tools = Tools(keeper, worker, signals, say)
            s = surroundings(job.spec, job.zone, "backfill", request.run.force, ground, tools)
            deliver_spooled(s.store, s.spool, {"job": spec.job}, say)
            return Backfilled(job.plan, backfill(s, job.times, job.plan.missing, progress))
        finally:
            worker.close(1.0)
    finally:
        keeper.goodbye()


def _document(request: RunRequest, invocation: Invocation) -> Mapping[str, object]:
    """The config file, if it can be read: the error may be that it cannot."""
    try:
        return open_workspace(invocation, request.job).document
    except CronguardError:
        return {}


# --- what is asked for ---


def _spec(request: RunRequest, workspace: Workspace, environ: Mapping[str, str], say: Say) -> JobSpec:
    """The job's settings for this: without those that make no sense here, and patient with who holds the lock."""
    for name in _NOT_HERE:
        if name in request.options:
            raise UsageError(f"--{name.replace('_', '-')}: not for a backfill: each slot has its own key and is late")
    resolve = resolve_settings if request.dry_run else resolve_job
    resolved = resolve(request, workspace.document, workspace.file_name, environ)
    for warning in resolved.warnings:
        say(Event("setting", "warning", {"job": request.job}, warning))
    spec = resolved.spec
    patient = "wait" if spec.on_conflict == "skip" else spec.on_conflict
    return spec._replace(run_key=None, catch_up="latest", max_late_s=None, on_conflict=patient)


def _planned(
    request: BackfillRequest, spec: JobSpec, most: int, worker: StoreWorker, invocation: Invocation, say: Say
) -> _Job:
    row = next(iter(worker.call(lambda store: store.jobs((spec.job,), FIND_S), FIND_S)), None)
    spec = _with_schedule(spec, row)
    zone = zone_for(spec, say)
    assert spec.schedule is not None
    times = Timetable(parse_schedule(spec.schedule, zone), spec.key, zone)
    now_utc = clock.now_utc(invocation.environ)
    low, high = _range(request, zone, now_utc)
    stretch, notes = _stretch(request, times, row, low, high)
    found = _missing(request, spec.job, times, stretch, worker)
    plan = Plan(spec.job, zone, tuple(found[:most]), max(0, len(found) - most), notes)
    return _Job(spec, zone, times, plan)


def _with_schedule(spec: JobSpec, row: Optional[JobRow]) -> JobSpec:
    """The line's and the file's schedule, else the one that the job last ran with, with its zone and key."""
    if spec.schedule is None and row is not None and row.facts.schedule is not None:
        facts = row.facts
        spec = spec._replace(schedule=facts.schedule, timezone=spec.timezone or facts.zone, key=facts.key)
    if spec.schedule is None:
        raise UsageError(
            f"no schedule: {spec.job}: neither the line, nor the config file, nor an earlier run has one",
            "give --cron, --calendar or --every",
        )
    if spec.key == "none":
        raise UsageError(f"--key: none: no slot of {spec.job} is ever done, so none is missing", "give another --key")
    return spec


def _range(request: BackfillRequest, zone: str, now_utc: datetime) -> Tuple[datetime, datetime]:
    """From and to, exclusive; what is not due yet is not missing."""
    due = now_utc + timedelta.resolution
    low = _instant("--from", str(request.begin), zone, now_utc)
    high = due if request.end is None else _instant("--to", request.end, zone, now_utc)
    if low >= high:
        raise UsageError(f"--from: {request.begin}: not before the end", "--to is exclusive, and now without it")
    return low, min(high, due)


def _instant(option: str, text: str, zone: str, now_utc: datetime) -> datetime:
    try:
        return parse_instant(text, zone, now_utc)
    except ScheduleError as error:
        raise UsageError(f"{option}: {error.message}", error.hint) from None


def _stretch(
    request: BackfillRequest, times: Timetable, row: Optional[JobRow], low: datetime, high: datetime
) -> Tuple[Stretch, Tuple[str, ...]]:
    """The part of the range that is proposed, and what of it is not."""
    if row is None:
        return Stretch(low, high), ()
    notes: List[str] = []
    known, pruned = row.first_seen_utc, row.pruned_before_utc
    if pruned is not None and pruned >= low and not request.run.force:
        low = pruned + timedelta.resolution
        notes.append(f"slots up to {pruned:%Y-%m-%d %H:%MZ} were pruned: nobody knows any more whether they were done")
    if request.everything or known <= low:
        return Stretch(low, high), tuple(notes)
    stretch = times.stretch(known, low, high)
    before = Stretch(low, min(known, high if stretch.lead is None else stretch.lead.slot.at_utc))
    older = sum(1 for _ in islice(times.units(before), _COUNTED + 1))
    if older > 0:
        count = f"more than {_COUNTED}" if older > _COUNTED else str(older)
        notes.append(f"{count} slots from before the job was known ({known:%Y-%m-%d %H:%MZ}): --all takes them too")
    return stretch, tuple(notes)


def _missing(
    request: BackfillRequest, job: str, times: Timetable, stretch: Stretch, worker: StoreWorker
) -> List[Missing]:
    """Oldest first; with --force every unit, done or not."""
    if stretch.low_utc >= stretch.high_utc and stretch.lead is None:
        return []
    if request.run.force:
        return [Missing(unit.key, unit.slot, 0) for unit in times.units(stretch)]
    return [unit for page in search(job, times, stretch, worker, FIND_S) for unit in page.missing]
