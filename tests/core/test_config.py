"""Settings from all sources: precedence, and every mistake at once with its name and place."""

from __future__ import annotations

from typing import Any, Dict, Mapping, Optional, Tuple

import pytest

from cronguard.core.config import Resolved, resolve_job, resolve_settings, resolve_store
from cronguard.core.model import Alerts, RunRequest
from cronguard.core.settings import SETTINGS
from cronguard.errors import ConfigError
from cronguard.pipeline.placing import facts_of

FILE = "/etc/cronguard/config.toml"


def resolved(
    options: Optional[Mapping[str, str]] = None,
    document: Optional[Mapping[str, object]] = None,
    environ: Optional[Mapping[str, str]] = None,
    command: Tuple[str, ...] = ("true",),
) -> Resolved:
    return resolve_job(RunRequest("nightly", command, options or {}), document or {}, FILE, environ or {})


def problems(*args: Any, **kwargs: Any) -> Tuple[str, ...]:
    with pytest.raises(ConfigError) as caught:
        resolved(*args, **kwargs)
    return caught.value.problems


def source_of(found: Resolved, name: str) -> str:
    return next(each.source for each in found.settings if each.name == name)


# --- precedence ---

LAYERS: Tuple[Tuple[str, str], ...] = (
    ("command line --timeout", "1m"),
    (f"{FILE} [jobs.nightly]", "2m"),
    ("environment CRONGUARD_TIMEOUT", "3m"),
    (f"{FILE} [defaults]", "4m"),
    ("default", "24h"),
)


@pytest.mark.parametrize("first", range(len(LAYERS)))
def test_most_specific_source_wins_and_is_named(first: int) -> None:
    present = [text for _, text in LAYERS[first:]]
    absent = [None] * first
    options, table, environ, defaults, _ = absent + present
    document: Dict[str, Dict[str, object]] = {"jobs": {}, "defaults": {}}
    if table:
        document["jobs"]["nightly"] = {"timeout": table}
    if defaults:
        document["defaults"]["timeout"] = defaults
    found = resolved({"timeout": options} if options else {}, document, {"CRONGUARD_TIMEOUT": environ or ""})
    source, text = LAYERS[first]
    assert source_of(found, "timeout") == source
    assert next(each.value_text for each in found.settings if each.name == "timeout") == text
    assert found.spec.timeout_given == (source != "default")


def test_built_in_defaults_are_those_of_the_documentation() -> None:
    spec = resolved().spec
    assert (spec.timeout_s, spec.grace_s, spec.wait_s, spec.lease_s) == (86400, 10, 600, 120)
    assert (spec.key, spec.lock, spec.redo, spec.on_conflict) == ("none", "nightly", "failed", "skip")
    assert (spec.look_back_s, spec.max_late_s, spec.jitter_s, spec.retries) == (7 * 86400, None, 0, 0)
    assert (spec.tail_bytes, spec.skip_exit_code, spec.chdir, spec.timezone) == (65536, 75, None, None)


def test_only_the_documented_variables_are_read() -> None:
    """A nested run must not inherit key, force, redo or conflict policy from the outer one (cli.md)."""
    environ = {f"CRONGUARD_{setting.name.upper()}": "nonsense" for setting in SETTINGS}
    read = {"TIMEZONE", "PING", "PING_STYLE", "TIMEOUT", "GRACE", "ON_STORE_ERROR", "RELEASE"}
    assert {setting.environment for setting in SETTINGS if setting.environment} == {f"CRONGUARD_{x}" for x in read}
    for name in read:
        del environ[f"CRONGUARD_{name}"]
    assert resolved(environ=environ).spec == resolved().spec


def test_empty_variable_counts_as_not_set() -> None:
    assert resolved(environ={"CRONGUARD_TIMEOUT": "", "CRONGUARD_PING": ""}).spec == resolved().spec


def test_schedule_of_the_command_line_overrules_another_kind_in_the_file() -> None:
    found = resolved({"every": "5m"}, {"jobs": {"nightly": {"cron": "0 2 * * *"}}})
    assert found.spec.schedule == ("every", "5m")
    assert found.spec.key == "slot"


def test_key_of_the_command_line_overrules_a_run_key_in_the_file() -> None:
    found = resolved({"key": "day"}, {"jobs": {"nightly": {"run_key": "x"}}})
    assert (found.spec.key, found.spec.run_key) == ("day", None)


def test_zero_timeout_means_none() -> None:
    spec = resolved({"timeout": "0"}).spec
    assert spec.timeout_s is None
    assert spec.timeout_given


def test_none_switches_a_ping_off_that_the_file_has_set() -> None:
    document = {"defaults": {"ping": "https://hc-ping.com/x", "max_late": "1h"}}
    spec = resolved({"ping": "none", "max_late": "none"}, document).spec
    assert (spec.ping, spec.max_late_s) == (None, None)


def test_durations_in_toml_may_be_whole_seconds() -> None:
    document = {"jobs": {"nightly": {"timeout": 90, "tail": 1000, "retries": 2, "quiet": True, "skip_exit_code": 0}}}
    spec = resolved(document=document).spec
    assert (spec.timeout_s, spec.tail_bytes, spec.retries, spec.quiet, spec.skip_exit_code) == (90, 1000, 2, True, 0)


def test_environment_tables_are_merged_and_the_jobs_counts() -> None:
    document = {"defaults": {"env": {"A": "1", "B": "1"}}, "jobs": {"nightly": {"env": {"B": "2"}}}}
    assert resolved(document=document).spec.env == {"A": "1", "B": "2"}


# --- mistakes ---


def test_all_mistakes_of_file_environment_and_command_line_are_reported_at_once() -> None:
    document = {
        "defualts": {},
        "defaults": {"timout": "5m"},
        "jobs": {"nightly": {"grace": -1}, "other": {"on_conflict": "wiat"}},
    }
    found = problems({"lease": "10s"}, document, {"CRONGUARD_TIMEOUT": "soon"})
    assert len(found) == 6
    assert f"{FILE}: defualts: unknown table; did you mean defaults?" in found
    assert f"{FILE}: [defaults] timout: unknown setting; did you mean timeout?" in found
    assert any(each.startswith(f"{FILE}: [jobs.nightly] grace: '-1': ") for each in found)
    assert any(each.startswith(f"{FILE}: [jobs.other] on_conflict: 'wiat': ") and "wait?" in each for each in found)
    assert "--lease: '10s': too short; at least 15s" in found
    assert any(each.startswith("CRONGUARD_TIMEOUT: 'soon': ") for each in found)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("timeout", "-1"), ("timeout", ""), ("grace", "inf"), ("lease", "14s"), ("lease", "2d"), ("every", "0"),
        ("every", "13h"), ("look_back", "0"), ("retries", "-1"), ("retries", "1.5"), ("retries", "٣"), ("tail", "1G"),
        ("skip_exit_code", "600"), ("skip_exit_code", "-1"), ("skip_exit_code", "256"), ("skip_exit_code", "abc"),
        ("skip_exit_code", ""), ("key", "year"), ("run_key", ""), ("run_key", "x" * 201), ("run_key", "a\nb"),
        ("lock", "a b"), ("lock", ""), ("on_conflict", "Skip"), ("redo", "always"), ("catch_up", ""), ("stdin", "tty"),
        ("leftovers", ""), ("on_store_error", "ignore"), ("ping", "hc-ping.com/x"), ("ping", "ftp://x"),
        ("ping", "file:"), ("ping", "https://"), ("ping", "https://x:99999/"), ("ping", "https://a b/"), ("ping", ""),
        ("ping", "https://\udcff/"), ("ping", "https://é/"),
        ("ping_style", "slack"), ("chdir", ""), ("release", ""), ("timezone", ""), ("timezone", "Europe/Rme"),
        ("timezone", '"Europe/Rome"'), ("timezone", "../../etc/passwd"), ("cron", "61 * * * *"), ("cron", ""),
        ("cron", "0 0 30 2 *"), ("calendar", "nonsense"),
    ],
)  # fmt: skip
def test_bad_value_is_one_problem_that_names_the_option(name: str, text: str) -> None:
    """FR-09, FR-94, FR-98: every bad setting is found before the command starts."""
    found = problems({name: text})
    assert len(found) == 1
    assert found[0].startswith("--" + name.replace("_", "-") + ": ")
    assert found[0].isprintable()


@pytest.mark.parametrize(
    ("name", "raw"),
    [
        ("timeout", 1.5), ("timeout", True), ("timeout", ["5m"]), ("quiet", "true"), ("quiet", 1), ("retries", "3"),
        ("cron", 5), ("env", "A=1"), ("env", {"A": 1}), ("env", {"": "x"}), ("command", 5), ("command", []),
        ("command", ["a", 1]), ("command", [""]), ("command", ["a\0"]), ("store", 1), ("store", ""), ("force", True),
        ("dry_run", True), ("zzz", 1),
    ],
)  # fmt: skip
def test_wrong_type_or_key_in_a_table_is_one_problem_that_names_it(name: str, raw: object) -> None:
    found = problems(document={"jobs": {"nightly": {name: raw}}})
    assert len(found) == 1
    assert found[0].startswith(f"{FILE}: [jobs.nightly] {name}: ")


@pytest.mark.parametrize(
    "document",
    [{"jobs": []}, {"jobs": {"a b": {}}}, {"jobs": {"a": 1}}, {"defaults": 1}, {"notify": {"url": []}}, {"x": {}},
     {"notify": {"urls": "x"}}, {"notify": {"remind": "soon"}}, {"jobs": {"a": {"b": {"cron": "x"}}}}],
)  # fmt: skip
def test_wrong_structure_is_one_problem_that_names_the_file(document: Dict[str, object]) -> None:
    found = problems(document=document)
    assert len(found) == 1
    assert found[0].startswith(f"{FILE}: ")


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"cron": "0 2 * * *", "every": "5m"}, ("--cron", "--every")),
        ({"key": "day", "run_key": "x"}, ("--key", "--run-key")),
        ({"key": "slot"}, ("--key", "no schedule")),
        ({"catch_up": "oldest"}, ("--catch-up", "no schedule")),
        ({"redo": "never", "retries": "1"}, ("--retries", "--redo")),
        ({"redo": "never", "on_store_error": "run"}, ("--on-store-error", "--redo")),
        ({"shell": "true"}, ("CMD", "--shell")),
    ],
)
def test_settings_that_do_not_go_together_are_refused(options: Dict[str, str], words: Tuple[str, ...]) -> None:
    found = problems(options, command=("echo", "a b"))
    assert len(found) == 1
    assert all(word in found[0] for word in words)


def test_period_of_a_day_is_refused_with_a_hint_to_cron() -> None:
    (problem,) = problems({"every": "1d"})
    assert "--cron" in problem


def test_secret_in_a_bad_ping_url_is_not_repeated() -> None:
    """Promise P9."""
    found = problems({"ping": "htp://me:hunter2@x/hunter2"})
    assert "hunter2" not in found[0]


def test_skip_exit_code_that_looks_like_something_else_is_warned_of() -> None:
    """FR-09: 0 to 255 is allowed, above 123 there is a warning."""
    assert resolved({"skip_exit_code": "123"}).warnings == ()
    assert "--skip-exit-code" in resolved({"skip_exit_code": "124"}).warnings[0]


# --- command ---


def test_command_comes_from_the_table_when_the_line_has_none() -> None:
    document = {"jobs": {"nightly": {"command": ["a", "b c"]}}}
    assert resolved(document=document, command=()).spec.command == ("a", "b c")
    assert resolved(document=document, command=("z",)).spec.command == ("z",)


def test_command_string_in_the_table_needs_shell() -> None:
    document = {"jobs": {"nightly": {"command": "a | b", "shell": True}}}
    assert resolved(document=document, command=()).spec.command == ("a | b",)
    found = problems(document={"jobs": {"nightly": {"command": "backup"}}}, command=())
    assert "shell = true" in found[0]


def test_missing_command_is_an_error_with_the_nearest_job() -> None:
    found = problems(document={"jobs": {"nightly2": {"command": ["a"]}}}, command=())
    assert "nightly2" in found[0]
    resolve_settings(RunRequest("nightly", (), {}), {}, "", {})  # looking at settings needs none


# --- store ---


def test_store_is_taken_from_the_most_specific_source() -> None:
    document = {"jobs": {"a": {"store": "2"}}, "defaults": {"store": "4"}}
    environ = {"CRONGUARD_STORE": "3"}
    asked = (("1", "a", environ), (None, "a", environ), (None, "b", environ), (None, "b", {}))
    found = [resolve_store(given, job, document, FILE, variables) for given, job, variables in asked]
    assert [each.value_text for each in found if each] == ["1", "2", "3", "4"]
    assert resolve_store(None, None, {}, "", {}) is None


# --- alerts ---


def test_alert_settings_come_from_job_table_and_defaults() -> None:
    document = {
        "defaults": {"max_failures": 5, "allow_late": "1h", "slots": "each"},
        "jobs": {"nightly": {"allow_late": 300, "slow_factor": 2.5, "max_age": "2d", "allow_long": "3h"}},
    }
    wanted = Alerts("each", 300.0, 10800.0, 172800.0, 5, 5, 2.5)
    assert resolved(document=document).spec.alerts == wanted
    assert resolved().spec.alerts == Alerts()
    assert resolved({"run_key": "batch 7"}, document).spec.alerts == wanted._replace(slots="latest")


def test_wrong_alert_settings_are_told_with_their_place() -> None:
    wrong = {"slow_factor": 1, "max_failures": 0, "slots": "every", "allow_late": True, "max_skip": 3}
    found = problems(document={"defaults": wrong, "notify": {"ping": "x", "urls": [1], "reminds": "1h"}})
    assert len(found) == 8
    assert all(any(name in problem for problem in found) for name in (*wrong, "max_skips", "ping", "urls", "remind"))


@pytest.mark.parametrize(
    ("options", "limit_s"),
    [
        ({"timeout": "1h", "grace": "10s"}, 3610.0),
        ({"timeout": "1h", "grace": "10s", "retries": "2", "retry_delay": "30s"}, 3 * 3610.0 + 30 + 60),
        ({"timeout": "0"}, None),
    ],
)
def test_longest_run_has_all_attempts_and_pauses_in_it(options: Mapping[str, str], limit_s: Optional[float]) -> None:
    assert facts_of(resolved(options).spec, "UTC").limit_s == limit_s
