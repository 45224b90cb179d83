"""A progress bar on stderr, where somebody looks on. What a command prints stands beside it, as it prints it."""

from __future__ import annotations

import os
from contextlib import contextmanager
from typing import Any, Iterator, Mapping, Optional

CLEARED = b"\r\x1b[2K"  # what to write before a line of ours, so that no half of a bar stands before it


@contextmanager
def progress_bar(title: str, environ: Mapping[str, str]) -> Iterator[Optional[Any]]:
    """rich's Progress, not started yet: it is drawn in a thread of its own, which must not be there before a keeper is
    forked. None without a terminal to draw on."""
    if not os.isatty(2) or environ.get("TERM", "dumb") == "dumb":
        yield None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn(title), BarColumn(), MofNCompleteColumn(), TextColumn("{task.description}"))
    progress = Progress(*columns, TimeRemainingColumn(), console=Console(stderr=True), transient=True)
    try:
        yield progress
    finally:
        progress.stop()
