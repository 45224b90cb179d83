"""The README says what the code does: options with form and default, commands, a valid config file."""

from __future__ import annotations

import re
import sys
from importlib import import_module
from pathlib import Path
from typing import Dict, Tuple

import pytest

from cronguard.cli.registry import COMMANDS
from cronguard.core.document import check_document
from cronguard.core.lint_model import RULES, SEVERITIES
from cronguard.core.settings import ITEMS, SETTINGS, Setting

README = (Path(__file__).parents[2] / "README.md").read_text(encoding="utf-8")
ROW = re.compile(r"^\| `--(?P<name>[a-z-]+) ?(?P<form>[^`]*)` \|\s*(?P<default>[^|]*?)\s*\|", re.MULTILINE)
BARE = str.maketrans("", "", "`\\")


def section(title: str) -> str:
    return README.split(f"\n## {title}\n")[1].split("\n## ")[0]


def rows() -> Dict[str, Tuple[str, str]]:
    """Option to form and default, as in the table of `run`."""
    escaped = section("Options of run").replace("\\|", "\0")
    return {
        row["name"]: (row["form"].replace("\0", "|"), row["default"].translate(BARE).strip())
        for row in ROW.finditer(escaped)
    }


@pytest.mark.parametrize("setting", SETTINGS, ids=lambda setting: setting.name)
def test_option_is_in_the_readme_with_form_and_default(setting: Setting) -> None:
    form, default = rows()[setting.name.replace("_", "-")]
    assert form == setting.metavar
    assert {"off": "false", "": "none"}.get(default, default) == setting.shown_default


def test_readme_has_no_option_that_does_not_exist() -> None:
    known = {setting.name.replace("_", "-") for setting in SETTINGS} | {"force", "dry-run"}
    assert set(rows()) == known


@pytest.mark.parametrize("setting", ITEMS, ids=lambda setting: setting.name)
def test_option_of_items_work_is_in_the_readme_with_its_default(setting: Setting) -> None:
    cells = [line.split("|") for line in section("A queue: items").splitlines() if line.startswith("| `--")]
    shown = {
        option: default
        for _, options, defaults, *_ in cells
        for option, default in zip(options.translate(BARE).split(", "), defaults.translate(BARE).split(", "))
    }
    default = {name.strip(): text.strip() for name, text in shown.items()}[f"{setting.option} {setting.metavar}"]
    assert setting.default in (default, None)


@pytest.mark.parametrize("command", sorted(COMMANDS))
def test_command_is_in_the_readme(command: str) -> None:
    assert re.search(rf"(`|^|cronguard ){command}\b", README, re.MULTILINE)


def test_config_file_of_the_readme_is_valid() -> None:
    toml = import_module("tomllib" if sys.version_info >= (3, 11) else "tomli")
    examples = re.findall(r"```toml\n(.*?)```", README, re.DOTALL)
    assert examples
    for example in examples:
        assert check_document(toml.loads(example), "README.md") == ()


def test_rules_of_lint_are_in_the_readme_by_severity() -> None:
    rows_by_severity = dict(re.findall(r"^\| (error|warning|info): [^|]*\| ([^|]*) \|$", README, re.MULTILINE))
    for severity, cell in rows_by_severity.items():
        assert set(re.findall(r"`([a-z-]+)`", cell)) == {rule for rule, of in RULES.items() if of == severity}
    assert set(rows_by_severity) == set(SEVERITIES)
