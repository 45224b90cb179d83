"""The command line: what becomes a RunRequest, and what is refused, with which code and line."""

from __future__ import annotations

import inspect
import subprocess
from pathlib import Path
from typing import Any, List, Optional, Tuple

import pytest

from cronguard.cli import parameters, registry
from cronguard.cli.main import execute
from cronguard.core.model import RunRequest
from cronguard.core.settings import SETTINGS
from tests.support.cronguard import command as cronguard_command
from tests.support.cronguard import cronguard, environment


@pytest.fixture
def requests(monkeypatch: pytest.MonkeyPatch) -> List[RunRequest]:
    """What the front end hands down; nothing is run."""
    seen: List[RunRequest] = []

    def note(request: RunRequest, _invocation: Any, _say: Any) -> Any:
        from cronguard.commands.run import RunResult

        seen.append(request)
        return RunResult(0)

    monkeypatch.setattr("cronguard.commands.run.run", note)
    return seen


def test_every_setting_is_an_option_and_reaches_the_request_as_typed(requests: List[RunRequest]) -> None:
    texts = {s.name: "true" if s.kind == "flag" else f"text of {s.name}" for s in SETTINGS}
    words = [word for s in SETTINGS for word in ((s.option,) if s.kind == "flag" else (s.option, texts[s.name]))]
    assert execute(["run", "nightly", *words, "--force", "--dry-run", "--", "cmd", "--timeout", "x", "--", "-v"]) == 0
    (request,) = requests
    assert request.options == texts
    assert request.command == ("cmd", "--timeout", "x", "--", "-v")
    assert (request.job, request.force, request.dry_run) == ("nightly", True, True)


def test_only_what_was_given_is_in_the_request(requests: List[RunRequest]) -> None:
    assert execute(["run", "nightly", "--", "true"]) == 0
    assert requests[0].options == {}
    assert not requests[0].force


def test_options_may_stand_before_the_job_and_values_may_begin_with_a_dash(requests: List[RunRequest]) -> None:
    assert execute(["run", "--skip-exit-code", "-1", "--timeout=5m", "nightly", "--", "true"]) == 0
    assert requests[0].options == {"skip_exit_code": "-1", "timeout": "5m"}


def test_command_may_be_left_to_the_config_file(requests: List[RunRequest]) -> None:
    assert execute(["run", "nightly"]) == 0
    assert requests[0].command == ()


@pytest.mark.parametrize(
    "words",
    [
        ("--store", "sqlite:/x", "-v", "--log-format", "json", "--config", "/c", "run", "j", "--", "true"),
        ("run", "--store", "sqlite:/x", "-v", "--log-format", "json", "--config", "/c", "j", "--", "true"),
        ("run", "j", "--store=sqlite:/x", "--verbose", "--log-format=json", "--config=/c", "--", "true"),
        ("--store", "no", "-v", "--config", "no", "--log-format", "text", "run", "j", "--store", "sqlite:/x",
         "--log-format", "json", "--config", "/c", "--", "true"),
    ],
)  # fmt: skip
def test_shared_options_stand_before_or_after_the_command_and_the_later_counts(
    words: Tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    from cronguard.commands.run import RunResult

    seen: List[Any] = []
    monkeypatch.setattr("cronguard.commands.run.run", lambda _, seen_of, __: seen.append(seen_of) or RunResult(0))
    assert execute(list(words)) == 0
    assert seen[0][:4] == ("sqlite:/x", "/c", "json", True)


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("run",), "JOB"),
        (("run", "a b", "--", "true"), "JOB: 'a b'"),
        (("run", "a\n", "--", "true"), "JOB"),
        (("run", "j", "true"), "behind --"),
        (("run", "j", "ls", "-l"), "behind --"),
        (("run", "j", "--"), "CMD"),
        (("run", "j", "--timout", "5", "--", "true"), "--timout; did you mean --timeout"),
        (("run", "j", "--timeout"), "--timeout"),
        (("run", "j", "--quiet=maybe", "--", "true"), "--quiet"),
        (("run", "j", "--log-format", "xml", "--", "true"), "--log-format: 'xml'"),
        (("--strore", "x", "run", "j", "--", "true"), "no such option: --strore"),
        (("--log-format", "run", "run", "j", "--", "true"), "--log-format: 'run'"),
    ],
)
def test_usage_error_of_run_is_125_and_one_line_that_names_the_option(
    words: Tuple[str, ...], told: str, requests: List[RunRequest], capfd: pytest.CaptureFixture[str]
) -> None:
    assert execute(list(words)) == 125
    assert_one_line(capfd, told)
    assert requests == []


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("stats",), "no such command: stats; did you mean status"),
        (("xyzzy",), "--help"),
        (("-v",), "no command given"),
        (("history",), "JOB"),
        (("history", "j", "--limit", "0"), "--limit: '0'"),
        (("history", "j", "--status", "sucess"), "did you mean success"),
        (("history", "j", "--since", "-5m"), "--since: '-5m'"),
        (("next", "--cron", "x"), "--cron"),
        (("next", "--cron", "0 0 * * *", "--every", "5m"), "--every"),
        (("next", "--every", "5m", "--from", "soon"), "soon"),
        (("next", "--every", "5m", "--count", "x"), "--count: 'x'"),
        (("next", "--every", "5m", "job"), "--every"),
        (("next", "--every", "5m", "--timezone", "Mars/Base"), "--timezone"),
        (("status", "--store", "mysql://x"), "mysql"),
        (("status", "--store", "env:NOPE"), "NOPE"),
        (("status", "--config", "/no/such/file"), "/no/such/file"),
        (("config", "a b"), "'a b'"),
        (("history", "\udcff"), "JOB: "),
        (("status", "--store", "sqlite:/tmp/\udcff"), "not UTF-8"),
    ],
)
def test_usage_error_elsewhere_is_2_and_one_line(
    words: Tuple[str, ...], told: str, capfd: pytest.CaptureFixture[str]
) -> None:
    assert execute(list(words)) == 2
    assert_one_line(capfd, told)


def assert_one_line(capfd: pytest.CaptureFixture[str], told: str) -> None:
    out, err = capfd.readouterr()
    assert out == ""
    assert err.startswith("cronguard: ")
    assert err.count("\n") == 1
    assert told in err


@pytest.mark.parametrize("command", [[], ["run"], ["next"], ["status"], ["history"], ["show"], ["config"]])
def test_help_is_plain_text_on_stdout(command: List[str], capfd: pytest.CaptureFixture[str]) -> None:
    assert execute([*command, "--help"]) == 0
    out, err = capfd.readouterr()
    assert out.startswith("Usage: cronguard")
    assert err == ""
    assert "╭" not in out


def test_help_of_run_explains_every_option(capfd: pytest.CaptureFixture[str]) -> None:
    execute(["run", "-h"])
    out = capfd.readouterr().out
    for setting in SETTINGS:
        assert f"  {setting.option}" in out
        assert setting.help


def test_version_is_printed(capfd: pytest.CaptureFixture[str]) -> None:
    assert execute(["--version"]) == 0
    assert capfd.readouterr().out.startswith("cronguard ")


def test_bug_is_one_line_that_says_where_and_125(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    def fail(*_: Any) -> Any:
        raise ZeroDivisionError("what\nnow")

    monkeypatch.setattr("cronguard.commands.run.run", fail)
    assert execute(["run", "nightly", "--", "true"]) == 125
    err = capfd.readouterr().err
    assert err.startswith("cronguard: nightly: internal error: ZeroDivisionError: what\\nnow in ")
    assert err.count("\n") == 1


@pytest.mark.parametrize(
    ("error", "code"), [(KeyboardInterrupt(), 130), (BrokenPipeError(), 125), (SystemExit(9), 9)]
)
def test_whatever_comes_up_has_a_code(error: BaseException, code: int, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: Any) -> Any:
        raise error

    monkeypatch.setattr("cronguard.commands.run.run", fail)
    assert execute(["run", "nightly", "--", "true"]) == code


@pytest.mark.parametrize(
    ("words", "command"),
    [
        (["run", "x"], "run"),
        (["--store", "run", "status"], "status"),
        (["--store=run", "-v", "show"], "show"),
        (["--config"], None),
        (["--strore", "x", "run"], "run"),
        (["--", "run"], None),
        ([], None),
    ],
)
def test_command_is_found_in_a_line_that_may_be_wrong(words: List[str], command: Optional[str]) -> None:
    assert registry.command_in(words) == command


def test_bad_option_starts_nothing_in_a_real_process(tmp_path: Path) -> None:
    """FR-09: a bad setting is found before the command starts."""
    mark = tmp_path / "started"
    for words in (["--skip-exit-code", "600"], ["--timeout", "abc"], ["--timezone", "Europe/Rme"], ["--every", "0"]):
        done = cronguard("run", "j", *words, "--", "touch", str(mark))
        assert done.returncode == 125
        assert done.stderr.count("\n") == 1
        assert words[0] in done.stderr
        assert "j: " in done.stderr
    assert not mark.exists()


def test_works_with_an_empty_environment(tmp_path: Path) -> None:
    """FR-29: no HOME, PATH, TERM; only the state directory, for this test's sake."""
    env = {"CRONGUARD_STATE_DIR": environment()["CRONGUARD_STATE_DIR"], "XDG_CONFIG_HOME": str(tmp_path)}
    for words in (["--version"], ["--help"], ["status"], ["next", "--every", "5m", "--timezone", "UTC"]):
        done = cronguard(*words, env=env)
        assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize("closed", ["<&-", ">&-", "2>&-", "<&- >&- 2>&-"])
def test_closed_standard_descriptors_do_no_harm(closed: str) -> None:
    line = " ".join(cronguard_command("run", "j", "--", "sh", "-c", "'echo out; echo err >&2; exit 7'"))
    done = subprocess.run(["/bin/sh", "-c", f"{line} {closed}"], env=environment(), capture_output=True, check=False)
    assert done.returncode == 7
    assert cronguard("history", "j").returncode == 0  # the database did not take the output


def test_signatures_hold_types_that_python_38_need_not_evaluate() -> None:
    for name, entry in registry.COMMANDS.items():
        module = __import__(f"cronguard.cli.{entry.module}", fromlist=["x"])
        found = getattr(module, entry.function)
        for function in found.verbs.values() if isinstance(found, parameters.Family) else [found]:
            for parameter in inspect.signature(parameters.for_typer(function)).parameters.values():
                assert not isinstance(parameter.annotation, str), name


def test_version_text_is_that_of_the_project() -> None:
    from cronguard import __version__

    project = (Path(__file__).parents[2] / "pyproject.toml").read_text()
    assert f'\nversion = "{__version__}"\n' in project
