"""From a request, the config file and the environment to one valid JobSpec, with the source of every setting.

Precedence: command line, job table, environment, `[defaults]`, built-in. All problems are found before any is
reported. Settings that exclude each other (`cron`, `calendar`, `every`; `key`, `run_key`) are one setting with several
spellings: the most specific source that uses any of them decides. Pure: nothing is read here.
"""

from __future__ import annotations

from typing import Any, Dict, List, Mapping, NamedTuple, Optional, Tuple

from cronguard.core import names
from cronguard.core.document import Table, check_document, reason_against_text, table_of, text_of
from cronguard.core.masking import mask_endpoint, mask_url
from cronguard.core.model import Alerts, JobSpec, RunRequest, ScheduleText
from cronguard.core.settings import ALERTS, BY_NAME, EFFECTS, RIVALS, SETTINGS, Setting, rivals_of
from cronguard.errors import ConfigError, ScheduleError

STORE_VARIABLE = "CRONGUARD_STORE"


class Effective(NamedTuple):
    """One setting as it stands: its text, secrets masked, and where it came from."""

    name: str
    value_text: str
    source: str


class Resolved(NamedTuple):
    """`warnings`: settings that are allowed but probably not meant."""

    spec: JobSpec
    settings: Tuple[Effective, ...]
    warnings: Tuple[str, ...] = ()


class _Source(NamedTuple):
    """`place` is named in listings and, with the setting's own name behind it, in messages."""

    kind: str  # options table environment
    place: str
    given: Mapping[str, object]

    def label(self, setting: Setting) -> str:
        """For `cronguard config`."""
        return self.place if self.kind == "table" else f"{self.place} {self.name_of(setting)}"

    def text(self, setting: Setting) -> str:
        """The value as typed; only a file has types."""
        raw = self.given[setting.name]
        return text_of(setting, raw) if self.kind == "table" else str(raw)

    def name_of(self, setting: Setting) -> str:
        return setting.option if self.kind == "options" else str(setting.environment)

    def blame(self, setting: Setting) -> str:
        """For a message: what the user has to change."""
        return f"{self.place} {setting.name}" if self.kind == "table" else self.name_of(setting)


class _Choice(NamedTuple):
    """What was chosen for one setting; `source` None: the built-in default, `text` None: not even that."""

    setting: Setting
    text: Optional[str]
    source: Optional[_Source]

    @property
    def value(self) -> Any:
        return None if self.text is None else self.setting.parse(self.text)

    @property
    def blame(self) -> str:
        return self.source.blame(self.setting) if self.source else f"{self.setting.option} (default)"


Choices = Dict[str, _Choice]


def resolve_job(request: RunRequest, document: Table, file_name: str, environ: Mapping[str, str]) -> Resolved:
    """As `resolve_settings`, and there must be a command."""
    resolved = resolve_settings(request, document, file_name, environ)
    if not resolved.spec.command:
        known = table_of(document, "jobs")
        hint = "" if request.job in known else names.did_you_mean(request.job, known)
        where = f"none after -- and no `command` in [jobs.{request.job}] of the config file{hint}"
        raise ConfigError([f"no command: {request.job}: {where}"], "write cronguard run JOB -- CMD")
    return resolved


def resolve_settings(request: RunRequest, document: Table, file_name: str, environ: Mapping[str, str]) -> Resolved:
    """Everything that decides how the job runs. ConfigError with every problem of file, environment and request."""
    sources = _sources(request, document, file_name, environ)
    problems = list(check_document(document, file_name))
    problems += [problem for source in sources if source.kind != "table" for problem in _value_problems(source)]
    name_problem = names.check_job_name(request.job)
    if name_problem is not None:
        problems.insert(0, f"JOB: {name_problem}")
    if problems:
        raise ConfigError(problems)
    choices = {setting.name: _choose(setting, sources) for setting in (*SETTINGS, *ALERTS, *EFFECTS)}
    spec = _spec(request, document, choices)
    table = table_of(document, "jobs", request.job)
    problems = [
        *_contradictions(spec, choices),
        *_command_problems(spec, table, request, file_name),
        *_time_problems(choices),
    ]
    if problems:
        raise ConfigError(problems)
    return Resolved(spec, tuple(_effective(choice, spec) for choice in choices.values()), _warnings(choices))


def resolve_store(
    given: Optional[str], job: Optional[str], document: Table, file_name: str, environ: Mapping[str, str]
) -> Optional[Effective]:
    """The store as somebody wrote it (not masked), with its source; None: nobody did, the default applies."""
    found = (
        (given, "command line --store"),
        (table_of(document, "jobs", job or "").get("store"), f"{file_name} [jobs.{job}]"),
        (environ.get(STORE_VARIABLE) or None, f"environment {STORE_VARIABLE}"),
        (table_of(document, "defaults").get("store"), f"{file_name} [defaults]"),
    )
    return next((Effective("store", str(text), source) for text, source in found if text is not None), None)


def environment_of(job: str, document: Table) -> Dict[str, str]:
    """What the file adds to the environment of the job's commands."""
    return {
        **_strings(table_of(document, "defaults").get("env")),
        **_strings(table_of(document, "jobs", job).get("env")),
    }


def text_as_given(name: str, request: RunRequest, document: Table, environ: Mapping[str, str]) -> Optional[str]:
    """One setting as somebody wrote it, by the usual precedence, unjudged: for when the others cannot be resolved."""
    for source in _sources(request, document, "", environ):
        if name in source.given:
            raw = source.given[name]
            return raw if isinstance(raw, str) else None
    return None


def _sources(
    request: RunRequest, document: Table, file_name: str, environ: Mapping[str, str]
) -> Tuple[_Source, _Source, _Source, _Source]:
    variables = {
        setting.name: environ[setting.environment]
        for setting in SETTINGS
        if setting.environment and environ.get(setting.environment)
    }
    return (
        _Source("options", "command line", request.options),
        _Source("table", f"{file_name} [jobs.{request.job}]", table_of(document, "jobs", request.job)),
        _Source("environment", "environment", variables),
        _Source("table", f"{file_name} [defaults]", table_of(document, "defaults")),
    )


def _value_problems(source: _Source) -> List[str]:
    problems = []
    for name in source.given:
        setting = BY_NAME[name]
        reason = reason_against_text(setting, source.text(setting))
        if reason is not None:
            problems.append(f"{source.blame(setting)}: {reason}")
    for group in RIVALS:
        given = [source.name_of(BY_NAME[name]) for name in group if name in source.given]
        if len(given) > 1:
            problems.append(f"{' and '.join(given)}: only one of them can be meant")
    return problems


def _choose(setting: Setting, sources: Tuple[_Source, ...]) -> _Choice:
    rivals = rivals_of(setting.name)
    for source in sources:
        if setting.name in source.given:
            return _Choice(setting, source.text(setting), source)
        if any(rival in source.given for rival in rivals):
            break
    return _Choice(setting, setting.default, None)


def _spec(request: RunRequest, document: Table, choices: Choices) -> JobSpec:
    found: Dict[str, Any] = {name: choice.value for name, choice in choices.items()}
    table = table_of(document, "jobs", request.job)
    schedule = _schedule(choices)
    return JobSpec(
        job=request.job,
        command=request.command or _command_of(table),
        shell=found["shell"],
        schedule=schedule,
        timezone=found["timezone"],
        key=found["key"] or ("slot" if schedule else "none"),
        run_key=found["run_key"],
        timeout_s=found["timeout"],
        timeout_given=choices["timeout"].source is not None,
        grace_s=found["grace"],
        on_conflict=found["on_conflict"],
        wait_s=found["wait"],
        lock=found["lock"] or request.job,
        lease_s=found["lease"],
        redo=found["redo"],
        catch_up=found["catch_up"],
        look_back_s=found["look_back"],
        max_late_s=found["max_late"],
        jitter_s=found["jitter"],
        retries=found["retries"],
        retry_delay_s=found["retry_delay"],
        ping=found["ping"],
        ping_style=found["ping_style"],
        quiet=found["quiet"],
        no_capture=found["no_capture"],
        tail_bytes=found["tail"],
        chdir=found["chdir"],
        stdin=found["stdin"],
        leftovers=found["leftovers"],
        release=found["release"],
        on_store_error=found["on_store_error"],
        skip_exit_code=found["skip_exit_code"],
        env=environment_of(request.job, document),
        alerts=_alerts(found),
    )


def _alerts(found: Mapping[str, Any]) -> Alerts:
    """Where keys are somebody's text, nobody can say which of them are missing: no slot is asked for by its own."""
    alerts = overruled(Alerts(), found)
    return alerts if found["run_key"] is None else alerts._replace(slots="latest")


def overruled(alerts: Alerts, values: Mapping[str, Any]) -> Alerts:
    """Alert settings with some of them, by name and parsed, put in their place."""
    fields = {"allow_late": "late_s", "allow_long": "long_s", "max_age": "max_age_s"}
    names_ = [setting.name for setting in ALERTS if setting.name in values]
    return alerts._replace(**{fields.get(name, name): values[name] for name in names_})


def _strings(table: object) -> Dict[str, str]:
    return {str(name): str(value) for name, value in table.items()} if isinstance(table, Mapping) else {}


def _command_of(table: Table) -> Tuple[str, ...]:
    command = table.get("command")
    if isinstance(command, str):
        return (command,)
    return tuple(str(word) for word in command) if isinstance(command, list) else ()


def _contradictions(spec: JobSpec, choices: Choices) -> List[str]:
    """Settings that are right alone and wrong together."""
    problems = []
    if spec.key == "slot" and spec.schedule is None:
        problems.append(f"{choices['key'].blame}: slot: there is no schedule; add --cron, --calendar or --every")
    if spec.catch_up == "oldest" and spec.schedule is None:
        problems.append(f"{choices['catch_up'].blame}: oldest: there is no schedule; add --cron, --calendar or --every")
    elif spec.catch_up == "oldest" and (spec.key == "none" or spec.run_key is not None):
        other = "run_key" if spec.run_key is not None else "key"
        problems.append(f"{choices['catch_up'].blame}: oldest: with {choices[other].blame} no slot is ever missing")
    if spec.redo == "never":
        for name, clash in (("retries", spec.retries > 0), ("on_store_error", spec.on_store_error == "run")):
            if clash:
                problems.append(
                    f"{choices[name].blame}: {choices[name].text}: does not go with {choices['redo'].blame}: never"
                )
    return problems


def _command_problems(spec: JobSpec, table: Table, request: RunRequest, file_name: str) -> List[str]:
    where = "CMD" if request.command else f"{file_name} [jobs.{spec.job}] command"
    if spec.shell and len(spec.command) > 1:
        return [f"{where}: {len(spec.command)} words: with --shell it is one string; quote it as a whole"]
    if not spec.shell and not request.command and isinstance(table.get("command"), str):
        return [f"{where}: one string: needs shell = true; or write a list of strings"]
    return []


def _schedule(choices: Choices) -> Optional[ScheduleText]:
    given = [choices[kind] for kind in RIVALS[0] if choices[kind].text is not None]
    return ScheduleText(given[0].setting.name, str(given[0].text)) if given else None


def _time_problems(choices: Choices) -> List[str]:
    """Whether zone and schedule exist is for the modules that know time; loaded only when there is one to judge."""
    zone_choice, schedule = choices["timezone"], _schedule(choices)
    if zone_choice.source is None and schedule is None:
        return []
    from cronguard.core.schedule import parse_schedule
    from cronguard.core.zones import load_zone

    problems: List[str] = []
    zone = "UTC"  # whether a schedule can be understood does not depend on the zone
    if zone_choice.text is not None:
        try:
            load_zone(zone_choice.text)
            zone = zone_choice.text
        except ScheduleError as error:
            problems.append(_blamed(zone_choice, error))
    if schedule is not None:
        try:
            parse_schedule(schedule, zone)
        except ScheduleError as error:
            problems.append(_blamed(choices[schedule.kind], error))
    return problems


def _blamed(choice: _Choice, error: ScheduleError) -> str:
    """The modules that know time name the option; the value may have come from elsewhere."""
    text, option = str(error), f"{choice.setting.option}: "
    return f"{choice.blame}: {text[len(option) :] if text.startswith(option) else text}"


def _warnings(choices: Choices) -> Tuple[str, ...]:
    code = choices["skip_exit_code"]
    if code.source is not None and code.value > 123:
        return (f"{code.blame}: {code.text}: 124 and above look like a timeout, a failed start or a signal",)
    return ()


def _effective(choice: _Choice, spec: JobSpec) -> Effective:
    setting = choice.setting
    if choice.source is None or choice.text is None:
        worked_out = {"key": spec.key if spec.run_key is None else "none", "lock": spec.lock}
        return Effective(setting.name, worked_out.get(setting.name, setting.shown_default), "default")
    text = mask_endpoint(choice.text) if setting.secret else mask_url(choice.text)
    return Effective(setting.name, text, choice.source.label(setting))
