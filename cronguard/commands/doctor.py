"""`doctor`: the going-live checklist. What is wrong is an item, never the end: the rest is still looked at.

Everything that may hang is looked at in parallel and has a deadline. Nothing is pinged, nothing started; what is tried
on the store is undone. Only finishes that wait in the spool are delivered, as every check does. Judging is
core.checkup's.
"""

from __future__ import annotations

import os
import sys
from datetime import timedelta
from typing import Dict, List, Mapping, NamedTuple, Optional, Sequence, Tuple

from cronguard import __version__
from cronguard.core.checkup import clocks, fleet, jobs, places, plans, store
from cronguard.core.checkup.facts import Beat, Clocks, Here, Plan, Program, Starts, StoreFacts, Waiting
from cronguard.core.checkup.item import FAILURE, WARNING, Item, worst_of
from cronguard.core.checkup.lines import entries_of
from cronguard.core.checkup.planning import Known, plans_of
from cronguard.core.checkup.secrets import has_secrets, secret_files
from cronguard.core.config import resolve_store
from cronguard.core.document import Table, check_document, table_of
from cronguard.core.masking import mask_endpoint
from cronguard.core.model import Invocation, JobRow, Say
from cronguard.core.names import no_such_job
from cronguard.core.zones import is_utc, tzdata_version
from cronguard.errors import ConfigError, StoreError
from cronguard.pipeline.delivering import deliver_spooled
from cronguard.store.probing import Probe, probe_of
from cronguard.store.spool import Spool
from cronguard.store.worker import StoreWorker
from cronguard.system import clock, clockwork, host, reach
from cronguard.system import places as places_here
from cronguard.system.config_file import load_config
from cronguard.system.errands import Errand
from cronguard.system.secrets import resolve
from cronguard.workspace import Workspace, workspace_of

STORE_S = 6.0
LOOK_S = 5.0
TIMER_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"  # systemd.exec(5)


class Checkup(NamedTuple):
    """`state`: ok, warning or failure. `jobs`: how many were looked at."""

    state: str
    items: Tuple[Item, ...]
    jobs: int


class _Config(NamedTuple):
    """`problems` of the file; `is_read`: False when not even its text could be had."""

    document: Table
    file_name: str
    problems: Tuple[str, ...]
    is_read: bool = True


class _StoreLook(NamedTuple):
    """`starts` None: the store did not tell."""

    items: List[Item]
    facts: Optional[StoreFacts] = None
    rows: Mapping[str, JobRow] = {}
    starts: Optional[Starts] = None


def doctor(names: Sequence[str], invocation: Invocation, say: Say) -> Checkup:
    """All items. NotFound for a job that neither store, config file nor a line of this host knows."""
    environ = invocation.environ
    here = _here(environ)
    around = Errand(lambda: clockwork.look_around(here.user, environ), LOOK_S * 2)
    config = _config(invocation)
    files = Errand(lambda: [places_here.private_file(*each) for each in _files(config, invocation)], LOOK_S)
    workspace, problem = _workspace(config, invocation)
    look = _store_look(workspace, problem, invocation, say)
    found = _clocks(around)
    clocks_found, starts = found or Clocks(), look.starts or Starts()
    document = {} if config.problems else config.document
    known = Known(look.rows, document, config.file_name, clocks_found.entries, environ, here.zone, here.now_utc)
    chosen = _chosen(names, known, config, look)
    planned, unclear = plans_of(chosen, known)
    programs = Errand(lambda: [_program(plan, known) for plan in planned if plan.spec is not None], LOOK_S)
    beats = _beats(planned, config.document, environ)
    items = [
        *fleet.version_items(here, starts.tallies),
        *places.private_items(files.result(), config.problems),
        *_places(workspace, here, environ),
        *look.items,
        *store.other_stores(table_of(document, "jobs"), chosen),
        *fleet.zone_items(planned, here, unclear),
        *fleet.cron_zone_items(planned, clocks_found.entries, here, is_utc),
        *fleet.tzdata_items(here, look.starts.tallies if look.starts else None),
        *(clocks.clock_items(planned, found, starts, here) if found is not None else clocks.unseen()),
        *fleet.scheduler_items(starts, clocks_found.entries, _is_leased(look, workspace), chosen),
        *plans.timeout_items(planned),
        *plans.lease_items(planned, _is_leased(look, workspace)),
        *jobs.heartbeat_items(beats, planned),
        *jobs.alert_items(clocks_found, bool(table_of(config.document, "notify").get("urls")), beats),
        *jobs.release_items(programs.result(), look.rows, here.host),
    ]
    return Checkup(worst_of(items), tuple(items), len(chosen))


def as_json(result: Checkup) -> Dict[str, object]:
    """The JSON of `doctor`, version 1: keys are only ever added."""
    from cronguard.core.records import unicode_text

    items = [
        {name: unicode_text(value) if isinstance(value, str) else value for name, value in item._asdict().items()}
        for item in result.items
    ]
    return {"version": 1, "state": result.state, "items": items, "jobs": result.jobs}


# --- surroundings ---


def _here(environ: Mapping[str, str]) -> Here:
    version = ".".join(map(str, sys.version_info[:3]))
    return Here(
        host.host_name(environ), host.user_name(), __version__, version, host.host_zone(), tzdata_version(),
        clock.now_utc(environ), places_here.is_container(),
    )


def _config(invocation: Invocation) -> _Config:
    try:
        document, file_name = load_config(invocation.config, invocation.environ)
    except ConfigError as error:
        return _Config({}, "", error.problems, is_read=False)
    return _Config(document, file_name, check_document(document, file_name))


def _files(config: _Config, invocation: Invocation) -> List[Tuple[str, str, bool]]:
    """The config file and all that are named by `file:`, the store's too."""
    own = [(config.file_name, "config", has_secrets(config.document))] if config.file_name else []
    named = [(path, what, True) for path, what in secret_files(config.document)]
    given = resolve_store(invocation.store, None, config.document, config.file_name, invocation.environ)
    if given is not None and given.value_text.startswith("file:"):
        named.append((given.value_text[len("file:") :], given.source, True))
    return list({path: (path, what, secret) for path, what, secret in reversed([*own, *named])}.values())[::-1]


def _workspace(config: _Config, invocation: Invocation) -> Tuple[Optional[Workspace], str]:
    """The workspace, or why there is none."""
    if not config.is_read and resolve_store(invocation.store, None, {}, "", invocation.environ) is None:
        return None, "which store is meant cannot be told without the config file"
    try:
        return workspace_of(config.document, config.file_name, invocation, None), ""
    except ConfigError as error:
        return None, str(error)


def _clocks(around: Errand[clockwork.Found]) -> Optional[Clocks]:
    found = around.result()
    if found is None:
        return None
    entries, checks = entries_of(found.files, found.timers)
    return Clocks(entries, found.daemons, found.unread, checks)


def _places(workspace: Optional[Workspace], here: Here, environ: Mapping[str, str]) -> List[Item]:
    try:
        state_dir = host.state_path(environ)
    except ConfigError as error:
        return [Item("state", FAILURE, str(error))]
    kind, _, path = (workspace.store if workspace is not None else "").partition(":")
    store_dir = os.path.dirname(path) if kind == "sqlite" else ""
    items = _folder("state", state_dir, state_dir == store_dir, here)
    if store_dir not in ("", state_dir):
        items += _folder("store file", store_dir, True, here)
    own = workspace.spool_dir if workspace is not None else ""
    spooled = Errand(lambda: places_here.spooled(state_dir, own), LOOK_S).result()
    return [*items, *(places.waiting_items(Waiting(*spooled)) if spooled is not None else [])]


def _folder(name: str, place: str, holds_store: bool, here: Here) -> List[Item]:
    try:
        folder = Errand(lambda: places_here.folder_at(place), LOOK_S).result()
    except OSError as error:
        return [Item(name, FAILURE, f"{place}: {(error.strerror or 'cannot be looked at').lower()}")]
    if folder is None:
        text = f"{place}: its file system does not answer within {LOOK_S:.0f} s"
        return [Item(name, FAILURE, text, "look at the mount")]
    return places.folder_items(name, folder, holds_store, here)


# --- the store ---


def _store_look(workspace: Optional[Workspace], problem: str, invocation: Invocation, say: Say) -> _StoreLook:
    if workspace is None:
        return _StoreLook(store.down(problem, "see `cronguard config`"))
    kind, _, path = workspace.store.partition(":")
    try:
        shared = Errand(lambda: kind == "sqlite" and host.file_system_kind(os.path.dirname(path))[1], LOOK_S).result()
        if shared is None:
            return _StoreLook(store.down(f"{path}: its file system does not answer", "look at the mount"))
        probe = probe_of(workspace.store, shared)
    except (ConfigError, StoreError) as error:
        return _StoreLook(store.down(error.message, error.hint))
    worker = StoreWorker(probe)
    try:
        facts = worker.call(lambda _: probe.examine(lambda: clock.now_utc(invocation.environ), STORE_S), STORE_S)
        look = _StoreLook(store.store_items(facts, workspace.store_source), facts)
        return look if facts.refused else _told_by_store(look, worker, probe, workspace, invocation, say)
    except StoreError as error:
        return _StoreLook(store.down(error.message, error.hint))
    finally:
        worker.close(1.0)


def _told_by_store(
    look: _StoreLook, worker: StoreWorker, probe: Probe, workspace: Workspace, invocation: Invocation, say: Say
) -> _StoreLook:
    """The jobs and what started them, once what waits on this host is brought in."""
    since_utc = clock.now_utc(invocation.environ) - timedelta(days=fleet.LATELY_DAYS)
    try:
        deliver_spooled(worker, Spool(workspace.spool_dir), {}, say)
        rows = worker.call(lambda each: each.jobs((), STORE_S), STORE_S)
        starts = worker.call(lambda _: probe.starts(since_utc, STORE_S), STORE_S)
    except StoreError as error:
        item = Item("store", WARNING, f"jobs and runs could not be read: {error.message}", error.hint)
        return look._replace(items=[*look.items, item])
    return look._replace(rows={row.facts.job: row for row in rows}, starts=starts)


def _is_leased(look: _StoreLook, workspace: Optional[Workspace]) -> bool:
    if look.facts is not None:
        return look.facts.leased
    return workspace is not None and not workspace.store.startswith("sqlite:")


# --- jobs ---


def _chosen(names: Sequence[str], known: Known, config: _Config, look: _StoreLook) -> Tuple[str, ...]:
    everybody = sorted({*known.rows, *table_of(known.document, "jobs"), *(entry.job for entry in known.entries)})
    for name in names:
        # A store that does not tell may know any job, and so may a file that cannot be understood.
        if name not in everybody and look.starts is not None and not config.problems:
            raise no_such_job(name, everybody)
    return tuple(dict.fromkeys(names)) or tuple(everybody)


def _beats(planned: Sequence[Plan], document: Table, environ: Mapping[str, str]) -> List[Beat]:
    """One try for each server, all at once."""
    wanted = [(plan.job, plan.spec.ping) for plan in planned if plan.spec is not None and plan.spec.ping]
    own = table_of(document, "notify").get("ping")
    if isinstance(own, str) and own != "none":
        wanted.append(("check", own))
    beats: List[Beat] = []
    urls: Dict[str, Tuple[str, List[str]]] = {}
    for job, text in wanted:
        try:
            url = resolve(text, environ, "ping")
        except ConfigError as error:
            beats.append(Beat((job,), mask_endpoint(text), str(error)))
            continue
        urls.setdefault(mask_endpoint(url), (url, []))[1].append(job)
    tries = [
        (endpoint, tuple(whose), Errand(lambda url=url: reach.reach(url), LOOK_S))  # type: ignore[misc]
        for endpoint, (url, whose) in urls.items()
    ]
    for endpoint, whose, errand in tries:
        problem, took_s = errand.result() or (f"no answer within {LOOK_S:.0f} s", 0.0)
        beats.append(Beat(whose, endpoint, problem, took_s))
    return beats


def _program(plan: Plan, known: Known) -> Program:
    assert plan.spec is not None
    entry = known.entry_of(plan.job)
    path: Optional[str] = known.environ.get("PATH")
    if entry is not None:
        path = entry.path if entry.kind == "cron" else TIMER_PATH
    words = () if plan.spec.shell else plan.spec.command
    return places_here.program_of(plan.job, words, plan.spec.chdir, plan.spec.env.get("PATH", path))
