"""`wrap`: a crontab with every line guarded, or the way back. Prints, or saves with a backup; starts nothing."""

from __future__ import annotations

import os
from typing import Dict, FrozenSet, NamedTuple, Optional

from cronguard.core import values
from cronguard.core.crons import CRONS, KINDS, Cron
from cronguard.core.crontab import SYSTEM, USER, flavour_of_path, guessed_flavour, parse_crontab
from cronguard.core.dropin import DropIn, drop_in
from cronguard.core.guard_plans import Wishes
from cronguard.core.guards import guarding, identity
from cronguard.core.model import Invocation
from cronguard.core.units import Units, units_of
from cronguard.core.wrapping import Wrapped, unsafe_program, unwrap, wrap
from cronguard.core.zones import load_zone
from cronguard.errors import UsageError
from cronguard.system import clock, host
from cronguard.system.crontabs import STDIN, Source, cron_kind, host_sources, read_source
from cronguard.system.own_crontab import install_own_crontab, keep_own_crontab, read_own_crontab
from cronguard.system.program import can_keep_runs, own_program
from cronguard.system.saving import save
from cronguard.system.unit_files import drop_ins_of, read_unit, timer_of

_OWN = "crontab"
_USUAL_CRON = "debian"


class WrapRequest(NamedTuple):
    """`file`: a path, `-` for stdin, None for this user's crontab. `program`: cronguard's path, None for this one's.
    `cron`: the kind that reads the file, None for this host's."""

    file: Optional[str] = None
    unwrap: bool = False
    write: bool = False
    timezone: Optional[str] = None
    timeout: Optional[str] = None
    user_field: bool = False
    program: Optional[str] = None
    cron: Optional[str] = None


class WrapResult(NamedTuple):
    """`guessed`: the flavour is a guess from the text. `backup`: where the old text went, if anything was written."""

    name: str
    old: bytes
    wrapped: Wrapped
    flavour: str
    guessed: bool
    backup: Optional[str]


class UnitsResult(NamedTuple):
    """The units that do what a crontab does."""

    name: str
    units: Units


class DropInResult(NamedTuple):
    """`place`: where the drop-in belongs. `refused`: why there is none, else empty."""

    place: str
    drop_in: DropIn
    refused: str


class _Read(NamedTuple):
    source: Source
    flavour: str
    guessed: bool
    cron: Cron


def wrapped(request: WrapRequest, invocation: Invocation) -> WrapResult:
    """Wrap or unwrap, and save it if asked. CronguardError for what cannot be read, chosen or written."""
    if request.write and request.file == STDIN:
        raise UsageError("--write: not for stdin: there is no file to change", "name it, or redirect the output")
    read = _read(request, invocation)
    data = read.source.data
    if request.unwrap:
        result = unwrap(data, read.flavour, read.cron)
    else:
        result = wrap(data, read.flavour, _wishes(request, read))
    backup = _save(request.file, data, result.data, invocation) if request.write else None
    return WrapResult(read.source.name, data, result, read.flavour, read.guessed, backup)


def as_units(request: WrapRequest, invocation: Invocation) -> UnitsResult:
    """A crontab's jobs as services and timers. CronguardError for what cannot be read or chosen."""
    read = _read(request, invocation)
    units = units_of(read.source.data, read.flavour, _wishes(request, read), host.user_name())
    return UnitsResult(read.source.name, units)


def drop_in_for(request: WrapRequest) -> DropInResult:
    """The drop-in for the service whose file is named, by its own drop-ins and those of the timer beside it."""
    file = request.file or ""
    options = [f"--timezone {_zone(request.timezone)}"] if request.timezone else []
    options += [f"--timeout {_timeout(request.timeout)}"] if request.timeout else []
    found = drop_in(
        os.path.basename(file),
        read_unit(file),
        read_unit(timer_of(file), must_be_there=False),
        _program(request.program),
        " ".join(options),
    )
    place = os.path.join(drop_ins_of(file), "cronguard.conf")
    return DropInResult(place, DropIn("", ()), found) if isinstance(found, str) else DropInResult(place, found, "")


def _read(request: WrapRequest, invocation: Invocation) -> _Read:
    asked = None if request.cron is None else values.judged("--cron", values.one_of(*KINDS), request.cron)
    source = _source(request.file, invocation)
    flavour = SYSTEM if request.user_field else _certain_flavour(request.file, source)
    known = flavour or guessed_flavour(source.data)
    return _Read(source, known, flavour is None, CRONS[asked or cron_kind() or _USUAL_CRON])


def _wishes(request: WrapRequest, read: _Read) -> Wishes:
    return Wishes(
        _program(request.program),
        read.cron,
        _zone(request.timezone),
        _timeout(request.timeout),
        host.host_zone(),
        _taken(read.source),
        _homeless(read.source.data) if read.flavour == SYSTEM else frozenset(),
    )


def _source(file: Optional[str], invocation: Invocation) -> Source:
    if file is None:
        return Source(_OWN, None, read_own_crontab(invocation.environ), host.user_name())
    return read_source(file)


def _certain_flavour(file: Optional[str], source: Source) -> Optional[str]:
    return USER if file is None else flavour_of_path(source.path or "")


def _program(given: Optional[str]) -> str:
    path = given or own_program()
    if path is None:
        raise UsageError("--cronguard: missing: cannot tell where the cronguard command is", "give its absolute path")
    why = unsafe_program(path)
    if why:
        raise UsageError(f"--cronguard: {path}: {why}", "give another path to it, such as that of a link")
    return path


def _zone(given: Optional[str]) -> Optional[str]:
    if given is not None:
        load_zone(given)
    return given


def _timeout(given: Optional[str]) -> Optional[str]:
    if given is not None:
        values.judged("--timeout", values.no_limit_or_duration, given)
    return given


def _taken(source: Source) -> Dict[str, Optional[bytes]]:
    """The names of jobs that other crontabs of this host guard: two jobs with one name would share lock and slots."""
    taken: Dict[str, Optional[bytes]] = {}
    for other in host_sources(host.user_name()):
        if (other.path, other.owner) in ((source.path, None), (None, source.owner)):
            continue
        flavour = USER if other.owner else flavour_of_path(other.path or "")
        for line in parse_crontab(other.data, flavour).lines:
            if line.job is not None:
                own = identity(line.job)
                for name in guarding(line.job) or ():
                    taken[name] = own if taken.get(name, own) == own else None
    return taken


def _homeless(data: bytes) -> FrozenSet[bytes]:
    users = {line.job.user or b"" for line in parse_crontab(data, SYSTEM).lines if line.job is not None}
    return frozenset(user for user in users if not can_keep_runs(user.decode("utf-8", "surrogateescape")))


def _save(file: Optional[str], old: bytes, new: bytes, invocation: Invocation) -> Optional[str]:
    """The backup's path; None if there was nothing to change."""
    if old == new:
        return None
    stamp = clock.now_utc(invocation.environ).strftime("%Y%m%d%H%M%S")
    if file is not None:
        return save(file, old, new, stamp)
    backup = keep_own_crontab(old, stamp, invocation.environ)
    install_own_crontab(new, invocation.environ)
    return backup
