"""The tables, once for both dialects, and the steps from one version to the next.

`{instant}` is `timestamptz` or text (UTC, ISO 8601, microseconds); `{text}` compares by bytes in both. The constraints
are the promises: `runs_one_per_key` is P2, `runs_one_per_job` and `runs_one_per_lock` are P1 (design, section 5).
Steps are only ever added; a store that is newer than this program is refused, never touched.
"""

from __future__ import annotations

from typing import List, Mapping, Sequence

from cronguard.errors import StoreError
from cronguard.store.dialect import Result

SQLITE_TYPES = {
    "text": "TEXT", "instant": "TEXT", "big": "INTEGER", "real": "REAL", "flag": "INTEGER",
    "now": "(strftime('%Y-%m-%dT%H:%M:%f000+00:00', 'now'))",  # as rows.instant_text writes it
}
POSTGRES_TYPES = {
    "text": 'text COLLATE "C"', "instant": "timestamptz", "big": "bigint", "real": "double precision",
    "flag": "boolean", "now": "clock_timestamp()",
}

_VERSION_1 = (
    """CREATE TABLE meta (name {text} NOT NULL PRIMARY KEY, value {text} NOT NULL)""",
    # One row a lock name, never deleted: the fence must not start again. A free lock has no owner.
    """CREATE TABLE locks (
        lock {text} NOT NULL PRIMARY KEY,
        owner_run {text},
        owner_job {text},
        fence {big} NOT NULL DEFAULT 0,
        lease_until {instant},
        cancel_requested {flag} NOT NULL DEFAULT FALSE
    )""",
    """CREATE INDEX locks_by_job ON locks (owner_job) WHERE owner_job IS NOT NULL""",
    # `strip` is always 20 characters wide, oldest first, so that pushing one on is the same SQL everywhere.
    """CREATE TABLE jobs (
        job {text} NOT NULL PRIMARY KEY,
        schedule_kind {text},
        schedule_text {text},
        zone {text} NOT NULL,
        key {text} NOT NULL,
        timeout_s {real},
        grace_s {real} NOT NULL,
        max_late_s {real},
        look_back_s {real} NOT NULL,
        redo {text} NOT NULL,
        alerts {text} NOT NULL,
        limit_s {real},
        first_seen_at {instant} NOT NULL,
        since_at {instant} NOT NULL,
        paused_since_at {instant},
        paused_until_at {instant},
        paused_reason {text} NOT NULL DEFAULT '',
        last_success_at {instant},
        last_success_key {text},
        last_success_slot_at {instant},
        last_run_id {text},
        running_run_id {text},
        successes {text} NOT NULL DEFAULT '[]',
        runs_total {big} NOT NULL DEFAULT 0,
        failures_total {big} NOT NULL DEFAULT 0,
        skips_total {big} NOT NULL DEFAULT 0,
        last_claim_s {real},
        failures_in_row {big} NOT NULL DEFAULT 0,
        skips_in_row {big} NOT NULL DEFAULT 0,
        last_skip_reason {text},
        last_skip_holder {text},
        pruned_before_at {instant},
        strip {text} NOT NULL DEFAULT '                    '
    )""",
    """CREATE TABLE runs (
        run_id {text} NOT NULL PRIMARY KEY,
        job {text} NOT NULL,
        lock {text} NOT NULL,
        run_key {text} NOT NULL,
        claim_no {big},
        status {text} NOT NULL
            CHECK (status IN ('running', 'success', 'failed', 'timeout', 'aborted', 'lost', 'skipped')),
        reason {text},
        forced {flag} NOT NULL,
        unguarded {flag} NOT NULL,
        slot_at_utc {instant},
        slot_local {text},
        zone {text} NOT NULL,
        tzdata {text} NOT NULL,
        trigger {text} NOT NULL,
        attempts {big} NOT NULL,
        fence {big},
        machine_id {text} NOT NULL,
        host {text} NOT NULL,
        boot_id {text} NOT NULL,
        pid_ns {text} NOT NULL,
        pid {big} NOT NULL,
        pid_start {big} NOT NULL,
        keeper_pid {big} NOT NULL,
        keeper_start {big} NOT NULL,
        user_name {text} NOT NULL,
        version {text} NOT NULL,
        argv {text} NOT NULL,
        directory {text} NOT NULL,
        release {text},
        started_at_utc {instant} NOT NULL,
        finished_at_utc {instant},
        lateness_s {real},
        duration_s {real},
        exit_code {big},
        signal {big},
        cpu_s {real},
        peak_rss_bytes {big},
        items {big},
        errors {big},
        message {text} NOT NULL,
        tail {text} NOT NULL,
        cut_bytes {big} NOT NULL,
        leftovers {text} NOT NULL,
        orphans {text} NOT NULL,
        stdin_unread {flag} NOT NULL,
        holder {text},
        times {big} NOT NULL,
        pings {text} NOT NULL,
        late_status {text},
        late_exit_code {big},
        late_finished_at_utc {instant},
        keyed_by {text} NOT NULL
    )""",
    """CREATE UNIQUE INDEX runs_one_per_key ON runs (job, run_key)
        WHERE status IN ('running', 'success') AND NOT forced""",
    """CREATE UNIQUE INDEX runs_one_per_job ON runs (job) WHERE status = 'running'""",
    """CREATE UNIQUE INDEX runs_one_per_lock ON runs (lock) WHERE status = 'running'""",
    """CREATE UNIQUE INDEX runs_claims ON runs (job, run_key, claim_no) WHERE claim_no IS NOT NULL""",
    """CREATE INDEX runs_by_key ON runs (job, run_key)""",
    """CREATE INDEX runs_by_start ON runs (job, started_at_utc, run_id)""",
    """CREATE INDEX runs_by_time ON runs (started_at_utc, run_id)""",
    # For prune: runs and skips apart, and without the rows that are kept for ever, or it would walk over all of those.
    """CREATE INDEX runs_prunable ON runs (job, started_at_utc)
        WHERE status <> 'skipped' AND (keyed_by <> 'text' OR status <> 'success')""",
    """CREATE INDEX runs_skips ON runs (job, started_at_utc) WHERE status = 'skipped'""",
    # The two below are filled by items and checkpoint; here so that those need no migration.
    """CREATE TABLE items (
        job {text} NOT NULL,
        item_key {text} NOT NULL,
        group_name {text} NOT NULL DEFAULT '',
        payload {text} NOT NULL DEFAULT '',
        status {text} NOT NULL,
        attempts {big} NOT NULL DEFAULT 0,
        not_before_at {instant},
        run_id {text},
        fence {big},
        lease_until {instant},
        added_at {instant} NOT NULL,
        started_at {instant},
        finished_at {instant},
        message {text} NOT NULL DEFAULT '',
        PRIMARY KEY (job, item_key)
    )""",
    """CREATE INDEX items_by_status ON items (job, status, added_at)""",
    """CREATE TABLE checkpoints (
        job {text} NOT NULL,
        name {text} NOT NULL,
        value {text} NOT NULL,
        run_id {text},
        fence {big},
        set_at {instant} NOT NULL,
        PRIMARY KEY (job, name)
    )""",
    """CREATE TABLE incidents (
        incident_id {text} NOT NULL PRIMARY KEY,
        job {text} NOT NULL,
        kind {text} NOT NULL,
        state {text} NOT NULL,
        summary {text} NOT NULL,
        check_first {text} NOT NULL,
        since_at {instant} NOT NULL,
        opened_at {instant} NOT NULL,
        closed_at {instant},
        reopened {big} NOT NULL DEFAULT 0,
        told_at {instant},
        recovery_told_at {instant},
        telling_until {instant},
        teller {text}
    )""",
    """CREATE UNIQUE INDEX incidents_one_open ON incidents (job, kind) WHERE closed_at IS NULL""",
    """CREATE INDEX incidents_by_end ON incidents (closed_at)""",
    """INSERT INTO meta (name, value) VALUES ('schema_version', '1')""",
)

# What jobs may write themselves, in transactions of their own (README, "In your own transaction"): columns have
# defaults such that the key alone makes a row that means the obvious. No version before ever filled `items`.
_VERSION_2 = (
    """DROP TABLE items""",
    """CREATE TABLE items (
        job {text} NOT NULL,
        item_key {text} NOT NULL,
        group_name {text} NOT NULL DEFAULT '',
        payload {text} NOT NULL DEFAULT '',
        status {text} NOT NULL DEFAULT 'waiting' CHECK (status IN ('waiting', 'reserved', 'done', 'dead')),
        token {big} NOT NULL DEFAULT 0,
        attempts {big} NOT NULL DEFAULT 0,
        available_at {instant} NOT NULL DEFAULT {now},
        worker {text},
        take_id {text},
        run_id {text},
        added_at {instant} NOT NULL DEFAULT {now},
        started_at {instant},
        finished_at {instant},
        message {text} NOT NULL DEFAULT '',
        PRIMARY KEY (job, item_key)
    )""",
    # No index but the key's serves the job alone: old statistics could make it look as good for finding a key.
    """CREATE INDEX items_open ON items (job, group_name, available_at, item_key)
        WHERE status IN ('waiting', 'reserved')""",
    """CREATE INDEX items_by_worker ON items (worker) WHERE worker IS NOT NULL""",
    """CREATE INDEX items_ended ON items (job, status, available_at) WHERE status IN ('done', 'dead')""",
    """CREATE TABLE ledger (
        job {text} NOT NULL,
        run_key {text} NOT NULL DEFAULT '',
        effect_key {text} NOT NULL,
        status {text} NOT NULL DEFAULT 'done' CHECK (status IN ('started', 'done', 'failed')),
        token {text} NOT NULL DEFAULT '',
        attempts {big} NOT NULL DEFAULT 1,
        run_id {text},
        owner {text},
        lease_until {instant},
        started_at {instant} NOT NULL DEFAULT {now},
        finished_at {instant},
        message {text} NOT NULL DEFAULT '',
        PRIMARY KEY (job, run_key, effect_key)
    )""",
    """CREATE INDEX ledger_open ON ledger (job, started_at) WHERE status <> 'done'""",
    """CREATE INDEX ledger_by_start ON ledger (job, started_at)""",
    # Since when the present schedule, zone and key are known, whatever pauses there were; keys of before were others.
    """ALTER TABLE jobs ADD COLUMN defined_at {instant}""",
    """UPDATE jobs SET defined_at = since_at""",
    # Between these two `--catch-up oldest` found nothing left to do, so that nobody looks there again.
    """ALTER TABLE jobs ADD COLUMN settled_from_at {instant}""",
    """ALTER TABLE jobs ADD COLUMN settled_until_at {instant}""",
    """UPDATE meta SET value = '2' WHERE name = 'schema_version'""",
)

# Element i brings version i to version i + 1; its last statement writes the new version.
_STEPS: Sequence[Sequence[str]] = (_VERSION_1, _VERSION_2)
VERSION = len(_STEPS)

BRING_UP = "cronguard init brings them up to date"
VERSION_SQL = "SELECT value FROM meta WHERE name = 'schema_version'"


def steps_from(version: int, types: Mapping[str, str]) -> List[str]:
    """The DDL that brings a store of that version (0: empty) to ours."""
    return [sql.format(**types) for step in _STEPS[version:] for sql in step]


def version_of(result: Result) -> int:
    """The version that VERSION_SQL read; 0 for an empty store."""
    return int(result.rows[0][0]) if result.rows else 0


def is_current(version: int, store_name: str) -> bool:
    """False: steps are needed. A newer store is a StoreError: an old program must not write what it cannot read."""
    if version > VERSION:
        raise StoreError(
            f"store: {store_name}: its schema has version {version}, this cronguard knows {VERSION}",
            "update cronguard on this host",
        )
    return version == VERSION
