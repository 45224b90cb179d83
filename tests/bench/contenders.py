"""Who runs in the benchmark: the floors, what people use instead, and cronguard on each store."""

from __future__ import annotations

import os
import shutil
import sys
from contextlib import ExitStack
from pathlib import Path
from typing import Callable, Dict, List, NamedTuple, Optional

from tests.support.pingserver import CHECK, PingServer

BARE = "the command alone"
FLOOR = "python -c pass, then the command"


class Contender(NamedTuple):
    """`wrap(command, number)`: the argument list; `number` tells runs apart that happen at the same time.

    `does`: what it does for its price, so that nobody compares a lock with a lock, a history and a heartbeat."""

    name: str
    does: str
    wrap: Callable[[List[str], int], List[str]]
    environ: Dict[str, str]


def lineup(work: Path, dsn: Optional[str], stack: ExitStack) -> List[Contender]:
    """All that can run here; servers that they talk to are closed with `stack`."""
    server = stack.enter_context(PingServer())
    found = [
        Contender(BARE, "", lambda command, number: command, {}),
        Contender(FLOOR, "", _after_python, {}),
        *_others(work, server),
        _cronguard("cronguard, SQLite", "all but heartbeats", work, {}),
        _cronguard("cronguard, SQLite, 2 pings", "all", work, {"CRONGUARD_PING": server.check_url}),
    ]
    if dsn is not None:
        found.append(_cronguard("cronguard, PostgreSQL", "all but heartbeats", work, {"CRONGUARD_STORE": dsn}))
    return found


def _after_python(command: List[str], number: int) -> List[str]:
    """The interpreter's own start and end, in front of the same command."""
    return ["/bin/sh", "-c", '"$0" -c pass && exec "$@"', sys.executable, *command]


def _others(work: Path, server: PingServer) -> List[Contender]:
    api, sentry = f"http://127.0.0.1:{server.port}/ping", f"http://key@127.0.0.1:{server.port}/1"
    candidates = [
        (
            "flock",
            Contender(
                "flock + timeout", "lock, timeout",
                lambda command, number: ["flock", "-n", str(work / f"flock-{number}"), "timeout", "3600", *command], {},
            ),
        ),
        (
            "runitor",
            Contender(
                "runitor", "2 pings",
                lambda command, number: ["runitor", "-api-url", api, "-uuid", CHECK, "--", *command], {},
            ),
        ),
        (
            "sentry-cli",
            Contender(
                "sentry-cli monitors run", "2 pings",
                lambda command, number: ["sentry-cli", "monitors", "run", "bench", "--", *command],
                {"SENTRY_DSN": sentry},
            ),
        ),
        ("chronic", Contender("chronic", "quiet on success", lambda command, number: ["chronic", *command], {})),
    ]  # fmt: skip
    return [contender for program, contender in candidates if shutil.which(program)]


def _cronguard(name: str, does: str, work: Path, environ: Dict[str, str]) -> Contender:
    state = work / name.replace(" ", "-").replace(",", "")
    script = Path(sys.executable).parent / "cronguard"
    program = [str(script)] if os.access(str(script), os.X_OK) else [sys.executable, "-m", "cronguard"]

    def wrap(command: List[str], number: int) -> List[str]:
        return [*program, "run", f"bench-{number}", "--timeout", "1h", "--", *command]

    return Contender(name, does, wrap, {"CRONGUARD_STATE_DIR": str(state), **environ})
