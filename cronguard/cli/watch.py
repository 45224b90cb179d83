"""A table that redraws itself on a terminal until q or ^C.

What is shown is gathered in a thread of its own, so that keys are heard while a database does not answer. A store that
is down for a while is said so below what was last seen. The terminal is left as it was found, also after TERM.
"""

from __future__ import annotations

import os
import select
import signal
import sys
import threading
from contextlib import contextmanager
from datetime import datetime
from typing import Any, Callable, Generic, Iterator, Mapping, NoReturn, Optional, TypeVar

from cronguard.cli.edge import one_line
from cronguard.cli.render import Table, drawn
from cronguard.errors import ConfigError, StoreError
from cronguard.system import clock

T = TypeVar("T")
EVERY_S = 2.0
_REDRAW_S = 1.0
_TERMINATED = 128 + signal.SIGTERM


def watch(gather: Callable[[], T], table_of: Callable[[T, datetime], Table], environ: Mapping[str, str]) -> int:
    """Until q: 0. What `gather` raises at first ends it, but for a store that is down; later a broken file does not."""
    from rich.console import Console
    from rich.live import Live

    source = _Source(gather)
    console: Any = Console(highlight=False)
    with _cbreak(), _leaving_on_term(), Live(console=console, screen=True, auto_refresh=False) as live:
        source.start()
        while True:
            live.update(_picture(source, table_of, console, environ), refresh=True)
            if _pressed(_REDRAW_S) in (b"q", b"Q"):
                return 0


class _Source(Generic[T]):
    """What was last gathered, and what is wrong since. The first look is taken before anything is drawn."""

    def __init__(self, gather: Callable[[], T]) -> None:
        self.value: Optional[T] = None
        self.trouble = ""
        self.bug: Optional[BaseException] = None
        self._gather = gather
        try:
            self.value = gather()
        except StoreError as error:
            self.trouble = str(error)

    def start(self) -> None:
        threading.Thread(target=self._serve, name="cronguard-watch", daemon=True).start()

    def _serve(self) -> None:
        pause = threading.Event()
        while self.bug is None:
            pause.wait(EVERY_S)
            try:
                self.value, self.trouble = self._gather(), ""
            except (StoreError, ConfigError) as error:  # the file may be in somebody's editor
                self.trouble = str(error)
            except BaseException as error:  # noqa: BLE001  # raised again in the thread that shows
                self.bug = error


def _picture(
    source: _Source[T], table_of: Callable[[T, datetime], Table], console: Any, environ: Mapping[str, str]
) -> Any:
    from rich.console import Group
    from rich.text import Text

    if source.bug is not None:
        raise source.bug
    now_utc = clock.now_utc(environ)
    footer = Text(f"{now_utc:%Y-%m-%d %H:%M:%S}Z  q ends", style="dim")
    parts = []
    if source.value is not None:
        table = table_of(source.value, now_utc)
        room = max(1, console.height - 5)
        if len(table.rows) > room:
            footer.append(f"  {len(table.rows) - room} more jobs below: name some, or make the window taller")
        parts.append(drawn(table._replace(rows=table.rows[:room]), console.width))
    if source.trouble:
        parts.append(Text(one_line(source.trouble), style="red"))
    return Group(*parts, footer)


def _pressed(within_s: float) -> bytes:
    """The next key; nothing when the time is over, or when there is no keyboard."""
    if not _keyboard():
        threading.Event().wait(within_s)
        return b""
    readable, _, _ = select.select([0], [], [], within_s)
    return os.read(0, 1) if readable else b""


def _keyboard() -> bool:
    return sys.stdin is not None and os.isatty(0)


@contextmanager
def _cbreak() -> Iterator[None]:
    """Keys without Return, and without being shown."""
    if not _keyboard():
        yield
        return
    import termios
    import tty

    before = termios.tcgetattr(0)
    tty.setcbreak(0)
    try:
        yield
    finally:
        termios.tcsetattr(0, termios.TCSADRAIN, before)


@contextmanager
def _leaving_on_term() -> Iterator[None]:
    """TERM unwinds, so that the terminal gets back its screen and its modes."""
    before = signal.signal(signal.SIGTERM, _leave)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def _leave(signum: int, frame: Any) -> NoReturn:
    raise SystemExit(_TERMINATED)
