"""How a command ended is told exactly: codes, signals, and why it could not be started."""

from __future__ import annotations

import os
import resource
import signal
from pathlib import Path

import pytest

from tests.support.children import ORPHANS_ENDING
from tests.support.processes import run_driver, sh


def test_every_exit_code_is_told_as_it_is(tmp_path: Path) -> None:
    facts = run_driver(tmp_path, [], argvs=[sh(f"exit {code}") for code in range(256)])
    assert [each["exit_code"] for each in facts["attempts"]] == list(range(256))
    assert {each["signal"] for each in facts["attempts"]} == {None}


def test_death_by_signal_is_not_an_exit_code(tmp_path: Path) -> None:
    """FR-22."""
    numbers = [signal.SIGKILL, signal.SIGSEGV, signal.SIGTERM, signal.SIGHUP, signal.SIGPIPE, signal.SIGABRT]
    facts = run_driver(tmp_path, [], argvs=[sh(f"ulimit -c 0; kill -{int(number)} $$") for number in numbers])
    assert [each["signal"] for each in facts["attempts"]] == [int(number) for number in numbers]
    assert {each["exit_code"] for each in facts["attempts"]} == {None}
    assert {each["stopped_by"] for each in facts["attempts"]} == {None}


def test_ignored_sigchld_does_not_lose_the_status(tmp_path: Path) -> None:
    """FR-25: whoever starts us with SIGCHLD ignored must not turn a failure into a success."""
    facts = run_driver(tmp_path, ["false"], wrap=["bash", "-c", "trap '' CHLD; exec \"$@\"", "bash"])
    assert facts["exit_code"] == 1


def test_orphans_that_end_at_the_same_time_do_not_take_the_status(tmp_path: Path) -> None:
    """FR-25, FR-107."""
    facts = run_driver(tmp_path, sh(ORPHANS_ENDING), attempts=60)
    assert {each["exit_code"] for each in facts["attempts"]} == {3}


def test_command_that_does_not_exist_is_127_with_its_path(tmp_path: Path) -> None:
    """FR-27, FR-29."""
    facts = run_driver(tmp_path, [], argvs=[["/no/such"], ["no-such-program"], [""]])
    assert [each["start_code"] for each in facts["attempts"]] == [127, 127, 127]
    assert facts["attempts"][0]["start_error"] == "/no/such: no such file"
    assert f"not found in PATH={os.environ['PATH']}" in facts["attempts"][1]["start_error"]


def test_an_empty_name_is_127_and_told_as_what_it_is(tmp_path: Path) -> None:
    """`cronguard run j -- "$UNSET"`: the directory itself does exist."""
    facts = run_driver(tmp_path, [""])
    assert facts["start_code"] == 127
    assert facts["start_error"].startswith("the empty name: not found")


def test_path_without_the_variable_is_that_of_cron(tmp_path: Path) -> None:
    """FR-29: an empty environment."""
    facts = run_driver(tmp_path, [], argvs=[["no-such-program"], ["sh", "-c", "exit 7"]], env={})
    assert facts["attempts"][0]["start_error"] == "no-such-program: not found in PATH=/usr/bin:/bin"
    assert facts["attempts"][1]["exit_code"] == 7


def _script(path: Path, text: str, mode: int = 0o755) -> str:
    path.write_text(text)
    path.chmod(mode)
    return str(path)


def test_script_with_a_missing_interpreter_is_127_and_says_which(tmp_path: Path) -> None:
    """FR-27."""
    facts = run_driver(tmp_path, [_script(tmp_path / "script", "#!/no/such/python3 -u\n")])
    assert facts["start_code"] == 127
    assert "interpreter" in facts["start_error"]
    assert "'#!/no/such/python3 -u'" in facts["start_error"]


def test_script_with_carriage_returns_is_told_apart(tmp_path: Path) -> None:
    """FR-27: to the eye the interpreter exists."""
    facts = run_driver(tmp_path, [_script(tmp_path / "script", "#!/bin/sh\r\necho x\r\n")])
    assert facts["start_code"] == 127
    assert r"'#!/bin/sh\r'" in facts["start_error"]


def test_nothing_is_imported_after_the_command_has_started(tmp_path: Path) -> None:
    """FR-34: the installation may be replaced meanwhile."""
    facts = run_driver(tmp_path, sh("echo; (setsid sleep .1 &); exit 3"), timeout_s=5)
    assert facts["late"] == []


def test_what_cannot_be_executed_is_126(tmp_path: Path) -> None:
    """FR-27: no permission, no `#!` line, a directory, arguments too long."""
    plain = _script(tmp_path / "plain", "#!/bin/sh\n", 0o644)
    without = _script(tmp_path / "without", "echo no interpreter named\n")
    argvs = [[plain], [without], [str(tmp_path)]]
    facts = run_driver(tmp_path, [], argvs=argvs)
    assert [each["start_code"] for each in facts["attempts"]] == [126, 126, 126]
    assert "permission denied" in facts["attempts"][0]["start_error"]
    assert "#!" in facts["attempts"][1]["start_error"]


def test_arguments_that_are_too_long_are_126(tmp_path: Path) -> None:
    """FR-27: E2BIG."""
    facts = run_driver(tmp_path, ["true"], grow_env_bytes=4 << 20)
    assert facts["start_code"] == 126
    assert "longer than the system takes" in facts["start_error"]


def test_directory_that_does_not_exist_is_126_and_named(tmp_path: Path) -> None:
    """FR-27."""
    facts = run_driver(tmp_path, ["true"], directory="/no/such/dir")
    assert facts["start_code"] == 126
    assert facts["start_error"] == "directory /no/such/dir: no such file or directory"


def test_program_is_looked_up_in_the_directory_given(tmp_path: Path) -> None:
    """A relative program is relative to where the command runs."""
    _script(tmp_path / "here", "#!/bin/sh\nexec pwd\n")
    facts = run_driver(tmp_path, ["./here"], directory=str(tmp_path))
    assert facts["exit_code"] == 0
    assert facts["out"].decode().strip() == str(tmp_path.resolve())


def test_nul_in_the_environment_is_a_start_error(tmp_path: Path) -> None:
    facts = run_driver(tmp_path, ["true"], extra_env={"A": "x\0y"})
    assert facts["start_code"] == 126
    assert "arguments or environment" in facts["start_error"]


def test_attempts_after_a_start_error_still_work(tmp_path: Path) -> None:
    facts = run_driver(tmp_path, [], argvs=[["/no/such"], ["sh", "-c", "exit 4"]])
    assert [each["exit_code"] for each in facts["attempts"]] == [None, 4]


def test_command_starts_with_a_clean_slate(tmp_path: Path) -> None:
    """FR-26, FR-01: nothing ignored or blocked, three descriptors, a session of its own."""
    ignoring = ["bash", "-c", "trap '' PIPE TERM HUP QUIT USR1; exec 9</dev/null; exec \"$@\"", "bash"]
    script = "grep -E 'Sig(Ign|Blk)' /proc/self/status; ls /proc/$$/fd; cut -d' ' -f6 /proc/$$/stat; echo $$"
    lines = run_driver(tmp_path, sh(script), wrap=ignoring)["out"].decode().split()
    assert lines[:3] == ["SigBlk:", "0" * 16, "SigIgn:"]
    # 32 and 33 are the C library's own: posix_spawn(3) leaves the first ignored and no program can ask for it back.
    assert int(lines[3], 16) & ~(0b11 << 31) == 0
    assert lines[4:7] == ["0", "1", "2"]
    assert lines[7] == lines[8]


def test_pipeline_ends_by_sigpipe(tmp_path: Path) -> None:
    """FR-26: `yes | head` must not run for ever because Python ignores SIGPIPE."""
    facts = run_driver(tmp_path, sh("yes | head -1"), timeout_s=5)
    assert (facts["exit_code"], facts["out"]) == (0, b"y\n")


@pytest.mark.parametrize("limit", [resource.getrlimit(resource.RLIMIT_NOFILE)[1], 16])
def test_cost_does_not_depend_on_the_descriptor_limit(tmp_path: Path, limit: int) -> None:
    """FR-17: as many as may be, and as few as will do."""

    def lower() -> None:
        resource.setrlimit(resource.RLIMIT_NOFILE, (limit, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))

    facts = run_driver(tmp_path, sh("ulimit -n"), preexec=lower)
    assert facts["exit_code"] == 0
    assert facts["took_s"] < 5


def test_usage_is_that_of_the_command(tmp_path: Path) -> None:
    burn = "i=0; while [ $i -lt 20000 ]; do i=$((i+1)); done"
    facts = run_driver(tmp_path, sh(burn))
    assert 0.005 < facts["cpu_s"] < 5
    assert facts["peak_rss_bytes"] > 1 << 19
    assert facts["duration_s"] > 0.005


def test_results_of_the_command_are_read_back(tmp_path: Path) -> None:
    path = tmp_path / "results"
    path.touch()
    script = "printf 'items=4\\nnonsense\\nitems=418\\nmessage=all well\\nother=1\\n' >> \"$CRONGUARD_OUTPUT\""
    facts = run_driver(
        tmp_path, sh(script), results_path=str(path), extra_env={"CRONGUARD_OUTPUT": str(path)}
    )
    assert facts["results"] == {"items": "418", "message": "all well"}
