"""`config`: what is in force for a job, and which source each setting came from. Secrets are masked.

Without a job: the file as a whole, every job's contradictions included, and for each job what differs from the
built-in defaults. The store is named, never opened.
"""

from __future__ import annotations

from typing import Dict, List, Mapping, NamedTuple, Optional, Tuple

from cronguard.core.config import Effective, resolve_settings, resolve_store
from cronguard.core.document import check_document, table_of
from cronguard.core.item_settings import resolve_items
from cronguard.core.masking import MASK, is_secret_name, mask_argv, mask_text, mask_url
from cronguard.core.model import Invocation, JobSpec, RunRequest
from cronguard.core.names import did_you_mean
from cronguard.errors import ConfigError
from cronguard.system import host
from cronguard.system.config_file import load_config


class JobSettings(NamedTuple):
    job: str
    settings: Tuple[Effective, ...]


class Settings(NamedTuple):
    """`file_name` is empty without a config file; `shared` are the settings that belong to no job. `doubt`: why the
    name may be a slip, empty if nothing speaks for it."""

    file_name: str
    shared: Tuple[Effective, ...]
    jobs: Tuple[JobSettings, ...]
    doubt: str = ""


def config(job: Optional[str], invocation: Invocation) -> Settings:
    """The settings of one job, or of all in the file. ConfigError with every mistake found."""
    document, file_name = load_config(invocation.config, invocation.environ)
    problems = check_document(document, file_name)
    if problems:
        raise ConfigError(problems)
    shared = (_store(job, invocation, document, file_name), *_surroundings(invocation))
    if job is not None:
        doubt = _doubt(job, table_of(document, "jobs"), file_name)
        return Settings(file_name, shared, (_settings_of(job, invocation, document, file_name),), doubt)
    return Settings(file_name, shared, _all_jobs(invocation, document, file_name))


def _doubt(job: str, tables: Mapping[str, object], file_name: str) -> str:
    """A job need not be in the file; one that is nearly there should probably be."""
    meant = did_you_mean(job, tables)
    return f"{job} has no table in {file_name}, only defaults apply{meant}" if job not in tables and meant else ""


def as_json(result: Settings) -> Dict[str, object]:
    """The JSON of `config`, version 1: keys are only ever added."""
    return {
        "version": 1,
        "file": result.file_name or None,
        "shared": _listed(result.shared),
        "jobs": [{"job": job.job, "settings": _listed(job.settings)} for job in result.jobs],
    }


def _listed(settings: Tuple[Effective, ...]) -> List[Dict[str, str]]:
    return [{"name": each.name, "value": each.value_text, "source": each.source} for each in settings]


def _all_jobs(invocation: Invocation, document: Mapping[str, object], file_name: str) -> Tuple[JobSettings, ...]:
    problems: List[str] = []
    found: List[JobSettings] = []
    for job in table_of(document, "jobs"):
        try:
            settings = _settings_of(job, invocation, document, file_name).settings
        except ConfigError as error:
            problems += [problem for problem in error.problems if problem not in problems]
        else:
            found.append(JobSettings(job, tuple(each for each in settings if each.source != "default")))
    if problems:
        raise ConfigError(problems)
    return tuple(found)


def _settings_of(job: str, invocation: Invocation, document: Mapping[str, object], file_name: str) -> JobSettings:
    resolved = resolve_settings(RunRequest(job, (), {}), document, file_name, invocation.environ)
    extras = _command_and_environment(resolved.spec, document, file_name)
    return JobSettings(job, resolved.settings + extras + _of_items(job, document, file_name))


def _of_items(job: str, document: Mapping[str, object], file_name: str) -> Tuple[Effective, ...]:
    """How `items work` goes about it, for a job whose table says anything about that."""
    if not table_of(document, "jobs", job, "items"):
        return ()
    resolved = resolve_items(job, (), {}, document, file_name)
    command = resolved.spec.command
    shown = (Effective("items.command", _quoted(command), f"{file_name} [jobs.{job}.items]"),) if command else ()
    return (*resolved.settings, *shown)


def _command_and_environment(
    spec: JobSpec, document: Mapping[str, object], file_name: str
) -> Tuple[Effective, ...]:
    found = []
    if spec.command:
        text = mask_argv(spec.command)[0] if spec.shell else _quoted(spec.command)
        found.append(Effective("command", text, f"{file_name} [jobs.{spec.job}]"))
    own = table_of(document, "jobs", spec.job, "env")
    for name, value in spec.env.items():
        source = f"{file_name} [{f'jobs.{spec.job}' if name in own else 'defaults'}.env]"
        found.append(Effective(f"env {name}", MASK if is_secret_name(name) else mask_text(value), source))
    return tuple(found)


def _quoted(command: Tuple[str, ...]) -> str:
    from shlex import quote

    return " ".join(quote(word) for word in mask_argv(command))


def _store(
    job: Optional[str], invocation: Invocation, document: Mapping[str, object], file_name: str
) -> Effective:
    found = resolve_store(invocation.store, job, document, file_name, invocation.environ)
    if found is None:
        return Effective("store", f"sqlite:{host.state_dir(invocation.environ)}/cronguard.db", "default")
    return found._replace(value_text=mask_url(found.value_text))


def _surroundings(invocation: Invocation) -> Tuple[Effective, ...]:
    by_variable = "CRONGUARD_STATE_DIR" if invocation.environ.get("CRONGUARD_STATE_DIR") else ""
    return (
        Effective(
            "state_dir",
            host.state_dir(invocation.environ),
            f"environment {by_variable}" if by_variable else "default",
        ),
        Effective("log_format", invocation.log_format or "text", _log_format_source(invocation)),
    )


def _log_format_source(invocation: Invocation) -> str:
    if invocation.log_format is None:
        return "default"
    variable = invocation.environ.get("CRONGUARD_LOG_FORMAT")
    return "environment CRONGUARD_LOG_FORMAT" if variable == invocation.log_format else "command line --log-format"
