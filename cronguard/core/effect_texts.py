"""Effects as people write and read them: keys, what a command is told, what a mark means to somebody who has to act."""

from __future__ import annotations

from datetime import timezone
from typing import Dict, Mapping, Optional

from cronguard.core import names
from cronguard.core.item_texts import item_key
from cronguard.core.ledger import Effect, Mark, idempotency_key, run_key_from
from cronguard.errors import UsageError

# Kept in the environment of the command and all that it starts, so that what is left over of it is known by it.
TOKEN_VARIABLE = "CRONGUARD_ONCE_TOKEN"

_PLAIN = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789@%+=:,./_-")


def effect_of(job: str, key: str, per_slot: bool, environ: Mapping[str, str]) -> Effect:
    """UsageError for a key that is none. `per_slot`: once for each run key of the job."""
    return Effect(job, checked_key(key), run_key_from(environ) if per_slot else "")


def checked_key(key: str) -> str:
    """As an item's: 1 to 500 characters without control characters, kept byte for byte. UsageError otherwise."""
    try:
        return item_key(key)
    except ValueError as error:
        raise UsageError(f"KEY: {names.shown(key)}: {error}") from None


def effect_environment(effect: Effect, token: str) -> Dict[str, str]:
    """What the command of an effect is told."""
    return {
        "CRONGUARD_ONCE_KEY": effect.key,
        "CRONGUARD_IDEMPOTENCY_KEY": idempotency_of(effect),
        TOKEN_VARIABLE: token,
    }


def idempotency_of(effect: Effect) -> str:
    """For a service that takes such a key: the same each time this effect is tried."""
    return idempotency_key("effect", effect.job, effect.run_key, effect.key)


def standing(mark: Mark, state: str) -> str:
    """What is known of it, in one line."""
    at = mark.started_at_utc.astimezone(timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")
    began = f"begun {at}{_by(mark)}"
    if state == "done":
        return f"it is done ({began})"
    if state == "under_way":
        return f"it is under way ({began})"
    if state == "failed":
        return f"it failed ({began}{f': {mark.message}' if mark.message else ''}) and may not have happened"
    return f"nobody knows whether it happened: {began}, and its end was never recorded"


def what_to_do(effect: Effect) -> str:
    """How a person settles what nobody else can."""
    return f"if it happened: cronguard items settle {_words(effect)}; {allowing(effect)}"


def allowing(effect: Effect) -> str:
    """How a person lets it happen (again)."""
    return f"to allow it: cronguard items forget --ledger {_words(effect)}"


def _words(effect: Effect) -> str:
    slot = f"--run-key {_quoted(effect.run_key)} " if effect.run_key else ""
    return f"{slot}{effect.job} {_quoted(effect.key)}"


def _quoted(text: str) -> str:
    """For a shell, as shlex would; that one loads `re`, which is too late after the command (FR-34)."""
    if text and set(text) <= _PLAIN:
        return text
    return "'" + text.replace("'", "'\\''") + "'"


def _by(mark: Mark) -> str:
    parts = [_run(mark.run_id), f"on {mark.owner.host}, pid {mark.owner.pid}" if mark.owner else ""]
    words = " ".join(part for part in parts if part)
    return f" {words}" if words else ""


def _run(run_id: Optional[str]) -> str:
    return f"by run {names.short_id(run_id)}" if run_id else ""
