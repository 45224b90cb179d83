"""The page as text: what it says, and that nothing which came from outside becomes markup."""

from __future__ import annotations

import base64
import hashlib
import re
from datetime import datetime, timedelta, timezone
from html.parser import HTMLParser
from typing import Dict, List, Optional, Sequence, Tuple

from cronguard.core.model import Incident, JobRow, RunRow, ScheduleText
from cronguard.core.report import JOBS, Facts, page
from cronguard.core.standing import JobStatus, standing_of
from cronguard.core.timeline import CELLS
from tests.support.rows import job_row, run_row

NOW = datetime(2026, 3, 31, 9, 12, tzinfo=timezone.utc)
SINCE = NOW - timedelta(days=7)
NIGHTLY = ScheduleText("cron", "30 2 * * *")
HOSTILE = "</script></title><img src=x onerror=alert(1)>\"'&amp;\x00\x07\x1b[31m\u202egnp\u2066\ud800\n<b>"


class Elements(HTMLParser):
    """What a parser sees: tags with attributes, and the text of each kind of element."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.tags: List[Tuple[str, Dict[str, Optional[str]]]] = []
        self.text = ""
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: List[Tuple[str, Optional[str]]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        self.text += data


def facts(rows: Sequence[JobRow], runs: Sequence[RunRow] = (), incidents: Sequence[Incident] = ()) -> Facts:
    jobs = tuple(standing_of(row.facts.job, row, None, NOW) for row in rows)
    return Facts(jobs, tuple(runs), tuple(incidents), SINCE, NOW, SINCE, "sqlite:/var/lib/cronguard.db", "0.1.0")


def incident(job: str, kind: str = "failing", summary: str = "failed 3 times", first: str = "exit 3") -> Incident:
    opened = NOW - timedelta(days=1)
    return Incident("i", job, kind, "critical", summary, (first,), opened, opened, None, None)


def nightly(**more: object) -> JobRow:
    last = run_row("nightly", NOW - timedelta(hours=9), "failed", 30, exit_code=3, message="exited with 3")
    return job_row("nightly", NIGHTLY, "Europe/Rome", **{
        "last_run": last, "failures_in_row": 3, "usual_duration_s": 1420.0,
        "last_success_utc": NOW - timedelta(days=3), **more,
    })  # fmt: skip


def test_page_says_what_one_wants_to_know() -> None:
    row = nightly()
    assert row.last_run is not None
    text = Elements(page(facts([row], [row.last_run], [incident("nightly")]))).text
    for told in (
        "2026-03-24 09:12 to 2026-03-31 09:12 UTC", "Europe/Rome", "sqlite:/var/lib/cronguard.db", "nightly", "failed",
        "at 02:30 every day", "2026-03-28 10:12", "3d ago", "2026-04-01 02:30", "in 15h18m", "23m40s", "3 failed",
        "exited with 3", "failed 3 times", "Check first: exit 3", "median 23m40s", "29 Mar +1h",
    ):  # fmt: skip
        assert told in text, told


def test_page_asks_for_nothing_and_forbids_everything_but_its_own_style() -> None:
    elements = Elements(page(facts([nightly()])))
    assert not {"script", "link", "img", "iframe", "object", "base", "form", "a"} & {tag for tag, _ in elements.tags}
    assert not any(name in attributes for _, attributes in elements.tags for name in ("src", "href", "style"))
    (policy,) = [each["content"] for _, each in elements.tags if each.get("http-equiv") == "Content-Security-Policy"]
    style = re.search(r"<style>(.*?)</style>", page(facts([])), re.DOTALL)
    assert style
    digest = base64.b64encode(hashlib.sha256(style.group(1).encode()).digest()).decode()
    assert policy == f"default-src 'none'; style-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'"
    assert "url(" not in style.group(1)
    assert "@import" not in style.group(1)


def test_hostile_text_stays_text_wherever_it_comes_from() -> None:
    last = run_row("nightly", NOW - timedelta(hours=9), "failed", message=HOSTILE, host=HOSTILE, reason=HOSTILE)
    going = run_row("nightly", NOW - timedelta(hours=1), "running", host=HOSTILE)
    row = nightly(last_run=last, running=going, paused_since_utc=SINCE, paused_reason=HOSTILE)
    strange = job_row(HOSTILE, ScheduleText("cron", HOSTILE), HOSTILE)
    given = facts([row, strange], [last, going], [incident(HOSTILE, HOSTILE, HOSTILE, HOSTILE)])
    clean = facts([nightly(running=going)], [last, going], [incident("nightly")])
    html = page(given._replace(store=HOSTILE, version=HOSTILE))
    tags = {tag for tag, _ in Elements(html).tags}
    assert tags <= {tag for tag, _ in Elements(page(clean)).tags}
    assert not any(name.startswith("on") for _, attributes in Elements(html).tags for name in attributes)
    assert all(letter.isprintable() or letter == "\n" for letter in html)
    assert "\\u202egnp\\u2066\\ud800\\n" in html
    html.encode("utf-8")


def test_jobs_in_need_come_first_and_the_rest_is_counted() -> None:
    fine = run_row("fine", NOW)
    rows = [job_row(f"job-{number:04d}", last_run=fine) for number in range(JOBS + 50)]
    last = run_row("zz-failed", NOW, "failed")
    html = page(facts([*rows, job_row("zz-failed", last_run=last), job_row("zz-open")], (), [incident("zz-open")]))
    jobs = re.findall(r'<article id="job-([^"]+)"', html)
    assert len(jobs) == JOBS
    assert "52 more jobs are not drawn" in html
    assert {"zz-failed", "zz-open"} <= set(jobs)


def test_cut_window_is_said() -> None:
    given = facts([nightly()], [run_row("nightly", NOW)])
    html = page(given._replace(read_from_utc=NOW - timedelta(days=1)))
    assert "those before 2026-03-30T09:12Z are not drawn" in html


def test_every_minute_job_makes_a_page_of_bounded_size() -> None:
    runs = [run_row("busy", SINCE + timedelta(minutes=number), took_s=2.0) for number in range(7 * 1440)]
    html = page(facts([job_row("busy", ScheduleText("every", "1m"), usual_duration_s=2.0)], runs))
    assert html.count("<rect") < 4 * CELLS
    assert len(html) < 200_000


def test_job_that_nobody_started_and_no_job_at_all_are_shown() -> None:
    planned = standing_of("planned", None, (NIGHTLY, "Europe/Rome"), NOW)
    assert isinstance(planned, JobStatus)
    text = Elements(page(facts([])._replace(jobs=(planned,)))).text
    assert "never ran" in text
    assert "2026-04-01 02:30" in text
    assert "No job has run yet" in page(facts([]))
