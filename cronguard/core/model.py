"""The values that flow from one step of a run to the next.

Named tuples and not dataclasses: importing `dataclasses` costs 17 ms at every start. Instants are aware UTC
(`*_at_utc`), durations are seconds (`*_s`), sizes bytes (`*_bytes`). Nothing here does anything.
"""

from __future__ import annotations

from datetime import datetime
from typing import Callable, List, Mapping, NamedTuple, Optional, Tuple, Union

# Closed sets. Plain strings: they are what the rows, the JSON and the users' scripts see.
STATUSES = ("running", "success", "failed", "timeout", "aborted", "lost", "skipped")
REASONS = (
    "lock_held", "orphans", "already_done", "paused", "too_late", "attempts_used", "lock_lost", "cancelled",
)
TRIGGERS = ("schedule", "manual", "backfill", "retry")


class ScheduleText(NamedTuple):
    """A schedule as written. `kind` is `cron`, `calendar` or `every`."""

    kind: str
    text: str


class Slot(NamedTuple):
    """One nominal firing of a schedule.

    `label` is the key (`2026-03-29T02:30`, `2026-10-25T02:15+02:00`, `2026-01-20T02:00Z`); `nominal` is the naive
    local time it stands for; `local` is the real wall time, aware; `note` is None, `gap` or `fold`.
    """

    label: str
    at_utc: datetime
    nominal: datetime
    local: datetime
    note: Optional[str]


class RunRequest(NamedTuple):
    """What a front end hands down for `run`, and the only thing.

    `options` holds only what was given, setting name (`max_late`) to raw text, flags as `"true"`. The parsing of every
    value is core.config's, so that a value is judged alike whatever source it came from.
    """

    job: str
    command: Tuple[str, ...]
    options: Mapping[str, str]
    force: bool = False
    dry_run: bool = False
    on_terminal: bool = False


class Invocation(NamedTuple):
    """What every command needs of its surroundings, gathered once at the edge.

    `store` and `config` as given by `--store` and `--config`, None if not given; `environ`: a copy of the environment.
    """

    store: Optional[str]
    config: Optional[str]
    log_format: Optional[str]
    verbose: bool
    environ: Mapping[str, str]


class Alerts(NamedTuple):
    """When a job's silence or trouble is worth an alert. Stored with the job, so that any host can `check` it."""

    slots: str = "latest"  # latest: a later success excuses a missed slot; each: every slot must have its own
    late_s: float = 900.0  # how long after a slot it may still have neither success nor a run under way
    long_s: Optional[float] = None  # how long a run may take; None: its limit, else slow_factor times the usual
    max_age_s: Optional[float] = None  # without a schedule: age of the last success; None: twice the usual interval
    max_failures: int = 3
    max_skips: int = 5
    slow_factor: float = 3.0


class JobSpec(NamedTuple):
    """Everything that decides how one job runs, resolved from all sources and valid."""

    job: str
    command: Tuple[str, ...]
    shell: bool
    schedule: Optional[ScheduleText]
    timezone: Optional[str]  # None: nobody configured one, the host's is taken and `doctor` says so
    key: str  # slot day hour week month none
    run_key: Optional[str]
    timeout_s: Optional[float]  # None: no limit, by `--timeout 0`
    timeout_given: bool
    grace_s: float
    on_conflict: str  # skip wait fail
    wait_s: float
    lock: str
    lease_s: float
    redo: str  # failed never
    catch_up: str  # latest oldest
    look_back_s: float
    max_late_s: Optional[float]
    jitter_s: float
    retries: int
    retry_delay_s: float
    ping: Optional[str]  # as written: a URL, file:PATH or env:NAME
    ping_style: str  # auto healthchecks uptime-kuma plain
    quiet: bool
    no_capture: bool
    tail_bytes: int
    chdir: Optional[str]
    stdin: str  # null inherit
    leftovers: str  # leave kill
    release: Optional[str]
    on_store_error: str  # fail run
    skip_exit_code: int
    env: Mapping[str, str]
    alerts: Alerts = Alerts()


class Owner(NamedTuple):
    """Who holds a claim. Only a process with the same first four may prove that it is dead (design, section 5).

    `pid_start` and `keeper_start` are start times in clock ticks since boot (`/proc/PID/stat`, field 22; proc(5)).
    """

    machine_id: str
    host: str
    boot_id: str
    pid_ns: str
    pid: int
    pid_start: int
    keeper_pid: int
    keeper_start: int


class Verdict(NamedTuple):
    """What this process can say of another run's owner.

    `state`: `alive` (supervisor or keeper lives), `dead` (provably), `unknown` (another host, boot or pid namespace).
    `pids`: processes of that run's command that are still there, supervisor and keeper not among them.
    """

    state: str
    pids: Tuple[int, ...] = ()


# Judges the owner of the run with that id.
Judge = Callable[[Owner, str], Verdict]


class JobFacts(NamedTuple):
    """What the store remembers of a job's definition, so that status and check need no config file."""

    job: str
    schedule: Optional[ScheduleText]
    zone: str
    key: str
    timeout_s: Optional[float]
    grace_s: float
    max_late_s: Optional[float]
    look_back_s: float
    redo: str
    alerts: Alerts = Alerts()
    limit_s: Optional[float] = None  # longest a whole run may take: attempts, graces and pauses; None: no limit


class ClaimRequest(NamedTuple):
    """One invocation's wish to run. `run_id` is made by the client before the first try (an unknown COMMIT is looked
    up by it). `now_utc` is this invocation's wall clock; lease times are the store's own."""

    run_id: str
    facts: JobFacts
    lock: str
    run_key: str
    keyed: bool  # False: `--key none`; the run key is the run id and can never be done already
    slot: Optional[Slot]
    zone: str
    tzdata: str
    trigger: str
    force: bool
    redo: str
    lease_s: float
    owner: Owner
    user: str
    version: str
    argv: Tuple[str, ...]  # masked
    directory: str  # resolved: the live release
    release: Optional[str]
    now_utc: datetime
    lateness_s: Optional[float]
    named: bool = False  # the run key is the text of `--run-key`: nobody can tell when it will be asked for again


class Holder(NamedTuple):
    """The run that holds a lock."""

    run_id: str
    job: str
    host: str
    pid: int
    since_utc: datetime


class Sight(NamedTuple):
    """What the store shows before anything is claimed; nothing was locked to see it."""

    done_run: Optional[str]  # id of the run that did this key, None if none
    paused: Optional[str]  # reason text (may be empty), None if not paused
    holder: Optional[Holder]  # a live claim on the lock by a run that may still live
    orphans: Tuple[int, ...]  # non-empty: the holder is dead, these processes of it are not
    claims: int  # claims made so far for (job, run_key)
    known: bool  # the job has run or been skipped before
    pruned: bool = False  # rows of that slot's time are gone; only a claim can tell


class Claimed(NamedTuple):
    """The claim is ours. `sent_at` is boot-time seconds when the claim that was acknowledged was sent."""

    run_id: str
    lock: str
    fence: int
    claim_no: int
    sent_at: float
    trigger: str
    took_over: Tuple[str, ...] = ()  # ids of dead runs closed as `lost` on the way
    took_s: Optional[float] = None  # from look to claim, by whoever asked for it


class Held(NamedTuple):
    """Somebody else holds the lock (or `orphans` of a dead run do)."""

    holder: Holder
    orphans: Tuple[int, ...] = ()


class Done(NamedTuple):
    """The key was done by that run."""

    run_id: str


class Used(NamedTuple):
    """`--redo never`, and the key has been claimed before."""

    run_id: str


class Paused(NamedTuple):
    """The job is paused."""

    reason: str


class Pruned(NamedTuple):
    """The slot lies before the job's pruning watermark: whether it was done is no longer known."""

    before_utc: datetime


ClaimAnswer = Union[Claimed, Held, Done, Used, Paused, Pruned]


class Process(NamedTuple):
    """A process as told to a person."""

    pid: int
    command: str


class Exit(NamedTuple):
    """Raw facts of one attempt, as the keeper and the output pump saw them; no judgement.

    Exactly one of `exit_code`, `signal`, `start_error` tells how it ended; all None: nobody saw the end (success needs
    proof). `stopped_by`: None, `timeout`, `signal` (see `stop_signal`), `lease`, `cancelled`, `keeper_lost`.
    """

    exit_code: Optional[int]
    signal: Optional[int]
    start_error: Optional[str]  # why the command could not be started; `start_code`: 125 to 127
    start_code: Optional[int]
    stopped_by: Optional[str]
    stop_signal: Optional[int]
    duration_s: float
    cpu_s: Optional[float]
    peak_rss_bytes: Optional[int]
    leftovers: Tuple[Process, ...]  # descendants alive after the command's end (left or killed as asked)
    survivors: Tuple[Process, ...]  # processes that could not be killed: orphans that keep the claim
    tail: bytes
    cut_bytes: int
    results: Mapping[str, str]  # items, errors, message from $CRONGUARD_OUTPUT
    stdin_unread: bool
    output_error: Optional[str] = None  # why output did not reach our stdout or stderr (not EPIPE)


class Outcome(NamedTuple):
    """The judgement on a run, fixed before anything is recorded or announced."""

    status: str  # success failed timeout aborted
    reason: Optional[str]
    exit_code: Optional[int]  # the command's own
    signal: Optional[int]
    leave_with: int  # cronguard's exit code
    message: str


class Finish(NamedTuple):
    """What the finish row gets. `finished_at_utc` by the invocation's clock."""

    outcome: Outcome
    message: str  # the command's own, if it reported one; else the outcome's
    finished_at_utc: datetime
    duration_s: float
    attempts: int
    cpu_s: Optional[float]
    peak_rss_bytes: Optional[int]
    items: Optional[int]
    errors: Optional[int]
    tail: str  # valid text without NUL
    cut_bytes: int
    leftovers: Tuple[Process, ...]
    orphans: Tuple[int, ...]  # non-empty: the claim is not dropped, they hold it on this host
    stdin_unread: bool
    claim_s: Optional[float] = None


class Skip(NamedTuple):
    """An invocation that did not start the command, for the record. Consecutive ones alike share a row.

    `status` is `skipped`, or `failed` for `--on-conflict fail`. `holder` is the run id it yielded to, if any."""

    run_id: str
    status: str
    reason: str
    holder: Optional[str]
    facts: JobFacts
    lock: str
    run_key: str
    slot: Optional[Slot]
    zone: str
    tzdata: str
    trigger: str
    host: str
    user: str
    version: str
    at_utc: datetime
    lateness_s: Optional[float]
    message: str


class Report(NamedTuple):
    """A finish that could not be delivered when it happened; spooled and delivered by a later invocation.

    `fence` is None for an unguarded run (`--on-store-error run`): its row is inserted whole from `request`."""

    request: ClaimRequest
    fence: Optional[int]
    claim_no: Optional[int]
    finish: Finish
    unguarded: bool


class RunRow(NamedTuple):
    """A row of `runs`, as read back. The order of fields is the order of columns in both stores."""

    run_id: str
    job: str
    lock: str
    run_key: str
    claim_no: Optional[int]
    status: str
    reason: Optional[str]
    forced: bool
    unguarded: bool
    slot_at_utc: Optional[datetime]
    slot_local: Optional[str]
    zone: str
    tzdata: str
    trigger: str
    attempts: int
    fence: Optional[int]
    machine_id: str
    host: str
    boot_id: str
    pid_ns: str
    pid: int
    pid_start: int
    keeper_pid: int
    keeper_start: int
    user_name: str
    version: str
    argv: Tuple[str, ...]
    directory: str
    release: Optional[str]
    started_at_utc: datetime
    finished_at_utc: Optional[datetime]
    lateness_s: Optional[float]
    duration_s: Optional[float]
    exit_code: Optional[int]
    signal: Optional[int]
    cpu_s: Optional[float]
    peak_rss_bytes: Optional[int]
    items: Optional[int]
    errors: Optional[int]
    message: str
    tail: str
    cut_bytes: int
    leftovers: Tuple[Process, ...]
    orphans: Tuple[int, ...]
    stdin_unread: bool
    holder: Optional[str]
    times: int  # how many invocations this row stands for: more than 1 only for `skipped`
    pings: str  # one line a ping, in plain words
    late_status: Optional[str]
    late_exit_code: Optional[int]
    late_finished_at_utc: Optional[datetime]


class Success(NamedTuple):
    """A past success, for what is usual."""

    finished_at_utc: datetime
    duration_s: float


class JobRow(NamedTuple):
    """A job's summary, kept up to date by claim, finish and skip so that nobody scans history for it."""

    facts: JobFacts
    first_seen_utc: datetime
    paused_since_utc: Optional[datetime]
    paused_until_utc: Optional[datetime]
    paused_reason: str
    last_success_utc: Optional[datetime]
    last_success_key: Optional[str]
    last_run: Optional[RunRow]  # latest that claimed
    running: Optional[RunRow]
    usual_duration_s: Optional[float]  # median of the latest successes
    failures_in_row: int
    skips_in_row: int
    strip: str  # outcomes of the latest 20 runs, newest last, a letter each: s f t a l
    since_utc: Optional[datetime] = None  # the present schedule and zone are known since, the job not paused since
    last_success_slot_utc: Optional[datetime] = None
    successes: Tuple[Success, ...] = ()  # the latest 21, oldest first
    running_lease_utc: Optional[datetime] = None  # until when the running row's claim is good, by the store's clock
    last_skip_reason: Optional[str] = None
    last_skip_holder: Optional[str] = None
    pruned_before_utc: Optional[datetime] = None  # slots before that are refused unless forced: their rows are gone
    runs_total: int = 0  # these three since the job was first seen, whatever was pruned
    failures_total: int = 0
    skips_total: int = 0
    last_claim_s: Optional[float] = None  # how long the latest finished run's claim took to get
    defined_utc: Optional[datetime] = None  # the present schedule, zone and key are known since, whatever pauses
    settled_from_utc: Optional[datetime] = None  # every unit with its first slot in [from, until) was found done or
    settled_until_utc: Optional[datetime] = None  # given up by `--catch-up oldest`, which looks no more there


class Finding(NamedTuple):
    """Something wrong with a job, by what is stored alone. `kind`: missed never_ran stuck lost failing slow skipping
    nothing_to_check; `state`: warning or critical; `check_first`: what to look at, most likely cause first."""

    job: str
    kind: str
    state: str
    summary: str
    since_utc: datetime
    check_first: Tuple[str, ...]


class Incident(NamedTuple):
    """A finding that was seen and is remembered, once for all hosts that check."""

    incident_id: str
    job: str
    kind: str
    state: str
    summary: str
    check_first: Tuple[str, ...]
    since_utc: datetime
    opened_at_utc: datetime
    told_at_utc: Optional[datetime]  # when a notice of it was last delivered
    closed_at_utc: Optional[datetime]


class Notice(NamedTuple):
    """What this caller is to tell people: `what` is opened, reminder or recovered. Nobody else will, for a minute."""

    what: str
    incident: Incident


class Lease:
    """News of a claim being renewed elsewhere (the store's thread), for a loop that must not block.

    A protocol without importing Protocol at run time: anything with these two methods will do.
    """

    def fileno(self) -> int:
        """Readable when `news` has something."""
        raise NotImplementedError

    def news(self) -> List[Union[float, str]]:
        """Boot-time seconds at which the now acknowledged renewals were sent; `lost`: the lock is, or `cancelled`."""
        raise NotImplementedError


class Event(NamedTuple):
    """Something worth saying on stderr while it happens; the CLI decides whether and how.

    `level`: debug, info, warning, error. `fields` are stable keys (`job`, `run`, `reason`) for scripts and journals.
    """

    name: str
    level: str
    fields: Mapping[str, object]
    text: str = ""


Say = Callable[[Event], None]
