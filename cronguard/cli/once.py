"""`cronguard once` as typer knows it: help, and what is wrong with a line that `lean` did not understand."""

from __future__ import annotations

from typing import Any

from cronguard.cli.behind import CommandBehindDashes, words_behind
from cronguard.cli.effect import carry_out
from cronguard.cli.parameters import argument, command, option_for
from cronguard.core.model import Invocation
from cronguard.core.settings import ONCE


@command(argument("key", "KEY", "what is to happen once: any text that names it"), *[option_for(each) for each in ONCE])
def once(invocation: Invocation, ctx: Any, key: str, **given: Any) -> int:
    """Do one thing once, however often and by whomever it is tried: a mail, a payment, a call.

    Example: cronguard once "reminder:2026-01-20:4711" -- ./send-mail 4711

    The mark is written before CMD starts. At most once, whoever finds a mark skips (exit 0), also after a crash in
    between. At least once, what failed is tried again, and what nobody saw the end of as --on-unknown says.
    Exit codes: CMD's own; 0 it needs not be done; 75 not now; 124 timeout; 125 cronguard could not do its part.
    """
    return carry_out(key, words_behind(ctx), given, invocation, ctx.obj)


once.parser = CommandBehindDashes  # type: ignore[attr-defined]
