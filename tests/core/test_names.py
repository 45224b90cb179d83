"""Names of jobs and locks."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cronguard.core.names import check_job_name, check_lock_name, nearest

RULE = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")


@pytest.mark.parametrize("text", ["a", "nightly-export", "0", "a.b_c-D", "x" * 100])
def test_name_by_the_rule_has_no_problem(text: str) -> None:
    assert check_job_name(text) is None
    assert check_lock_name(text) is None


@pytest.mark.parametrize("text", ["", ".", "-a", "_a", "a b", "a/b", "../x", "a\n", "\n", "é", "x" * 101, "a\0", "٣"])
def test_other_names_are_refused_in_one_line(text: str) -> None:
    problem = check_job_name(text)
    assert problem is not None
    assert problem.isprintable()
    assert check_lock_name(text) is not None


@given(st.text(alphabet=st.sampled_from("aZ09._- /\n\0é٣"), max_size=110))
def test_check_agrees_with_the_regular_expression_of_the_documentation(text: str) -> None:
    assert (check_job_name(text) is None) == (RULE.fullmatch(text) is not None)


def test_nearest_name_is_found_and_a_far_one_is_not() -> None:
    assert nearest("timout", ["timeout", "grace"]) == ["timeout"]
    assert nearest("zzz", ["timeout", "grace"]) == []
