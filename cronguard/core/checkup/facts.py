"""What the checklist is judged by, as it was found. A field that could not be learnt is None, a reason is text."""

from __future__ import annotations

from datetime import datetime
from typing import Mapping, NamedTuple, Optional, Tuple

from cronguard.core.model import JobRow, JobSpec


class StoreFacts(NamedTuple):
    """A store that answered. `version` 0: no tables yet; `refused`: why the tables cannot be used, e.g. too new.

    `held`: what a second connection met while the first held a throw-away lock: `held`, `free` (no exclusion at all),
    `stuck` (held, but still after it was given back), else why it could not be tried.
    """

    name: str
    leased: bool
    version: int = 0
    newest: int = 0
    exists: bool = True
    refused: str = ""
    write_problem: str = ""
    hint: str = ""  # what to do about either
    held: str = ""
    pooler: Optional[bool] = None
    ahead_s: Optional[float] = None  # the store's clock minus ours
    round_trip_s: float = 0.0


class Tally(NamedTuple):
    """Invocations of one job that are alike, of the last days. `scheduled_utc`: the latest that a clock started."""

    job: str
    host: str
    user: str
    zone: str
    tzdata: str
    version: str
    starts: int
    latest_utc: datetime
    scheduled_utc: Optional[datetime]


class Twice(NamedTuple):
    """A host that started slots of a job more than once, each time within a minute of the slot."""

    job: str
    host: str
    slots: int


class Starts(NamedTuple):
    tallies: Tuple[Tally, ...] = ()
    twice: Tuple[Twice, ...] = ()


class Folder(NamedTuple):
    """A directory that cronguard writes to. `nearest`: what exists of its path, which need not be a directory.

    `free_inodes` None: the file system does not count them."""

    path: str
    exists: bool
    nearest: str
    writable: bool
    owner: str
    is_ours: bool
    mode: int
    free_bytes: int
    free_inodes: Optional[int]
    kind: str
    is_shared: bool  # a network's or FUSE's


class Waiting(NamedTuple):
    """What could not be delivered yet: finishes of this store, of others, files set aside, messages for people."""

    reports: int = 0
    elsewhere: int = 0
    aside: int = 0
    messages: int = 0


class Private(NamedTuple):
    """A file that may hold secrets or decides what is run. `problem`: why it cannot be looked at.

    `is_reachable`: others may go through all directories above it; `open_folder`: the first of these in which others
    may replace things; `is_trusted`: its owner is root or ourselves."""

    path: str
    what: str  # config, or the setting that names it
    has_secret: bool
    problem: str = ""
    mode: int = 0o600
    owner: str = ""
    is_trusted: bool = True
    is_reachable: bool = True
    open_folder: str = ""


class Beat(NamedTuple):
    """A heartbeat's host, tried without pinging. `endpoint`: masked; `problem`: why it cannot be reached."""

    jobs: Tuple[str, ...]
    endpoint: str
    problem: str = ""
    took_s: float = 0.0


class Program(NamedTuple):
    """What a job would start here. `links`: symlinks on the way there; `folder`: the real directory it runs in.

    `problem`: what is missing or cannot be executed."""

    job: str
    path: str
    problem: str = ""
    links: Tuple[str, ...] = ()
    folder: str = ""


class Plan(NamedTuple):
    """A job as its next run on this host would find it. `spec`: by config file or crontab line, None for a job that
    only the store knows; `row`: None for one that has never run."""

    job: str
    spec: Optional[JobSpec]
    row: Optional[JobRow]
    zone: str
    zone_source: str  # config, environment, command line or the store's row; `host` if nobody said
    gap_s: Optional[float]  # shortest distance of its slots in the next days


class Entry(NamedTuple):
    """A crontab line or timer that starts a job. `problem`: why no clock follows it, empty if one does."""

    job: str
    place: str
    kind: str  # cron timer
    problem: str = ""
    options: Mapping[str, str] = {}
    command: Tuple[str, ...] = ()
    path: Optional[str] = None  # PATH as the line's crontab sets it
    has_zone: bool = False  # CRON_TZ is set, whatever the cron at hand makes of it


class Clocks(NamedTuple):
    """What could start jobs on this host. `unread`: places that are not ours to read. `checks`: a line runs `check`."""

    entries: Tuple[Entry, ...] = ()
    daemons: Tuple[str, ...] = ()
    unread: Tuple[str, ...] = ()
    checks: bool = False


class Here(NamedTuple):
    """This invocation's surroundings."""

    host: str
    user: str
    version: str
    python: str
    zone: Optional[str]
    tzdata: str
    now_utc: datetime
    is_container: bool
