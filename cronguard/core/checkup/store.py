"""The store: is it there, can it be written, do its locks exclude, what stands before it, what does its clock say."""

from __future__ import annotations

from typing import List, Mapping, Sequence

from cronguard.core.checkup.facts import StoreFacts
from cronguard.core.checkup.item import FAILURE, OK, SKIPPED, WARNING, Item, listed
from cronguard.core.durations import format_duration

AHEAD_WARNING_S = 2.0
AHEAD_FAILURE_S = 60.0
_PREFIX = "store: "
_NOT_THERE = "the store cannot be used"


def down(why: str, hint: str) -> List[Item]:
    """A store that did not answer: what it would have told stays unknown."""
    others = [Item(name, SKIPPED, _NOT_THERE) for name in ("schema", "lock", "pooler", "clock")]
    why = why[len(_PREFIX) :] if why.startswith(_PREFIX) else why
    return [Item("store", FAILURE, why, hint or "start it, or name another one by --store"), *others]


def store_items(facts: StoreFacts, source: str) -> List[Item]:
    """`source`: where the store's URL came from."""
    return [_store(facts, source), _schema(facts), _lock(facts), _pooler(facts), _clock(facts)]


def other_stores(tables: Mapping[str, object], chosen: Sequence[str]) -> List[Item]:
    """Jobs whose runs are kept elsewhere: what is said of this store does not hold for them."""
    others = [job for job in chosen if isinstance(tables.get(job), Mapping) and "store" in tables[job]]  # type: ignore[operator]
    if not others:
        return []
    text = f"{listed(others)}: the config file gives a store of its own, which was not looked at"
    return [Item("store", SKIPPED, text, "run doctor with that --store too")]


def _store(facts: StoreFacts, source: str) -> Item:
    where = f"{facts.name} ({source})"
    if facts.refused:
        return Item("store", OK, f"{where} answers")
    if facts.write_problem:
        return Item("store", FAILURE, f"{where} cannot be written: {facts.write_problem}", _how_to_write(facts))
    if not facts.exists:
        return Item("store", OK, f"{where} is not there yet; the first run makes it")
    return Item("store", OK, f"{where} is reachable and writable")


def _how_to_write(facts: StoreFacts) -> str:
    if "read-only" in facts.write_problem:
        return "name the primary, not a standby, or end the read-only mode"
    if facts.hint:
        return facts.hint
    return "run as the user who owns it, or name another file by --store"


def _schema(facts: StoreFacts) -> Item:
    if facts.refused:
        return Item("schema", FAILURE, facts.refused, facts.hint or "name another store")
    if facts.version == 0 and facts.write_problem:
        return Item("schema", SKIPPED, _NOT_THERE)
    if facts.version == 0:
        return Item("schema", OK, "no tables yet; `cronguard init` or the first run makes them")
    if facts.version < facts.newest:
        text = f"version {facts.version}, this cronguard wants {facts.newest}; the first run brings it there"
        return Item("schema", WARNING, text, "run `cronguard init` while nothing runs, as a role that may alter tables")
    return Item("schema", OK, f"version {facts.version} is current")


def _lock(facts: StoreFacts) -> Item:
    if facts.held == "held":
        return Item("lock", OK, f"{_who(facts)} could not take what the first one held, and could afterwards")
    if facts.held == "free":
        hint = "use one primary, reached by every host, or a local disk; until then nothing keeps runs apart"
        return Item("lock", FAILURE, f"not exclusive: {_who(facts)} took a lock that the first one held", hint)
    if facts.held == "stuck":
        text = f"{_who(facts)} could not take a lock that had been given back"
        return Item("lock", FAILURE, text, "look for a process or pooler that keeps connections and their locks")
    return Item("lock", SKIPPED, f"could not be tried: {facts.held or _NOT_THERE}")


def _who(facts: StoreFacts) -> str:
    return "a second connection" if facts.leased else "a second process"


def _pooler(facts: StoreFacts) -> Item:
    if not facts.leased:
        return Item("pooler", OK, "a file has none")
    if facts.pooler is None:
        return Item("pooler", SKIPPED, _NOT_THERE)
    if facts.pooler:
        return Item("pooler", OK, "there is one in between; harmless, for cronguard keeps nothing in a session")
    return Item("pooler", OK, "none seen")


def _clock(facts: StoreFacts) -> Item:
    if not facts.leased:
        return Item("clock", OK, "the store's clock is this host's")
    if facts.ahead_s is None:
        return Item("clock", SKIPPED, _NOT_THERE)
    # It was read somewhere within the round trip.
    doubt_s = facts.round_trip_s / 2
    off_s = abs(facts.ahead_s)
    side = "ahead of" if facts.ahead_s > 0 else "behind"
    text = f"the database's clock is {format_duration(off_s)} {side} this host's, give or take {_ms(doubt_s)}"
    hint = "let both follow one time server (chrony, systemd-timesyncd); slots are named by this host's clock"
    if off_s - doubt_s > AHEAD_FAILURE_S:
        return Item("clock", FAILURE, text, hint)
    return Item("clock", WARNING, text, hint) if off_s - doubt_s > AHEAD_WARNING_S else Item("clock", OK, text)


def _ms(seconds: float) -> str:
    return f"{max(1, round(seconds * 1000))} ms"
