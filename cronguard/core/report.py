"""The report: one HTML page that needs nothing else, from what the store knows. Rendering only, nothing is looked up.

It has no script and asks for nothing, and its Content-Security-Policy forbids both, should an escape ever be missing.
Bounded: those jobs come first that need somebody, at most JOBS are drawn, and what was left away is said.
"""

from __future__ import annotations

from datetime import datetime, tzinfo
from typing import Dict, List, NamedTuple, Optional, Sequence, Set, Tuple

from cronguard.core.axis import Axis
from cronguard.core.durations import format_duration
from cronguard.core.instants import utc_text
from cronguard.core.markup import Content, Markup, element, joined, outsider
from cronguard.core.model import Incident, JobRow, RunRow
from cronguard.core.overdue import is_paused
from cronguard.core.report_style import STYLE, policy
from cronguard.core.standing import JobStatus
from cronguard.core.svg import Frame, durations_svg, legend_svg, timeline_svg
from cronguard.core.timeline import KINDS, Timeline, timeline_of
from cronguard.core.wording import in_words
from cronguard.core.zones import load_zone
from cronguard.errors import ScheduleError

JOBS = 200
_SLOTS = 100_000  # walked for the whole page ...
_SLOTS_A_JOB = (200, 20_000)  # ... and for one job at least and at most
_INCIDENTS = 50
_TROUBLE = ("failed", "timeout", "aborted", "lost", "never_ran")
_STATE_CLASS = {**dict.fromkeys(_TROUBLE, "failed"), "never_ran": "never", "ok": "ok", "running": "running"}
_MEANING = {
    "done": "done", "failed": "failed, timed out, aborted or lost", "missed": "missed: nobody started it",
    "skipped": "skipped", "running": "running",
}  # fmt: skip


class Facts(NamedTuple):
    """What a page is made from. `runs`: those that started since `read_from_utc`, which is later than `since_utc` when
    there were too many to read. `store`: its name without secrets. `version`: of this cronguard."""

    jobs: Tuple[JobStatus, ...]
    runs: Tuple[RunRow, ...]
    incidents: Tuple[Incident, ...]
    since_utc: datetime
    now_utc: datetime
    read_from_utc: datetime
    store: str
    version: str


class _Drawn(NamedTuple):
    """A job with all that its row shows."""

    status: JobStatus
    frame: Frame
    zone_name: str
    runs: Sequence[RunRow]
    timeline: Timeline


def page(facts: Facts) -> str:
    """The whole document."""
    drawn = _drawn(facts)
    zones = sorted({each.zone_name for each in drawn}) or ["UTC"]
    title = f"cronguard, {utc_text(_minute(facts.now_utc))}"
    head = element(
        "head",
        element("meta", charset="utf-8"),
        element("meta", http_equiv="Content-Security-Policy", content=policy()),
        element("meta", name="viewport", content="width=device-width, initial-scale=1"),
        element("meta", name="referrer", content="no-referrer"),
        element("title", title),
        element("style", Markup(STYLE)),
    )
    body = element(
        "body",
        _header(facts, drawn, zones),
        element("main", _incidents(facts), _jobs(facts, drawn)),
        element("footer", f"Written by cronguard {facts.version}. Point at a bar to read what it stands for."),
    )
    return f"<!DOCTYPE html>\n{element('html', head, body, lang='en')}\n"


def _drawn(facts: Facts) -> List[_Drawn]:
    open_for = {incident.job for incident in facts.incidents}
    chosen = sorted(facts.jobs, key=lambda each: (_urgency(each, open_for), each.job))[:JOBS]
    runs: Dict[str, List[RunRow]] = {}
    for run in facts.runs:
        runs.setdefault(run.job, []).append(run)
    least, most = _SLOTS_A_JOB
    most_slots = min(max(_SLOTS // max(len(chosen), 1), least), most)
    return [_drawn_job(facts, each, runs.get(each.job, []), most_slots) for each in chosen]


def _drawn_job(facts: Facts, status: JobStatus, runs: Sequence[RunRow], most_slots: int) -> _Drawn:
    zone, zone_name = _zone_of(status)
    axis = Axis(facts.since_utc, facts.now_utc)
    timeline = Timeline((), None)
    if status.row is not None:
        timeline = timeline_of(status.row, runs, axis, zone, facts.read_from_utc, most_slots)
    return _Drawn(status, Frame(axis, zone, status.job), zone_name, runs, timeline)


def _urgency(status: JobStatus, open_for: Set[str]) -> int:
    """Lowest first: who needs somebody, who is at work, the rest."""
    if status.job in open_for or status.state in _TROUBLE:
        return 0
    return 1 if status.state == "running" else 2


def _zone_of(status: JobStatus) -> Tuple[tzinfo, str]:
    """The job's zone, and what to call it; UTC, and called so, if this host does not know it."""
    name = status.due[1]
    try:
        return load_zone(name), name
    except ScheduleError:
        return load_zone("UTC"), "UTC"


def _header(facts: Facts, drawn: Sequence[_Drawn], zones: Sequence[str]) -> Markup:
    window = f"{facts.since_utc:%Y-%m-%d %H:%M} to {facts.now_utc:%Y-%m-%d %H:%M} UTC"
    span = format_duration((facts.now_utc - facts.since_utc).total_seconds())
    told = [*zones[:6], *([f"and {len(zones) - 6} more"] if len(zones) > 6 else [])]
    return element(
        "header",
        element("h1", "What the jobs did"),
        element("p", f"The last {span}: {window}. Times are each job's own: {', '.join(told)}.", class_="soft"),
        element("p", "Store: ", outsider(facts.store), class_="soft"),
        _totals(facts, drawn),
    )


def _totals(facts: Facts, drawn: Sequence[_Drawn]) -> Markup:
    marks = [mark.kind for each in drawn for mark in each.timeline.marks]
    counts = {kind: marks.count(kind) for kind in KINDS}
    cells = [
        ("jobs", len(facts.jobs), ""),
        ("open incidents", len(facts.incidents), "bad"),
        ("failing", sum(each.state in _TROUBLE and each.state != "never_ran" for each in facts.jobs), "bad"),
        ("running", sum(each.state == "running" for each in facts.jobs), ""),
        ("paused", sum(each.state == "paused" for each in facts.jobs), ""),
        *[(f"slots {kind}", counts[kind], "bad" if kind in ("failed", "missed") else "")
          for kind in ("done", "failed", "missed", "skipped")],
    ]  # fmt: skip
    shown = [
        element("div", element("dt", name), element("dd", f"{count:,}"), class_=kind if count else "")
        for name, count, kind in cells
    ]
    return element("dl", *shown, class_="totals")


def _incidents(facts: Facts) -> Markup:
    if not facts.incidents:
        return Markup()
    newest = sorted(facts.incidents, key=lambda incident: incident.since_utc, reverse=True)
    shown = [_incident(incident, facts.now_utc) for incident in newest[:_INCIDENTS]]
    if len(newest) > _INCIDENTS:
        shown.append(element("li", f"and {len(newest) - _INCIDENTS} more: cronguard check", class_="soft"))
    return joined([element("h2", "Open incidents"), element("ul", *shown, class_="incidents")])


def _incident(incident: Incident, now_utc: datetime) -> Markup:
    title = element("strong", outsider(incident.job), f" {_words(incident.kind)}", class_=incident.state)
    ago = f" since {utc_text(_minute(incident.since_utc))} ({_ago(incident.since_utc, now_utc)})"
    parts: List[Content] = [title, element("span", ago, class_="soft"), element("p", outsider(incident.summary))]
    if incident.check_first:
        first = joined([outsider(each) for each in incident.check_first], "; ")
        parts.append(element("p", "Check first: ", first, class_="soft"))
    return element("li", *parts)


def _jobs(facts: Facts, drawn: Sequence[_Drawn]) -> Markup:
    if not facts.jobs:
        return element("p", "No job has run yet, and no config file names one.", class_="soft")
    notes = []
    if facts.read_from_utc > facts.since_utc:
        notes.append(f"There were more than {len(facts.runs):,} runs: those before"
                     f" {utc_text(_minute(facts.read_from_utc))} are not drawn.")  # fmt: skip
    if len(drawn) < len(facts.jobs):
        notes.append(f"{len(facts.jobs) - len(drawn):,} more jobs are not drawn, none of them before these in need:"
                     " cronguard status lists them all.")  # fmt: skip
    told = element("ul", *[element("li", note) for note in notes], class_="notes soft") if notes else Markup()
    legend = [element("li", legend_svg(kind), element("span", _MEANING[kind])) for kind in _MEANING]
    rows = [_job(each, facts) for each in drawn]
    return joined([element("h2", "Jobs"), element("ul", *legend, class_="legend soft"), told, *rows])


def _job(each: _Drawn, facts: Facts) -> Markup:
    status, row = each.status, each.status.row
    state = element("span", _words(status.state), class_=f"state {_STATE_CLASS.get(status.state, '')}".strip())
    schedule = in_words(status.due[0]) if status.due[0] else "no schedule"
    about = element("p", outsider(f"{schedule}, {each.zone_name}"), class_="soft")
    head = element("header", element("h3", outsider(status.job)), state, about)
    left = element("div", head, element("dl", *_facts(each, facts.now_utc), class_="facts"))
    return element("article", left, _charts(each), _message(row), id=f"job-{status.job}")


def _facts(each: _Drawn, now_utc: datetime) -> List[Markup]:
    row, due = each.status.row, each.status.next_due
    pairs: List[Tuple[str, Content]] = []
    last = row.last_success_utc if row else None
    pairs.append(("Last success", _when(last, each, now_utc) if last else "never"))
    if due is not None:
        pairs.append(("Next due", _when(due.at_utc, each, now_utc)))
    if row is not None:
        pairs += _row_facts(row, each, now_utc)
    return [part for name, value in pairs for part in (element("dt", name), element("dd", value))]


def _row_facts(row: JobRow, each: _Drawn, now_utc: datetime) -> List[Tuple[str, Content]]:
    pairs: List[Tuple[str, Content]] = []
    if row.running is not None:
        took = format_duration(max(0.0, (now_utc - row.running.started_at_utc).total_seconds()))
        pairs.append(("Running for", joined([f"{took} on ", outsider(row.running.host)])))
    if row.usual_duration_s is not None:
        pairs.append(("Usually takes", format_duration(row.usual_duration_s)))
    streaks = [f"{count} {word}" for count, word in
               ((row.failures_in_row, "failed"), (row.skips_in_row, "skipped")) if count]  # fmt: skip
    if streaks:
        kind = "bad-fact" if row.failures_in_row else ""
        pairs.append(("In a row", element("span", ", ".join(streaks), class_=kind)))
    if row.paused_since_utc is not None and is_paused(row, now_utc):
        reason = joined([": ", outsider(row.paused_reason)]) if row.paused_reason else Markup()
        pairs.append(("Paused", joined(["since ", _when(row.paused_since_utc, each, now_utc), reason])))
    return pairs


def _charts(each: _Drawn) -> Markup:
    row = each.status.row
    paused = row.paused_since_utc if row and each.status.state == "paused" else None
    parts: List[Markup] = [element("figure", timeline_svg(each.frame, each.timeline.marks, paused))]
    usual_s = row.usual_duration_s if row else None
    if any(run.duration_s is not None and run.status != "skipped" for run in each.runs):
        parts.append(element("figure", durations_svg(each.frame, each.runs, usual_s)))
    before = each.timeline.unknown_before_utc
    if before is not None:
        parts.append(element("p", f"Before {utc_text(_minute(before))} nobody looked for missed slots.", class_="soft"))
    return element("div", *parts, class_="charts")


def _message(row: Optional[JobRow]) -> Markup:
    """What the last run said when it did not end well."""
    last = row.last_run if row else None
    if last is None or last.status in ("success", "running") or not last.message:
        return Markup()
    return element("p", "Last run: ", outsider(last.message), class_="message")


def _when(at_utc: datetime, each: _Drawn, now_utc: datetime) -> Markup:
    local, utc = at_utc.astimezone(each.frame.zone), utc_text(_minute(at_utc))
    shown = element("time", f"{local:%Y-%m-%d %H:%M}", datetime=utc, title=utc)
    return joined([shown, element("span", f" {_ago(at_utc, now_utc)}", class_="soft")])


def _ago(at_utc: datetime, now_utc: datetime) -> str:
    seconds = (now_utc - at_utc).total_seconds()
    return f"{format_duration(seconds)} ago" if seconds >= 0 else f"in {format_duration(-seconds)}"


def _words(name: str) -> str:
    return name.replace("_", " ")


def _minute(at_utc: datetime) -> datetime:
    return at_utc.replace(second=0, microsecond=0)
