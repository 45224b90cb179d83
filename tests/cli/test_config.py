"""`config`, and how the file is found and read."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any, Dict, Optional

import pytest

from cronguard.cli.main import execute
from cronguard.errors import ConfigError
from cronguard.system.config_file import load_config

TEXT = """
[defaults]
timezone = "Europe/Rome"
store = "postgresql://app:s3cret@db.example/app"
env = { PATH = "/bin" }
[jobs.nightly]
cron = "0 2 * * *"
command = ["pg_dump", "--password", "s3cret"]
ping = "https://hc-ping.com/s3cret"
env = { PGPASSWORD = "s3cret" }
[jobs.hourly]
every = "1h"
"""


def written(folder: Path, text: str = TEXT) -> str:
    file = folder / "config.toml"
    file.write_text(text)
    return str(file)


def test_effective_settings_show_value_and_source_without_secrets(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Promise P9."""
    monkeypatch.setenv("CRONGUARD_TIMEOUT", "5m")
    file = written(tmp_path)
    assert execute(["config", "nightly", "--config", file]) == 0
    text, _ = capfd.readouterr()
    assert "s3cret" not in text
    rows = {line.split("  ")[0]: line for line in text.splitlines() if line}
    assert rows["timezone"].split() == ["timezone", "Europe/Rome", file, "[defaults]"]
    assert rows["cron"].endswith(f"{file} [jobs.nightly]")
    assert rows["timeout"].split() == ["timeout", "5m", "environment", "CRONGUARD_TIMEOUT"]
    assert rows["grace"].split() == ["grace", "10s", "default"]
    assert "postgresql://app:***@db.example/app" in rows["store"]
    assert "https://hc-ping.com/***" in rows["ping"]


def test_json_has_the_same(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    file = written(tmp_path)
    assert execute(["config", "nightly", "--config", file, "--json", "--store", "sqlite:/x.db"]) == 0
    out = capfd.readouterr().out
    assert "s3cret" not in out
    document: Dict[str, Any] = json.loads(out)
    assert (document["version"], document["file"]) == (1, file)
    assert {"name": "store", "value": "sqlite:/x.db", "source": "command line --store"} in document["shared"]
    (job,) = document["jobs"]
    assert job["job"] == "nightly"
    assert {"name": "env PATH", "value": "/bin", "source": f"{file} [defaults.env]"} in job["settings"]


def test_without_a_job_every_job_is_shown_with_what_it_sets(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert execute(["config", "--config", written(tmp_path), "--json"]) == 0
    jobs = {job["job"]: job["settings"] for job in json.loads(capfd.readouterr().out)["jobs"]}
    assert [setting["name"] for setting in jobs["hourly"]] == ["every", "timezone", "env PATH"]


def test_all_mistakes_of_a_file_are_reported_a_line_each(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    file = written(tmp_path, "[defaults]\ntimout = 5\n[jobs.a]\ncron = 1\n[jobs.b]\nkey = 'slott'\n")
    assert execute(["config", "--config", file]) == 2
    err = capfd.readouterr().err.splitlines()
    assert len(err) == 3
    assert all(line.startswith(f"cronguard: {file}: [") for line in err)
    assert "did you mean timeout?" in err[0]


def test_contradictions_of_every_job_are_found(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    text = "[jobs.a]\nkey = 'slot'\n[jobs.b]\ncron = '61 * * * *'\n[jobs.c]\ntimezone = 'Europe/Rme'\n"
    assert execute(["config", "--config", written(tmp_path, text)]) == 2
    err = capfd.readouterr().err.splitlines()
    assert ["[jobs.a] key" in err[0], "[jobs.b] cron" in err[1], "[jobs.c] timezone" in err[2]] == [True] * 3


def test_file_is_looked_for_where_it_was_asked_for_then_in_the_usual_place(tmp_path: Path) -> None:
    for name in ("given", "variable", "xdg/cronguard", "home/.config/cronguard"):
        (tmp_path / name).mkdir(parents=True)
        written(tmp_path / name, f"[jobs.{name[0]}]\n")
    environ = {
        "CRONGUARD_CONFIG": str(tmp_path / "variable/config.toml"),
        "XDG_CONFIG_HOME": str(tmp_path / "xdg"),
        "HOME": str(tmp_path / "home"),
    }
    assert found(str(tmp_path / "given/config.toml"), environ) == "g"
    assert found(None, environ) == "v"
    del environ["CRONGUARD_CONFIG"]
    assert found(None, environ) == "x"
    environ["XDG_CONFIG_HOME"] = ""
    assert found(None, environ) == "h"


def found(given: Optional[str], environ: Dict[str, str]) -> str:
    document, _ = load_config(given, environ)
    jobs = document["jobs"]
    assert isinstance(jobs, dict)
    return "".join(jobs)


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"[jobs.a\n", "line 1"),
        (b"a = 1\na = 2\n", "line 2"),
        (b"a = 1\nb = \xff\n", "not UTF-8 (at line 2)"),
        (b"#" * (1 << 20) + b"\n", "larger than 1 MiB"),
        (b"a = " + b"[" * 100000, "not TOML"),
    ],
)
def test_unreadable_content_is_one_problem_that_names_the_file(tmp_path: Path, content: bytes, reason: str) -> None:
    file = tmp_path / "config.toml"
    file.write_bytes(content)
    refused(str(file), reason)


def test_missing_file_directory_fifo_and_impossible_path_are_refused(tmp_path: Path) -> None:
    refused(str(tmp_path / "none.toml"), "no such file")
    refused(str(tmp_path), "directory")
    os.mkfifo(tmp_path / "fifo")
    refused(str(tmp_path / "fifo"), "not a regular file")
    refused("a\0b", "not a path")
    refused("/dev/null", "not a regular file")


def refused(path: str, reason: str) -> None:
    with pytest.raises(ConfigError) as caught:
        load_config(path, {})
    (problem,) = caught.value.problems
    assert problem.startswith(f"config: {path}: ")
    assert reason in problem


def test_dangling_link_in_the_usual_place_is_no_absent_file(tmp_path: Path) -> None:
    (tmp_path / "cronguard").mkdir()
    (tmp_path / "cronguard/config.toml").symlink_to(tmp_path / "nothing")
    with pytest.raises(ConfigError, match="no such file"):
        load_config(None, {"XDG_CONFIG_HOME": str(tmp_path)})
