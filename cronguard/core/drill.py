"""What a drill saw: guards that were tried on purpose, one after the other."""

from __future__ import annotations

from typing import NamedTuple, Sequence, Tuple

# `skipped`: it could not be tried, which `seen` explains; that is no failure of the guard.
STATES = ("ok", "failed", "skipped")


class Step(NamedTuple):
    """`guard`: what was tried; `expected` and `seen` in plain words, `state` one of STATES."""

    guard: str
    expected: str
    seen: str
    state: str


class Drilled(NamedTuple):
    """`job`: the throwaway name; `left`: what could not be cleaned up, empty when nothing is left."""

    job: str
    store: str
    steps: Tuple[Step, ...]
    took_s: float
    left: str

    @property
    def held(self) -> bool:
        """Every guard that could be tried did its part."""
        return all(step.state != "failed" for step in self.steps)


def judged(guard: str, expected: str, facts: Sequence[Tuple[str, bool]]) -> Step:
    """A step by what was seen; the first fact that is not as it should be comes first."""
    wrong = [text for text, right in facts if not right]
    right = [text for text, right in facts if right]
    return Step(guard, expected, ", ".join([*wrong, *right]), "failed" if wrong else "ok")
