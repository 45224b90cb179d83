"""Each of the public reports that the project answers has a test that names it, or a line that says why not."""

from __future__ import annotations

import re
from pathlib import Path

TESTS = Path(__file__).parent.parent
REPORTS = [
    1, 3, 5, 7, 8, 9, 10, 12, 15, 17, 18, 19, 20, 22, 25, 26, 27, 28, 29, 31,
    32, 34, 35, 38, 40, 42, 44, 47, 48, 49, 51, 52, 54, 56, 57, 60, 62, 63, 64, 67,
    68, 69, 71, 74, 76, 78, 80, 82, 84, 85, 86, 88, 90, 93, 94, 97, 98, 99, 100, 102,
    104, 106, 107,
]  # fmt: skip


def test_every_field_report_is_tested_or_explained() -> None:
    named = set()
    for path in [*TESTS.rglob("*.py"), TESTS / "FIELD_REPORTS.md"]:
        # `FR-10, 12, 15` names three.
        for numbers in re.findall(r"FR-(\d+(?:, (?:FR-)?\d+)*)", path.read_text(encoding="utf-8")):
            named.update(int(number) for number in re.findall(r"\d+", numbers))
    assert [number for number in REPORTS if number not in named] == []
