"""The two front ends understand the same: what `lean` takes, typer would have taken for the same request."""

from __future__ import annotations

from typing import Any, Dict, List, Tuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cronguard.cli import app, effect, item_work, items, main, once, run
from cronguard.cli.edge import Progress
from cronguard.cli.lean import line_of
from cronguard.core.settings import SETTINGS
from cronguard.errors import CronguardError

VALUES = st.sampled_from(["5m", "", "-", "--", "-v", "--force", "a=b", "UTC", "x y", "é"])
OPTIONS = [setting.option for setting in SETTINGS if setting.kind != "flag"] + ["--store", "--config"]
FLAGS = [setting.option for setting in SETTINGS if setting.kind == "flag"] + ["--force", "--dry-run", "-v", "--verbose"]
PIECES = st.one_of(
    st.tuples(st.sampled_from(OPTIONS), VALUES),
    st.tuples(st.sampled_from(OPTIONS), VALUES).map(lambda pair: ("=".join(pair),)),
    st.tuples(st.sampled_from(FLAGS)),
    st.tuples(st.sampled_from(["job", "run", "--quite", "--help", "-h", "-vv", "--force=1", "--tim", "-x"])),
)


def seen_by(front_end: str, words: List[str], monkeypatch: pytest.MonkeyPatch) -> List[Tuple[Any, Any]]:
    """The requests that come out of it."""
    seen: List[Tuple[Any, Any]] = []

    def note(request: Any, invocation: Any) -> int:
        seen.append((request, invocation))
        return 0

    monkeypatch.setattr(main if front_end == "lean" else run, "carry_out", note)
    if front_end == "lean":
        main.execute(words)
    else:
        app.invoke(words, Progress())
    return seen


@settings(max_examples=200, deadline=None)
@given(before=st.lists(PIECES, max_size=2), after=st.lists(PIECES, max_size=4), behind=st.booleans())
def test_what_lean_understands_typer_understands_alike(before: list, after: list, behind: bool) -> None:
    words = [word for piece in before for word in piece] + ["run", "job"]
    words += [word for piece in after for word in piece] + (["--", "echo", "--quiet"] if behind else [])
    if line_of(words) is None:
        return
    with pytest.MonkeyPatch.context() as monkeypatch:
        lean = seen_by("lean", words, monkeypatch)
        try:
            full = seen_by("typer", words, monkeypatch)
        except CronguardError:  # which `execute` has shown in the other case
            full = []
    assert lean == full


@pytest.mark.parametrize(
    ("lean_end", "full_end", "line"),
    [
        (item_work, items, "-v items work mails --budget 50s --batch=3 --store sqlite:x -- send {key} --quiet"),
        (item_work, items, "items --config c work mails"),
        (effect, once, "--log-format json once key --effect at-least-once --job=mails -- send"),
    ],
)
def test_other_commands_that_start_fast_are_understood_alike(
    lean_end: Any, full_end: Any, line: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: List[Any] = []

    def note(subject: str, words: Any, given: Dict[str, Any], invocation: Any, *_more: Any) -> int:
        texts = {name: text for name, text in given.items() if text not in (None, False)}
        seen.append((subject, words, texts, invocation))
        return 0

    monkeypatch.setattr(lean_end, "carry_out", note)
    monkeypatch.setattr(full_end, "carry_out", note)
    assert line_of(line.split()) is not None
    main.execute(line.split())
    app.invoke(line.split(), Progress())
    assert len(seen) == 2
    assert seen[0] == seen[1]


@pytest.mark.parametrize(
    "words",
    [
        ["run"],
        ["items", "work"],
        ["items", "work", "mails", "--force"],
        ["items", "--budget", "3s", "work", "mails"],
        ["items", "list", "work"],
        ["run", "--help"],
        ["run", "job", "extra", "--", "true"],
        ["run", "job", "--timeout"],
        ["run", "job", "--timout", "3"],
        ["run", "job", "--force=yes"],
        ["--force", "run", "job"],
        ["--timeout", "3", "run", "job"],
        ["status"],
        ["--version"],
        [],
    ],
)
def test_everything_that_is_not_plainly_right_goes_to_typer(words: list) -> None:
    assert line_of(words) is None


def test_a_plain_line_is_understood() -> None:
    line = line_of(["-v", "--store=sqlite:x", "run", "job", "--timeout", "5m", "--quiet", "--", "echo", "--force"])
    assert line is not None
    assert (line.subject, line.words) == ("job", ("echo", "--force"))
    assert line.given == {"verbose": True, "store": "sqlite:x", "timeout": "5m", "quiet": True}
