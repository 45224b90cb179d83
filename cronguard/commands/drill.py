"""`drill`: proves the guards on the real store and the real heartbeat, under a throwaway job name.

Every start is our own command in a process of its own, as cron would start it; what is believed is what the store says
afterwards. The config file's defaults stay out of it, except for store, zone, heartbeat and channels: they are what is
tried. With a heartbeat its monitor goes red and green again, which is the point. The rows are deleted at the end.
"""

from __future__ import annotations

import os
from tempfile import TemporaryDirectory
from typing import Dict, Iterable, List, NamedTuple, Optional, Sequence, Tuple

from cronguard.core.config import resolve_settings
from cronguard.core.document import check_document, table_of
from cronguard.core.drill import Drilled, Step, judged
from cronguard.core.model import Event, Invocation, RunRequest, RunRow, Say
from cronguard.core.names import did_you_mean
from cronguard.errors import ConfigError, CronguardError, NoRights, StoreError, UsageError
from cronguard.store.opening import masked
from cronguard.store.worker import StoreWorker
from cronguard.system import host
from cronguard.system.clock import boot_s
from cronguard.system.rehearsal import Actor, Ended, Rehearsal, await_gone
from cronguard.workspace import Workspace, open_workspace

WITHIN_S = 10.0
_PLAY_S = 20.0  # a start, its pings included
_GONE_S = 5.0
_EVERY_RUN = ("--timeout", "20s", "--grace", "1s", "--on-conflict", "skip", "--chdir", "/")
# Ends when its stdin does; says first that it runs.
_HOLD = ("--stdin", "inherit", "--", "/bin/sh", "-c", "echo $$; read _ || exit 0")
# A tree that does not heed TERM.
_STUBBORN = ("--", "/bin/sh", "-c", 'trap "" TERM; (sleep 300; sleep 300) & echo $$ $!; wait; sleep 300')


class _Stage(NamedTuple):
    """What all steps share."""

    job: str
    worker: StoreWorker
    rehearsal: Rehearsal
    config: str  # empty: none
    heartbeat: bool
    channels: int

    def run(self, *options: str, command: Sequence[str] = ("--", "/bin/sh", "-c", ":")) -> Ended:
        return self.rehearsal.play("run", self.job, *_EVERY_RUN, *options, *command, within_s=_PLAY_S)

    def start(self, *options: str) -> Actor:
        return self.rehearsal.start("run", self.job, *_EVERY_RUN, *options, *_HOLD)

    def rows(self) -> List[RunRow]:
        """Newest first."""
        return self.worker.call(lambda store: store.history(self.job, 20, (), None, WITHIN_S), WITHIN_S)

    def newest(self) -> Optional[RunRow]:
        return next(iter(self.rows()), None)


def drill(settings_of: Optional[str], invocation: Invocation, say: Say) -> Drilled:
    """Try every guard. `settings_of`: the job whose heartbeat and settings are taken. StoreError without a store."""
    workspace = open_workspace(invocation, settings_of)
    problems = check_document(workspace.document, workspace.file_name)
    if problems:
        raise ConfigError(problems)
    known = table_of(workspace.document, "jobs")
    if settings_of is not None and settings_of not in known:
        where = workspace.file_name or "there is none"
        why = f"not in the config file ({where}), the only place that has a heartbeat{did_you_mean(settings_of, known)}"
        raise UsageError(f"--job: {settings_of}: {why}")
    ping = _ping(workspace, settings_of, invocation)
    host.state_dir(invocation.environ)
    job = f"drill-{os.urandom(4).hex()}"
    worker = workspace.worker()
    began = boot_s()
    try:
        worker.call(lambda store: store.prepare(WITHIN_S), WITHIN_S)
        with TemporaryDirectory(prefix="cronguard-drill-") as folder, Rehearsal(
            _environment(workspace, ping, folder, invocation)
        ) as rehearsal:
            stage = _stage(job, worker, rehearsal, workspace, ping)
            steps = tuple(_steps(stage, say))
        left = _clean_up(job, worker)
    finally:
        worker.close(1.0)
    return Drilled(job, masked(workspace.store), steps, boot_s() - began, left)


def as_json(result: Drilled) -> Dict[str, object]:
    """The JSON of `drill`, version 1: keys are only ever added."""
    return {
        "version": 1,
        "held": result.held,
        "job": result.job,
        "store": result.store,
        "took_s": round(result.took_s, 3),
        "left": result.left,
        "steps": [dict(step._asdict()) for step in result.steps],
    }


# --- the stage ---


def _stage(
    job: str, worker: StoreWorker, rehearsal: Rehearsal, workspace: Workspace, ping: Optional[str]
) -> _Stage:
    urls = table_of(workspace.document, "notify").get("urls")
    channels = len(urls) if isinstance(urls, list) else 0
    return _Stage(job, worker, rehearsal, workspace.file_name, ping is not None, channels)


def _environment(workspace: Workspace, ping: Optional[str], folder: str, invocation: Invocation) -> Dict[str, str]:
    """Ours without what an outer run or shell has set for jobs; store and heartbeat by variables, which no process list
    shows. An empty config file keeps `[defaults]` such as `quiet` or `shell` away from the drill's commands."""
    environ = {name: value for name, value in invocation.environ.items() if not name.startswith("CRONGUARD_")}
    environ.update(
        CRONGUARD_STORE=workspace.store,
        CRONGUARD_STATE_DIR=workspace.state_dir,
        CRONGUARD_CONFIG=_empty_file(folder),
        CRONGUARD_TIMEZONE="UTC",
    )
    if ping is not None:
        environ["CRONGUARD_PING"] = ping
    return environ


def _empty_file(folder: str) -> str:
    path = os.path.join(folder, "config.toml")
    os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600))
    return path


def _ping(workspace: Workspace, settings_of: Optional[str], invocation: Invocation) -> Optional[str]:
    request = RunRequest(settings_of or "drill", (), {})
    return resolve_settings(request, workspace.document, workspace.file_name, invocation.environ).spec.ping


def _clean_up(job: str, worker: StoreWorker) -> str:
    try:
        gone = worker.call(lambda store: store.forget_job(job, WITHIN_S), WITHIN_S)
    except NoRights as error:
        return f"the rows of {job} are left: {error.message}; only the schema's owner may delete history (prune)"
    except StoreError as error:
        return f"the rows of {job} are left: {error}"
    return "" if gone else f"the rows of {job} are left: a run of it has not ended"


# --- the steps ---


def _steps(stage: _Stage, say: Say) -> Iterable[Step]:
    for each in (_double_slot, _overlap, _timeout, _dead_supervisor, _failure, _recovery):
        try:
            step = each(stage)
        except (CronguardError, OSError) as error:
            step = Step(each.__name__.strip("_").replace("_", " "), "it can be tried", str(error), "failed")
        say(Event("drilled", "info", {"guard": step.guard, "state": step.state}, step.seen))
        yield step


def _double_slot(stage: _Stage) -> Step:
    first = stage.run("--run-key", "double")
    second = stage.run("--run-key", "double")
    rows = stage.rows()
    reasons = [row.reason for row in rows if row.status == "skipped"]
    return judged(
        "double slot",
        "the second start finds the slot done",
        [
            _left(first, 0, "first"),
            _left(second, 0, "second"),
            (f"{_count(rows, 'success')} success", _count(rows, "success") == 1),
            (f"second was {', '.join(map(str, reasons)) or 'not skipped'}", reasons == ["already_done"]),
        ],
    )


def _overlap(stage: _Stage) -> Step:
    first = stage.start()
    running = first.line(_PLAY_S)
    second = stage.run()
    newest = stage.newest()
    first.release()
    held = newest is not None and newest.status == "skipped" and newest.reason == "lock_held"
    return judged(
        "overlap",
        "the second start says lock_held",
        [
            ("first is running" if running else "first never started", bool(running)),
            _left(second, 75, "second"),
            (f"second was {newest.reason or newest.status if newest else 'not recorded'}", held),
            _left(first.wait(_PLAY_S), 0, "first"),
        ],
    )


def _timeout(stage: _Stage) -> Step:
    actor = stage.rehearsal.start("run", stage.job, *_EVERY_RUN, "--timeout", "1s", *_STUBBORN)
    pids = tuple(int(word) for word in actor.line(_PLAY_S).split() if word.isdigit())
    ended = actor.wait(_PLAY_S)
    left = await_gone(pids, _GONE_S)
    fate = f"processes left: {' '.join(map(str, left))}" if left else f"{len(pids)} processes gone"
    return judged(
        "timeout",
        "a tree that ignores TERM is gone after timeout and grace",
        [_left(ended, 124, "run"), _recorded(stage.newest(), "timeout"), (fate, len(pids) == 2 and not left)],
    )


def _dead_supervisor(stage: _Stage) -> Step:
    actor = stage.start("--run-key", "killed")
    pid = actor.line(_PLAY_S)
    killed = stage.newest()
    actor.kill()
    left = await_gone((int(pid),) if pid.isdigit() else (), _GONE_S)
    again = stage.run("--run-key", "killed")
    rows = {row.run_id: row for row in stage.rows()}
    lost = rows.get(killed.run_id) if killed else None
    return judged(
        "killed supervisor",
        "its command dies with it, its row is lost, the slot is free again",
        [
            ("command is gone" if pid and not left else "command is still there", bool(pid) and not left),
            (f"row is {lost.status if lost else 'missing'}", lost is not None and lost.status == "lost"),
            _left(again, 0, "next start"),
        ],
    )


def _failure(stage: _Stage) -> Step:
    ended = stage.run("--run-key", "failure", command=("--", "/bin/sh", "-c", "echo cronguard drill; exit 3"))
    newest = stage.newest()
    checked = _check(stage)
    facts = [
        _left(ended, 3, "run"),
        _recorded(newest, "failed"),
        _heartbeat(stage, newest),
        _told(stage, checked, "ALERT", 2),
    ]
    return judged("failure", "it is recorded, the fail ping and the alert go out", facts)


def _recovery(stage: _Stage) -> Step:
    ended = stage.run("--run-key", "failure")
    newest = stage.newest()
    checked = _check(stage)
    facts = [_left(ended, 0, "run"), _heartbeat(stage, newest), _told(stage, checked, "RECOVERED", 0)]
    return judged("recovery", "the slot is done again, the heartbeat is green, the recovery is told", facts)


def _check(stage: _Stage) -> Ended:
    config = ("--config", os.path.abspath(stage.config)) if stage.config else ()
    words = ("check", stage.job, "--notify", "--max-failures", "1", "--log-format", "text", *config)
    return stage.rehearsal.play(*words, within_s=_PLAY_S)


# --- what is looked at ---


def _left(ended: Ended, code: int, who: str) -> Tuple[str, bool]:
    if ended.code is None:
        return f"{who} did not end in time", False
    words = f" ({ended.last_words})" if ended.code != code and ended.last_words else ""
    return f"{who} left with {ended.code}{words}", ended.code == code


def _recorded(row: Optional[RunRow], status: str) -> Tuple[str, bool]:
    found = row.status if row else "nothing"
    return f"recorded as {found}", found == status


def _count(rows: Sequence[RunRow], status: str) -> int:
    return sum(row.status == status for row in rows)


def _heartbeat(stage: _Stage, row: Optional[RunRow]) -> Tuple[str, bool]:
    if not stage.heartbeat:
        return "no heartbeat is configured", True
    pings = row.pings if row else ""
    return f"heartbeat: {pings or 'nothing was sent'}", bool(pings) and "not delivered" not in pings


def _told(stage: _Stage, checked: Ended, word: str, code: int) -> Tuple[str, bool]:
    if checked.code != code:
        return _left(checked, code, "check")
    where = f"through {stage.channels} channels" if stage.channels else "printed; [notify] urls names no channel"
    if "not_told" in checked.said:
        return f"alert was not delivered: {checked.last_words}", False
    return f"{word.lower()} {where}", True


