"""`check`: finds by what is stored, without any new event, what is wrong, and tells people once.

Any host may check, several may at once: what was told is kept in the store. It first brings in what runs on this host
could not record, closes nothing itself, and reads summaries; only for jobs with findings it looks at a row or two. A
job that only the config file knows is noted in the store when a check first sees it; from then on its slots count, so
that one that never starts is found (`never_ran`), and a new one is not reported for slots of before.
"""

from __future__ import annotations

from datetime import datetime
from functools import lru_cache
from typing import Dict, List, Mapping, NamedTuple, Optional, Sequence, Tuple

from cronguard.core import health, overdue
from cronguard.core.config import overruled, resolve_settings
from cronguard.core.document import table_of, text_of
from cronguard.core.durations import parse_duration
from cronguard.core.health import NOBODY, Case
from cronguard.core.instants import parse_instant
from cronguard.core.model import Alerts, Event, Finding, Invocation, JobRow, JobSpec, Judge, Notice, RunRequest, Say
from cronguard.core.schedule import parse_schedule
from cronguard.core.settings import ALERTS, NOTIFY
from cronguard.core.values import judged
from cronguard.errors import ConfigError, ScheduleError, StoreError
from cronguard.overview import Overview, judged_workspace, overview
from cronguard.pipeline.alarming import Alarm, tell_people
from cronguard.pipeline.delivering import deliver_spooled
from cronguard.pipeline.placing import facts_of
from cronguard.store.rows import owner_of
from cronguard.store.spool import Spool
from cronguard.store.worker import StoreWorker
from cronguard.system import clock, host, identity
from cronguard.system.notifier import Notifier
from cronguard.system.outbox import Outbox
from cronguard.system.pinger import Ping, once
from cronguard.system.secrets import resolve
from cronguard.workspace import Workspace

WITHIN_S = 10.0
_CLOSELY = 50  # jobs with findings of which rows are read for advice; more at once have one cause
_parsed = lru_cache(maxsize=4096)(parse_schedule)  # thousands of jobs share a few schedules
_STATES = ("ok", "unknown", "warning", "critical")  # a critical job matters more than one that cannot be judged


class CheckRequest(NamedTuple):
    """`options`: alert settings given in the line, which overrule those of every job; `at` as typed."""

    jobs: Tuple[str, ...]
    options: Mapping[str, str]
    at: Optional[str] = None
    notify: bool = False
    ping: Optional[str] = None


class Checked(NamedTuple):
    """`state`: ok, warning, critical or unknown. `paused` and `unjudged`: job and why. `told`: what this invocation was
    to tell people; None without `--notify`."""

    state: str
    findings: Tuple[Finding, ...]
    jobs: int
    paused: Tuple[Tuple[str, str], ...]
    unjudged: Tuple[Tuple[str, str], ...]
    told: Optional[Tuple[Notice, ...]]
    at_utc: datetime


class _Scene(NamedTuple):
    """What the judging needs besides the rows."""

    workspace: Workspace
    worker: StoreWorker
    specs: Mapping[str, JobSpec]  # of the jobs that the config file has, options included
    options: Mapping[str, object]
    at_utc: datetime
    judge: Judge
    environ: Mapping[str, str]


def check(request: CheckRequest, invocation: Invocation, say: Say) -> Checked:
    """The findings at an instant. NotFound for a job that nobody knows, ConfigError with every mistake of the file."""
    workspace = judged_workspace(invocation)
    spool = Spool(workspace.spool_dir)
    with overview(workspace, before=lambda store: deliver_spooled(store, spool, {}, say)) as known:
        scene = _scene(request, invocation, workspace, known.store)
        _note_first_sight(scene, [spec for name, spec in scene.specs.items() if name not in known.rows], say)
        chosen = known.chosen(request.jobs) if request.jobs else _expected(known, scene)
        result = _judged(scene, [known.rows[name] for name in chosen if name in known.rows], chosen)
        if request.notify:
            names = chosen if request.jobs else (*chosen, NOBODY)
            result = result._replace(told=tell_people(_alarm(scene), names, result.findings, say))
    _ping(request, workspace, invocation.environ, say)
    return result


def _ping(request: CheckRequest, workspace: Workspace, environ: Mapping[str, str], say: Say) -> None:
    """The heartbeat of check itself: success whatever was found, for it says that somebody looked."""
    text = request.ping or table_of(workspace.document, "notify").get("ping")
    if not isinstance(text, str) or text == "none":
        return
    try:
        said = once(resolve(text, environ, "--ping" if request.ping else "[notify] ping"), "auto", Ping("success"))
    except ConfigError as error:
        said = f"not delivered: {error}"
    if "not delivered" in said:
        say(Event("ping_failed", "warning", {}, f"the heartbeat of check: {said}"))


def as_json(result: Checked) -> Dict[str, object]:
    """The JSON of `check`, version 1: keys are only ever added."""
    from cronguard.core.records import instant_as_json, unicode_text

    incidents = [
        {
            "job": finding.job,
            "kind": finding.kind,
            "state": finding.state,
            "summary": unicode_text(finding.summary),
            "since": instant_as_json(finding.since_utc),
            "check_first": [unicode_text(line) for line in finding.check_first],
        }
        for finding in result.findings
    ]
    others = {"paused": result.paused, "unjudged": result.unjudged}
    listed = {name: [{"job": job, "why": why} for job, why in pairs] for name, pairs in others.items()}
    return {"version": 1, "state": result.state, "incidents": incidents, "jobs": result.jobs, **listed}


def _scene(request: CheckRequest, invocation: Invocation, workspace: Workspace, worker: StoreWorker) -> _Scene:
    environ = invocation.environ
    document, file_name = workspace.document, workspace.file_name
    specs = {
        name: resolve_settings(RunRequest(name, (), request.options), document, file_name, environ).spec
        for name in table_of(document, "jobs")
    }
    options = {
        setting.name: judged(setting.option, setting.parse, request.options[setting.name])
        for setting in ALERTS
        if setting.name in request.options
    }
    now_utc = clock.now_utc(environ)
    at_utc = now_utc if request.at is None else parse_instant(request.at, _zone(workspace, environ), now_utc)
    judge = identity.make_judge(workspace.state_dir, environ)
    return _Scene(workspace, worker, specs, options, at_utc, judge, environ)


def _alarm(scene: _Scene) -> Alarm:
    notify = table_of(scene.workspace.document, "notify")
    remind = NOTIFY["remind"]
    remind_text = text_of(remind, notify["remind"]) if "remind" in notify else str(remind.default)
    urls = notify.get("urls")
    outbox = Outbox(f"{scene.workspace.spool_dir}/outbox")
    return Alarm(
        worker=scene.worker,
        notifier=Notifier(tuple(urls) if isinstance(urls, list) else (), scene.environ, outbox),
        remind_s=parse_duration(remind_text),
        at_utc=scene.at_utc,
    )


def _zone(workspace: Workspace, environ: Mapping[str, str]) -> str:
    """The company's: what a job without any settings of its own would get."""
    without_jobs = {name: table for name, table in workspace.document.items() if name != "jobs"}
    spec = resolve_settings(RunRequest("check", (), {}), without_jobs, workspace.file_name, environ).spec
    return spec.timezone or host.host_zone() or "UTC"


def _note_first_sight(scene: _Scene, specs: Sequence[JobSpec], say: Say) -> None:
    """By the real clock, whatever `--at` says: the store remembers it for good."""
    expected = [spec for spec in specs if spec.schedule is not None or spec.alerts.max_age_s is not None]
    if not expected:
        return
    now_utc = clock.now_utc(scene.environ)
    try:
        scene.worker.call(lambda store: store.prepare(WITHIN_S), WITHIN_S)
        for spec in expected:
            facts = facts_of(spec, spec.timezone or host.host_zone() or "UTC")
            scene.worker.call(lambda store, facts=facts: store.remember(facts, now_utc, WITHIN_S), WITHIN_S)  # type: ignore[misc]
    except StoreError as error:
        names = ", ".join(spec.job for spec in expected)
        text = f"these jobs of the config file have never run and could not be noted in the store: {names}: {error}"
        say(Event("not_noted", "warning", {}, text))


def _expected(known: Overview, scene: _Scene) -> Tuple[str, ...]:
    """All but those that only the config file has and that have no schedule to be late for."""
    planned = {name for name, spec in scene.specs.items() if spec.schedule is not None}
    return tuple(name for name in known.names if name in known.rows or name in planned)


# --- judging ---


def _judged(scene: _Scene, rows: Sequence[JobRow], chosen: Sequence[str]) -> Checked:
    findings: List[Finding] = []
    unjudged: List[Tuple[str, str]] = []
    paused = [(row.facts.job, _pause_text(row)) for row in rows if overdue.is_paused(row, scene.at_utc)]
    looked_at = 0
    for row in rows:
        try:
            case = _case(scene, row)
        except ScheduleError as error:  # from a newer cronguard, or this host lacks a zone
            unjudged.append((row.facts.job, f"{row.facts.job} cannot be judged on this host: {error}"))
            continue
        found = health.findings_of(case)
        if found and looked_at < _CLOSELY:
            looked_at += 1
            found = health.findings_of(_closer(scene, case))
        findings += found
    if not chosen:
        findings.append(health.nothing_to_check(scene.at_utc))
    states = [finding.state for finding in findings] + ["unknown"] * len(unjudged)
    state = max(states, key=_STATES.index, default="ok")
    return Checked(state, tuple(findings), len(chosen), tuple(paused), tuple(unjudged), None, scene.at_utc)


def _case(scene: _Scene, row: JobRow) -> Case:
    row = row._replace(facts=row.facts._replace(alerts=_alerts_of(scene, row)))
    facts, run = row.facts, row.running
    schedule = _parsed(facts.schedule, facts.zone) if facts.schedule else None
    verdict, lease_over = None, False
    if run is not None:
        verdict = scene.judge(owner_of(run), run.run_id)
        # The store's clock set it, so a clock for tests has no say.
        until = row.running_lease_utc if scene.worker.leased else None
        lease_over = until is not None and until < clock.now_utc({})
    case = Case(row, scene.at_utc, schedule, verdict, lease_over)
    if schedule is None or facts.alerts.slots != "each" or facts.key == "none" or overdue.is_paused(row, scene.at_utc):
        return case
    units = overdue.units_due(row, schedule, scene.at_utc)
    undone = scene.worker.call(lambda store: store.undone(facts.job, tuple(units), WITHIN_S), WITHIN_S)
    return case._replace(undone=tuple((key, units[key]) for key in undone))


def _alerts_of(scene: _Scene, row: JobRow) -> Alerts:
    """The command line's; else those of the job's table in this host's config file; else what the job last ran with."""
    spec = scene.specs.get(row.facts.job)
    return spec.alerts if spec is not None else overruled(row.facts.alerts, scene.options)


def _closer(scene: _Scene, case: Case) -> Case:
    """The same with what only rows tell: the end of the output, and on what the job last succeeded."""
    job, last = case.row.facts.job, case.row.last_run
    if last is None:
        return case
    ended = scene.worker.call(lambda store: store.find_runs(last.run_id, WITHIN_S), WITHIN_S)
    good = scene.worker.call(lambda store: store.history(job, 1, ("success",), None, WITHIN_S), WITHIN_S)
    return case._replace(tail=ended[0].tail if ended else "", last_good=good[0] if good else None)


def _pause_text(row: JobRow) -> str:
    until = f" until {row.paused_until_utc:%Y-%m-%d %H:%MZ}" if row.paused_until_utc else ""
    reason = f": {row.paused_reason}" if row.paused_reason else ""
    return f"{row.facts.job} is paused since {row.paused_since_utc:%Y-%m-%d %H:%MZ}{until}{reason}"
