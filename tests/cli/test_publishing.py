"""`report` and `metrics` over rows that real runs have left."""

from __future__ import annotations

import os
from pathlib import Path
from typing import List

import pytest

from cronguard.cli.main import execute
from tests.support.cronguard import cronguard

CONFIG = """
[jobs.nightly]
cron = "30 2 * * *"
timezone = "Europe/Rome"
command = ["true"]
"""


@pytest.fixture
def two_runs() -> None:
    scheduled = ("--every", "12h", "--timezone", "UTC", "--timeout", "5m")
    assert cronguard("run", "good", *scheduled, "--", "true").returncode == 0
    assert cronguard("run", "bad", "--timeout", "5m", "--", "sh", "-c", "exit 3").returncode == 3


@pytest.mark.usefixtures("two_runs")
def test_report_is_a_page_with_a_row_a_job(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    config = tmp_path / "config.toml"
    config.write_text(CONFIG)
    page = tmp_path / "page.html"
    assert execute(["report", "--html", str(page), "--config", str(config)]) == 0
    assert capfd.readouterr() == ("", "")
    html = page.read_text(encoding="utf-8")
    assert html.startswith("<!DOCTYPE html>")
    assert html.rstrip().endswith("</html>")
    assert all(f'<article id="job-{job}"' in html for job in ("good", "bad", "nightly"))
    assert os.listdir(tmp_path / "work") == []


@pytest.mark.usefixtures("two_runs")
def test_dash_is_stdout_and_the_window_can_be_chosen(capfd: pytest.CaptureFixture[str]) -> None:
    assert execute(["report", "--html", "-", "--since", "1h"]) == 0
    out, err = capfd.readouterr()
    assert (out.startswith("<!DOCTYPE html>"), err) == (True, "")
    assert "The last 1h:" in out


@pytest.mark.usefixtures("two_runs")
def test_metrics_go_to_stdout_or_to_a_file(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert execute(["metrics"]) == 0
    out, err = capfd.readouterr()
    assert 'cronguard_job_failures_in_row{job="bad"} 1.0\n' in out
    assert 'cronguard_job_slots_missed{job="good"} 0.0\n' in out
    assert err == ""
    file = tmp_path / "cronguard.prom"
    assert execute(["metrics", "--textfile", str(file)]) == 0
    assert capfd.readouterr() == ("", "")
    assert [line.split(" ")[:-1] for line in file.read_text().splitlines()] == [
        line.split(" ")[:-1] for line in out.splitlines()
    ]


def test_empty_store_makes_an_empty_page_and_no_job_numbers(capfd: pytest.CaptureFixture[str]) -> None:
    assert execute(["report", "--html", "-"]) == 0
    assert "No job has run yet" in capfd.readouterr().out
    assert execute(["metrics"]) == 0
    assert "{" not in capfd.readouterr().out


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (["report"], 2, "--html: missing"),
        (["report", "--html", "-", "--since", "soon"], 2, "--since"),
        (["report", "--html", "-", "--since", "5s"], 2, "too short"),
        (["report", "--html", "no/such/page.html"], 2, "cannot write: no/such/page.html: no such file or directory"),
        (["metrics", "--textfile", ""], 2, "empty"),
        (["report", "--html", "-", "--store", "sqlite:not.db"], 125, "not.db"),
        (["metrics", "--store", "sqlite:not.db"], 125, "not.db"),
    ],
)
def test_mistakes_are_one_line(words: List[str], code: int, said: str, capfd: pytest.CaptureFixture[str]) -> None:
    Path("not.db").write_bytes(b"this is no database, " * 100)
    assert execute(words) == code
    out, err = capfd.readouterr()
    assert out == ""
    assert err.count("\n") == 1
    assert said in err


def test_password_of_the_store_is_not_on_the_page(postgres_url: str, tmp_path: Path) -> None:
    """P9; and both stores serve."""
    scheme, _, rest = postgres_url.partition("://")
    user, _, place = rest.rpartition("@")
    url = f"{scheme}://{user.partition(':')[0] or 'postgres'}:s3cret@{place}"
    page = tmp_path / "page.html"
    assert cronguard("run", "job", "--store", url, "--timeout", "5m", "--", "true").returncode == 0
    assert cronguard("report", "--html", str(page), "--store", url).returncode == 0
    assert 'id="job-job"' in page.read_text()
    assert "s3cret" not in page.read_text()
    assert cronguard("metrics", "--store", url).stdout.count('{job="job"}') > 5
