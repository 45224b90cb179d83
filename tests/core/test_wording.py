"""Schedules in words."""

from __future__ import annotations

import pytest

from cronguard.core.model import ScheduleText
from cronguard.core.wording import in_words


@pytest.mark.parametrize(
    ("kind", "text", "words"),
    [
        ("cron", "30 2 * * *", "at 02:30 every day"),
        ("cron", "0 8 * * mon-fri", "at 08:00 on Monday through Friday"),
        ("cron", " @Daily ", "at 00:00 every day"),
        ("every", "5m", "every 5m"),
        ("calendar", "Mon..Fri 02:30", "at Mon..Fri 02:30 (systemd calendar)"),
    ],
)
def test_a_schedule_is_said_as_one_would_say_it(kind: str, text: str, words: str) -> None:
    assert in_words(ScheduleText(kind, text)) == words


def test_what_has_no_words_is_said_as_written() -> None:
    assert in_words(ScheduleText("cron", "0 0 1-5,1-5/9 * *")).startswith("at ")
