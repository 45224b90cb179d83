"""A bar on stderr for work that has many parts, where somebody looks on. Loads rich only then."""

from __future__ import annotations

import os
from contextlib import contextmanager
from typing import Any, Iterator, Mapping, Optional


class Bar:
    """Drawn in a thread of its own from `begin` on, which must not be there before the keepers are forked."""

    def __init__(self, progress: Any) -> None:
        self._progress = progress
        self._task = progress.add_task("", total=None)

    def begin(self, total: int) -> None:
        """So many parts there are."""
        self._progress.update(self._task, total=total)
        self._progress.start()

    def move(self, completed: int, words: str) -> None:
        """So many are done; `words` stand behind the bar."""
        self._progress.update(self._task, completed=completed, description=words)


@contextmanager
def bar_for(job: str, environ: Mapping[str, str]) -> Iterator[Optional[Bar]]:
    """None where nobody looks on; what commands print stands beside the bar, as they print it."""
    if not os.isatty(2) or environ.get("TERM", "dumb") == "dumb":
        yield None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn(job), BarColumn(), MofNCompleteColumn(), TextColumn("{task.description}"))
    progress = Progress(*columns, TimeRemainingColumn(), console=Console(stderr=True), transient=True)
    try:
        yield Bar(progress)
    finally:
        progress.stop()
