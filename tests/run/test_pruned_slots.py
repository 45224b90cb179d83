"""A slot whose rows were pruned is not run as if nobody had ever done it (P2), unless somebody insists."""

from __future__ import annotations

from pathlib import Path
from typing import Callable, Dict

import pytest

from tests.support.cronguard import cronguard, environment, history

pytestmark = pytest.mark.usual

NIGHTLY = ("--cron", "0 2 * * *", "--timezone", "UTC", "--timeout", "60s")


@pytest.fixture(params=["sqlite", "postgres"])
def at(request: pytest.FixtureRequest) -> Callable[[str], Dict[str, str]]:
    url = request.getfixturevalue(f"{request.param}_url")
    return lambda day: environment(
        CRONGUARD_TEST="1", CRONGUARD_TEST_NOW=f"{day}T02:00:03Z", CRONGUARD_STORE=url
    )


def test_a_pruned_slot_is_refused_and_others_are_not(at: Callable[[str], Dict[str, str]], tmp_path: Path) -> None:
    """FR-67: done slots still refuse a second run when nothing is left of them."""
    for day in ("2020-01-05", "2020-01-06", "2020-03-01"):
        assert cronguard("run", "j", *NIGHTLY, "--", "true", env=at(day)).returncode == 0
    assert "j: 2 rows" in cronguard("prune", "--older-than", "1d", env=at("2020-03-02")).stdout
    mark = tmp_path / "mark"
    for day in ("2020-01-05", "2020-01-06"):
        again = cronguard("-v", "run", "j", *NIGHTLY, "--", "touch", str(mark), env=at(day))
        assert (again.returncode, mark.exists()) == (75, False)
        assert "reason=attempts_used" in again.stderr
        assert "pruned" in again.stderr
    assert any("--force" in row["message"] for row in history("j", at("2020-03-02")))
    assert cronguard("run", "j", *NIGHTLY, "--", "true", env=at("2020-01-07")).returncode == 0
    forced = cronguard("run", "j", *NIGHTLY, "--force", "--", "touch", str(mark), env=at("2020-01-05"))
    assert (forced.returncode, mark.exists()) == (0, True)
