"""`lint`: what is wrong with crontabs, of this host or in files. Nothing is changed."""

from __future__ import annotations

from typing import Dict, Mapping, NamedTuple, Optional, Sequence, Tuple

from cronguard.core.config import resolve_settings
from cronguard.core.crons import CRONS, KINDS, Cron
from cronguard.core.crontab import flavour_of_path, parse_crontab
from cronguard.core.lint import lint as remarks_on
from cronguard.core.lint_model import ERROR, INFO, SEVERITIES, WARNING, Judge, Remark
from cronguard.core.model import Invocation, RunRequest
from cronguard.core.values import judged, one_of
from cronguard.core.zones import load_zone
from cronguard.errors import ScheduleError
from cronguard.system import clock, host
from cronguard.system.config_file import load_config
from cronguard.system.crontabs import Host, Source, cron_kind, host_sources, read_source

_NOBODY = "lint"  # the name under which a zone without a job is judged
_USUAL = "debian"  # what the schedules of cronguard itself go by


class LintRequest(NamedTuple):
    """`files`: none for those of the host. `timezone`: in which the crontabs' times are meant. `cron`: their reader."""

    files: Sequence[str]
    timezone: Optional[str]
    cron: Optional[str]


class LintedFile(NamedTuple):
    """`flavour`: with (`system`) or without (`user`) a user's name before the commands."""

    name: str
    flavour: str
    jobs: int
    remarks: Tuple[Remark, ...]

    def count(self, severity: str) -> int:
        return sum(remark.severity == severity for remark in self.remarks)


class LintResult(NamedTuple):
    """`why` that cron: `asked for`, `found here`, or `assumed` where none is to be seen."""

    files: Tuple[LintedFile, ...]
    cron: Cron
    why: str
    zone: str

    def count(self, severity: str) -> int:
        return sum(file.count(severity) for file in self.files)


def lint(request: LintRequest, invocation: Invocation) -> LintResult:
    """Judge files, or the host's crontabs. UsageError for what cannot be read or chosen."""
    asked = None if request.cron is None else judged("--cron", one_of(*KINDS), request.cron)
    here = cron_kind()
    cron = CRONS[asked or here or _USUAL]
    owner = host.user_name()
    judge = Judge(
        cron, _zone(request.timezone, invocation), _known_zone(host.host_zone()), clock.now_utc(invocation.environ),
        Host(), owner,
    )  # fmt: skip
    sources = [read_source(file) for file in request.files] if request.files else host_sources(owner)
    files = tuple(_linted(source, judge) for source in sources)
    why = "asked for" if asked else "found here" if here else "assumed"
    return LintResult(files, cron, why, judge.zone)


def _linted(source: Source, judge: Judge) -> LintedFile:
    flavour = "user" if source.owner is not None else flavour_of_path(source.path or "")
    crontab = parse_crontab(source.data, flavour, judge.cron.kind)
    jobs = sum(line.kind == "job" for line in crontab.lines)
    return LintedFile(source.name, crontab.flavour, jobs, remarks_on(crontab, judge, source.path))


def _zone(given: Optional[str], invocation: Invocation) -> str:
    """As a run would have it: the option, else the config file's, else the host's; UTC where none tells."""
    document, file_name = load_config(invocation.config, invocation.environ)
    options = {} if given is None else {"timezone": given}
    shared = {name: table for name, table in document.items() if name != "jobs"}
    spec = resolve_settings(RunRequest(_NOBODY, (), options), shared, file_name, invocation.environ).spec
    return spec.timezone or _known_zone(host.host_zone()) or "UTC"


def _known_zone(name: Optional[str]) -> Optional[str]:
    try:
        return None if name is None else name if load_zone(name) else None
    except ScheduleError:
        return None


def as_json(result: LintResult) -> Dict[str, object]:
    """The JSON of `lint`, version 1: keys are only ever added."""
    return {
        "version": 1,
        "cron": {"kind": result.cron.kind, "why": result.why},
        "zone": result.zone,
        "findings": [_as_json(file.name, remark) for file in result.files for remark in file.remarks],
        "files": [{"file": file.name, "flavour": file.flavour, **_counts(file)} for file in result.files],
    }


def _as_json(file: str, remark: Remark) -> Mapping[str, object]:
    return {
        "file": file,
        "line": remark.line,
        "column": remark.column,
        "rule": remark.rule,
        "severity": remark.severity,
        "message": remark.message,
        "fix": remark.fix,
        "dates": [{"local": local, "what": what} for local, what in remark.dates],
    }


def _counts(file: LintedFile) -> Mapping[str, int]:
    keys = {ERROR: "errors", WARNING: "warnings", INFO: "infos"}
    return {"jobs": file.jobs, **{keys[severity]: file.count(severity) for severity in SEVERITIES}}
