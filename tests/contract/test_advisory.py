"""The number for PostgreSQL's advisory locks."""

from __future__ import annotations

from hypothesis import example, given, settings
from hypothesis import strategies as st

from cronguard.core.advisory import advisory_key


@given(st.text(), st.text())
@example("", "")
@example("cronguard", "\U0001f980" * 10_240)
@settings(max_examples=500, deadline=None)
def test_key_of_any_name_is_a_signed_64_bit_number(schema: str, lock: str) -> None:
    """FR-57."""
    assert -(2**63) <= advisory_key(schema, lock) < 2**63


def test_key_is_the_same_on_every_host_and_in_every_version() -> None:
    """FR-57. Changing this breaks mutual exclusion between versions."""
    assert advisory_key("cronguard", "nightly-export") == -1566085672929466482
    assert advisory_key("cronguard", "") != advisory_key("cronguar", "d")


def test_names_that_look_alike_have_keys_of_their_own() -> None:
    """FR-57: composed and decomposed, with and without a byte, in another schema."""
    names = [("s", "caf\u00e9"), ("s", "cafe\u0301"), ("s", "cafe"), ("t", "cafe"), ("s", "a" * 10_240)]
    assert len({advisory_key(*name) for name in names}) == len(names)


def test_fifty_thousand_names_share_no_key() -> None:
    """FR-57."""
    assert len({advisory_key("cronguard", f"job-{number}") for number in range(50_000)}) == 50_000
