"""Settings of `items work`, from the line and from the job's table."""

from __future__ import annotations

from typing import Any, Dict

import pytest

from cronguard.core.item_settings import resolve_items
from cronguard.errors import ConfigError


def resolve(table: Dict[str, Any], **options: str) -> Any:
    document = {"defaults": {"env": {"A": "1"}}, "jobs": {"mails": {"env": {"B": "2"}, "items": table}}}
    return resolve_items("mails", (), options, document, "c.toml")


def test_line_wins_over_the_table_and_the_table_over_the_defaults() -> None:
    table = {"batch": 20, "timeout": "10s", "budget": 50, "command": ["send", "{key}"]}
    resolved = resolve(table, batch="3", per_group="7")
    spec = resolved.spec
    assert (spec.batch, spec.timeout_s, spec.budget_s, spec.per_group, spec.attempts) == (3, 10, 50, 7, 5)
    assert (spec.command, spec.env) == (("send", "{key}"), {"A": "1", "B": "2"})
    sources = {each.name: each.source for each in resolved.settings}
    assert sources["items.batch"] == "command line --batch"
    assert sources["items.timeout"] == "c.toml [jobs.mails.items]"
    assert sources["items.reserve"] == "default"


@pytest.mark.parametrize(
    ("table", "options", "why"),
    [
        ({"timout": 3}, {}, "[jobs.mails.items] timout: unknown setting; did you mean timeout?"),
        ({"batch": 0}, {}, "[jobs.mails.items] batch: '0': not a whole number from 1 to 1000"),
        ({"reserve": "500ms"}, {}, "reserve: '500ms': too short; at least 1s"),
        ({"command": "send {key}"}, {}, "command: one string, not a list of strings"),
        ({}, {"parallel": "many"}, "--parallel: 'many'"),
        ({"budget": "20s"}, {}, "[jobs.mails.items] budget: 20s: nothing fits into it: --timeout (default) and"),
        ({}, {"budget": "2s", "timeout": "2s", "grace": "1s"}, "--budget: 2s: nothing fits into it"),
    ],
)
def test_what_is_wrong_is_refused_with_its_place(table: Dict[str, Any], options: Dict[str, str], why: str) -> None:
    with pytest.raises(ConfigError) as caught:
        resolve(table, **options)
    assert why in str(caught.value)


def test_items_must_be_a_table() -> None:
    with pytest.raises(ConfigError, match="a string, not a table"):
        resolve_items("mails", (), {}, {"jobs": {"mails": {"items": "x"}}}, "c.toml")
