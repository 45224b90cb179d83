"""From the command line and the config file to how one effect is treated that is to happen once.

The line wins over the job's table, that over `[defaults]`; no variable sets anything. All problems are found before any
is reported. Pure: nothing is read here.
"""

from __future__ import annotations

from typing import List, Mapping, NamedTuple, Optional

from cronguard.core.document import Table, check_document, reason_against_text, table_of, text_of
from cronguard.core.settings import EFFECTS, ONCE, Setting
from cronguard.errors import ConfigError


class EffectSpec(NamedTuple):
    """`effect` and `on_unknown` as in core.settings; `timeout_s` None: no limit."""

    effect: str
    on_unknown: str
    timeout_s: Optional[float]
    grace_s: float


def check_options(options: Mapping[str, str]) -> None:
    """ConfigError with every value of an option of `once` that is none."""
    problems: List[str] = []
    for setting in ONCE:
        reason = reason_against_text(setting, options[setting.name]) if setting.name in options else None
        if reason is not None:
            problems.append(f"{setting.option}: {reason}")
    if problems:
        raise ConfigError(problems)


def resolve_effect(job: str, options: Mapping[str, str], document: Table, file_name: str) -> EffectSpec:
    """Everything that decides how it goes, from options that are right. ConfigError with every mistake of the file."""
    problems = check_document(document, file_name)
    if problems:
        raise ConfigError(problems)
    tables = (table_of(document, "jobs", job), table_of(document, "defaults"))
    texts = {setting.name: _text(setting, options, *tables if setting in EFFECTS else ()) for setting in ONCE}
    found = {setting.name: setting.parse(texts[setting.name] or "") for setting in ONCE if texts[setting.name]}
    return EffectSpec(
        effect=str(found["effect"]),
        on_unknown=str(found["on_unknown"]),
        timeout_s=found["timeout"],  # type: ignore[arg-type]  # the table says which parser it has
        grace_s=found["grace"],  # type: ignore[arg-type]
    )


def _text(setting: Setting, options: Mapping[str, str], *tables: Table) -> Optional[str]:
    if setting.name in options:
        return options[setting.name]
    table = next((table for table in tables if setting.name in table), None)
    return setting.default if table is None else text_of(setting, table[setting.name])
