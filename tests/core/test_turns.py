"""Groups in a pass, and what a handler's end makes of its item."""

from __future__ import annotations

import pytest

from cronguard.core import turns
from cronguard.core.queue import Reserved

ITEM = Reserved("k", "g", "", 7, 2)


def test_group_that_fails_so_often_in_a_row_is_left_alone_and_said_once() -> None:
    pass_ = turns.Turns(10, None, 3)
    ends = [pass_.ended("bad", well) for well in (False, False, True, False, False, False, False)]
    assert ends == [False, False, False, False, False, True, False]
    assert pass_.left == ["bad"]
    assert pass_.offer(["a", "bad", "b"]) == turns.Offer(("a", "b"), 10)


def test_failures_of_one_group_say_nothing_of_another() -> None:
    pass_ = turns.Turns(10, None, 2)
    assert [pass_.ended(group, False) for group in "abab"] == [False, False, True, True]


def test_bound_of_each_group_counts_what_was_taken() -> None:
    pass_ = turns.Turns(10, 3, 5)
    for group in "aab":
        pass_.took(group)
    assert pass_.offer(["a", "b", "c"]) == turns.Offer(("a", "b", "c"), 1)
    pass_.took("a")
    assert pass_.offer(["a", "b", "c"]) == turns.Offer(("b", "c"), 2)


def test_no_group_to_serve_is_no_offer() -> None:
    assert turns.Turns(10, None, 5).offer([]).groups == ()


@pytest.mark.parametrize(
    ("first_s", "failures", "pause_s"), [(30, 1, 30), (30, 2, 60), (30, 8, 3600), (30, 999, 3600), (0, 5, 0)]
)
def test_pause_doubles_up_to_an_hour(first_s: float, failures: int, pause_s: float) -> None:
    assert turns.backoff_s(first_s, failures) == pause_s


def test_failure_waits_until_the_attempts_are_used_up() -> None:
    again = turns.failed(ITEM, "no", turns.Tries(4, 10))
    assert again == ("k", 7, "waiting", 3, 40.0, "no")
    assert turns.failed(ITEM, "no", turns.Tries(3, 10)) == ("k", 7, "dead", 3, 0.0, "no")


def test_what_we_ended_ourselves_counts_for_nothing_and_keeps_its_message() -> None:
    assert turns.given_back(ITEM) == ("k", 7, "waiting", 2, 0.0, None)


def test_item_that_outlived_its_last_worker_is_dead_without_another_try() -> None:
    end = turns.worn_out(ITEM)
    assert (end.status, end.attempts) == ("dead", 2)


def test_groups_take_turns_within_what_was_taken() -> None:
    taken = [Reserved(key, key[0], "", 1, 0) for key in ("a1", "a2", "a3", "b1", "c1", "c2")]
    assert [item.key for item in turns.in_turns(taken)] == ["a1", "b1", "c1", "a2", "c2", "a3"]
