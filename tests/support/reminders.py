"""Sends a hundred reminders and is killed at each of them. Run as a program, by test_reminders: STORE SENT EFFECT.

For each place from 0 to 99 a process is forked from this one, with everything loaded, begins a few reminders before and
kills itself at that place: before the mark, between mark and effect, or between effect and the word that it is done, in
turns. The last one goes through all of them. What was sent is in the file SENT, a line each.
"""

from __future__ import annotations

import logging  # noqa: F401  # loaded here, so that no child has to
import os
import signal
import sys
from importlib import import_module
from pathlib import Path

from cronguard import once

REMINDERS = 100
MOMENTS = ("before the mark", "before the effect", "before the end")


def moment_of(place: int) -> str:
    return MOMENTS[place % len(MOMENTS)]


def send_all(store: str, job: str, sent: Path, effect: str, place: int) -> None:
    """`place` -1: live through it. An outbox that is open all the time: a write is whole or not there."""
    outbox = os.open(sent, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)

    def die_at(number: int, moment: str) -> None:
        if number == place and moment_of(place) == moment:
            os.kill(os.getpid(), signal.SIGKILL)

    for number in range(max(0, place - 2), REMINDERS):
        die_at(number, "before the mark")
        with once(f"reminder:{number}", job=job, store=store, effect=effect, on_unknown="redo") as begun:
            if begun:
                die_at(number, "before the effect")
                os.write(outbox, f"{number}\n".encode())
                die_at(number, "before the end")


def in_a_child(store: str, place: int, sent: Path, effect: str) -> None:
    pid = os.fork()
    if pid == 0:
        try:
            send_all(store, "reminders", sent, effect, place)
            os._exit(0)
        finally:
            os._exit(70)
    _, status = os.waitpid(pid, 0)
    expected = 0 if place < 0 else signal.SIGKILL
    if status != expected:
        raise SystemExit(f"place {place}: status {status}")


def main(store: str, sent: str, effect: str) -> None:
    import_module("cronguard.store." + ("sqlite" if store.startswith("sqlite:") else "postgres"))
    for place in (*range(REMINDERS), -1):
        in_a_child(store, place, Path(sent), effect)


if __name__ == "__main__":
    main(*sys.argv[1:])
