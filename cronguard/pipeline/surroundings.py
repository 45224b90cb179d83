"""What the passages of one invocation work with, gathered once; and the ping for an invocation that came to nothing.

`run` and `backfill` share it. Nothing here looks for config, state directory or store: whoever calls has found them.
"""

from __future__ import annotations

from typing import Mapping, NamedTuple, Optional

from cronguard import __version__
from cronguard.core.config import text_as_given
from cronguard.core.heartbeat import STYLES
from cronguard.core.masking import mask_argv, mask_endpoint
from cronguard.core.model import Event, JobSpec, RunRequest, Say
from cronguard.core.zones import tzdata_version
from cronguard.errors import ConfigError
from cronguard.pipeline.passage import Surroundings
from cronguard.pipeline.placing import facts_of
from cronguard.store.flock import HostLock
from cronguard.store.spool import Spool
from cronguard.store.worker import StoreWorker
from cronguard.system import clock, host, identity
from cronguard.system.keeper import Keeper
from cronguard.system.pinger import Ping, Pinger
from cronguard.system.secrets import resolve
from cronguard.system.signals import Signals


class Ground(NamedTuple):
    """Where an invocation stands. `store` may hold a password: it is known here only to be kept out of rows."""

    environ: Mapping[str, str]
    state_dir: str
    spool_dir: str
    store: str


class Tools(NamedTuple):
    """What was opened for it. The keeper was forked before there was any thread, connection or lock."""

    keeper: Keeper
    worker: StoreWorker
    signals: Signals
    say: Say


def surroundings(spec: JobSpec, zone: str, trigger: str, force: bool, ground: Ground, tools: Tools) -> Surroundings:
    """All that a passage needs. ConfigError when the command's directory is none."""
    environ = ground.environ
    argv = ("/bin/sh", "-c", *spec.command) if spec.shell else spec.command
    ping_url = _ping_url(spec, environ, tools.say)
    urls = (ping_url, ground.store)
    return Surroundings(
        spec=spec,
        facts=facts_of(spec, zone),
        zone=zone,
        tzdata=tzdata_version(),
        owner=identity.own_identity(tools.keeper.pid, environ),
        user=host.user_name(),
        version=__version__,
        argv=argv,
        masked_argv=mask_argv(argv),
        directory=host.working_directory(spec.chdir),
        environ=environ,
        state_dir=ground.state_dir,
        trigger=trigger,
        force=force,
        store=tools.worker,
        host_lock=HostLock(f"{ground.state_dir}/locks", spec.lock) if spec.on_store_error == "run" else None,
        spool=Spool(ground.spool_dir),
        keeper=tools.keeper,
        signals=tools.signals,
        judge=identity.make_judge(ground.state_dir, environ),
        ping_url=ping_url,
        secrets=tuple(url for url in urls if url is not None and mask_endpoint(url) != url),
        say=tools.say,
        now=lambda: clock.now_utc(environ),
    )


def fail_ping(
    request: RunRequest, document: Mapping[str, object], environ: Mapping[str, str], error: Exception
) -> None:
    """One fail ping for what never started, if the URL can still be made out (FR-48)."""
    text, style = (text_as_given(name, request, document, environ) for name in ("ping", "ping_style"))
    if not text:
        return
    try:
        url = resolve(text, environ, "--ping")
    except ConfigError:
        return
    pinger = Pinger(url, style if style in STYLES else "auto", identity.new_run_id())
    pinger.finish(Ping("fail", message=str(error)), b"", None)


def _ping_url(spec: JobSpec, environ: Mapping[str, str], say: Say) -> Optional[str]:
    """The heartbeat's URL; one that cannot be read is said and done without (P7)."""
    if spec.ping is None:
        return None
    try:
        return resolve(spec.ping, environ, "--ping")
    except ConfigError as error:
        say(Event("ping_failed", "warning", {"job": spec.job}, f"{spec.job} runs without a heartbeat: {error}"))
        return None
