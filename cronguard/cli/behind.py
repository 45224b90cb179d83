"""Commands that stand in front of another one: what is behind the first `--` is that one, word for word.

Typer never sees it, so no option of the command's can be mistaken for one of ours.
"""

from __future__ import annotations

from typing import Any, List, Optional, Tuple

from typer.core import TyperCommand

from cronguard.cli.request import split_at_dashes

_BEHIND_DASHES = "cronguard.behind_dashes"


class CommandBehindDashes(TyperCommand):
    """Keeps everything behind the first `--` from typer."""

    def parse_args(self, ctx: Any, args: List[str]) -> List[str]:
        own, ctx.meta[_BEHIND_DASHES] = split_at_dashes(args)
        return super().parse_args(ctx, own)

    def collect_usage_pieces(self, ctx: Any) -> List[str]:
        options, *words = super().collect_usage_pieces(ctx)
        return [*(word.strip("{}") for word in words), options, "[-- CMD [ARG]...]"]


def words_behind(ctx: Any) -> Optional[Tuple[str, ...]]:
    """The command's words; None: there was no `--`."""
    found: Optional[Tuple[str, ...]] = ctx.meta[_BEHIND_DASHES]
    return found
