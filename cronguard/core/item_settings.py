"""From the command line and `[jobs.JOB.items]` to how a queue is worked through, with the source of every setting.

The command line wins over the table; no variable sets anything, or a nested pass would inherit the outer one's. All
problems are found before any is reported. Pure: nothing is read here.
"""

from __future__ import annotations

from datetime import datetime
from math import inf
from typing import Any, Dict, List, Mapping, NamedTuple, Optional, Tuple

from cronguard.core import names
from cronguard.core.config import Effective, environment_of
from cronguard.core.document import Table, check_document, reason_against_text, table_of, text_of
from cronguard.core.durations import format_duration
from cronguard.core.instants import parse_instant
from cronguard.core.settings import ITEMS, Setting
from cronguard.errors import ConfigError


class ItemsSpec(NamedTuple):
    """How the items of one job are worked through. `budget_s` None: no other limit than a surrounding run's."""

    job: str
    command: Tuple[str, ...]
    batch: int
    budget_s: Optional[float]
    reserve_s: float
    per_group: Optional[int]
    attempts: int
    parallel: int
    timeout_s: float
    grace_s: float
    backoff_s: float
    group_failures: int
    group: Optional[str]
    env: Mapping[str, str]

    @property
    def longest_s(self) -> float:
        """What one handler may take, stubborn ones included."""
        return self.timeout_s + self.grace_s


class ResolvedItems(NamedTuple):
    """`settings` are named as `cronguard config` shows them: `items.batch`."""

    spec: ItemsSpec
    settings: Tuple[Effective, ...]


class _Found(NamedTuple):
    """`place` None: the default."""

    setting: Setting
    text: Optional[str]
    place: Optional[str]
    blame: str


def resolve_items(
    job: str, command: Tuple[str, ...], options: Mapping[str, str], document: Table, file_name: str
) -> ResolvedItems:
    """Everything that decides how the pass goes; the command may be missing. ConfigError with every problem."""
    problems = list(check_document(document, file_name))
    name_problem = names.check_job_name(job)
    if name_problem is not None:
        problems.insert(0, f"JOB: {name_problem}")
    problems += _value_problems(options)
    if problems:
        raise ConfigError(problems)
    table = table_of(document, "jobs", job, "items")
    found = {setting.name: _find(setting, options, table, f"{file_name} [jobs.{job}.items]") for setting in ITEMS}
    spec = _spec(job, command, found, document)
    problems = _contradictions(spec, found)
    if problems:
        raise ConfigError(problems)
    return ResolvedItems(spec, tuple(_effective(each) for each in found.values()))


def pass_s(spec: ItemsSpec, environ: Mapping[str, str], now_utc: datetime) -> float:
    """How long a pass may take: its budget; else what a surrounding run has left; else infinitely long."""
    if spec.budget_s is not None:
        return spec.budget_s
    deadline = environ.get("CRONGUARD_DEADLINE")
    if not environ.get("CRONGUARD_RUN_ID") or not deadline:
        return inf
    return (parse_instant(deadline, "UTC", now_utc) - now_utc).total_seconds()


def command_problem(job: str) -> ConfigError:
    """The error for a pass without a command."""
    why = f"none after -- and no `command` in [jobs.{job}.items] of the config file"
    return ConfigError([f"no command: {job}: {why}"], "write cronguard items work JOB -- CMD {key}")


def _value_problems(options: Mapping[str, str]) -> List[str]:
    known = {setting.name: setting for setting in ITEMS}
    problems = []
    for name, text in options.items():
        reason = reason_against_text(known[name], text)
        if reason is not None:
            problems.append(f"{known[name].option}: {reason}")
    return problems


def _find(setting: Setting, options: Mapping[str, str], table: Table, place: str) -> _Found:
    if setting.name in options:
        return _Found(setting, options[setting.name], f"command line {setting.option}", setting.option)
    if setting.name in table:
        return _Found(setting, text_of(setting, table[setting.name]), place, f"{place} {setting.name}")
    return _Found(setting, setting.default, None, f"{setting.option} (default)")


def _spec(job: str, command: Tuple[str, ...], found: Mapping[str, _Found], document: Table) -> ItemsSpec:
    value: Dict[str, Any] = {
        name: None if each.text is None else each.setting.parse(each.text) for name, each in found.items()
    }
    own: Any = table_of(document, "jobs", job, "items").get("command", ())
    return ItemsSpec(
        job=job,
        command=command or tuple(own),
        batch=value["batch"],
        budget_s=value["budget"],
        reserve_s=value["reserve"],
        per_group=value["per_group"],
        attempts=value["attempts"],
        parallel=value["parallel"],
        timeout_s=value["timeout"],
        grace_s=value["grace"],
        backoff_s=value["backoff"],
        group_failures=value["group_failures"],
        group=value["group"],
        env=environment_of(job, document),
    )


def _contradictions(spec: ItemsSpec, found: Mapping[str, _Found]) -> List[str]:
    if spec.budget_s is None or spec.longest_s <= spec.budget_s:
        return []
    needed = f"{found['timeout'].blame} and {found['grace'].blame} make {format_duration(spec.longest_s)}"
    return [f"{found['budget'].blame}: {found['budget'].text}: nothing fits into it: {needed}"]


def _effective(each: _Found) -> Effective:
    text = each.setting.shown_default if each.text is None else each.text
    return Effective(f"items.{each.setting.name}", text, each.place or "default")
