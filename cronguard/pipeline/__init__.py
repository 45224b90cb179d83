"""One slot from claim to record: the passage that run, backfill and drill share.

claim -> supervise -> judge -> record -> announce. Data flows one way; the outcome is fixed before the row is written,
the row before the ping goes out. Nothing here parses, prints or exits. The store is only reached through its worker
thread, and every call has a deadline: the supervising loop never waits for a database.

`passage` has the values, `slot` the whole way, `claiming`, `running` and `recording` its three parts, `telling` what
is said while it happens.
"""
