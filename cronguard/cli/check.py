"""`check`: for Nagios its first line and exit code, for cron's mail a line a job, for scripts JSON.

With `--notify` it prints only what it was to tell people, so that cron mails what is new and not the same every five
minutes.
"""

from __future__ import annotations

from typing import Any, Dict, List, Optional

from cronguard.cli.edge import one_line, print_lines
from cronguard.cli.parameters import arguments, command, option, option_for
from cronguard.cli.render import is_terminal, print_json
from cronguard.cli.talk import Talk
from cronguard.commands import check as check_of
from cronguard.commands.check import Checked, CheckRequest
from cronguard.core.alerting import message_of, words_for
from cronguard.core.model import Finding, Invocation
from cronguard.core.settings import ALERTS, NOTIFY
from cronguard.core.values import judged

EXIT_CODES = {"ok": 0, "warning": 1, "critical": 2, "unknown": 3}  # Nagios plugin API
_NAMED_AT_MOST = 5


@command(
    arguments("jobs", "[JOB]...", "only these"),
    option("as_json", "--json", "print one JSON object"),
    option("notify", "--notify", "tell people what is new, still so or over, through [notify] urls of the config file"),
    option("at", "--at", "judge as of then [now]", "INSTANT"),
    option("ping", "--ping", "heartbeat URL of this check, or file:PATH or env:NAME holding it", "URL"),
    *[option_for(setting) for setting in ALERTS],
)
def check(
    invocation: Invocation,
    ctx: Any,
    jobs: Optional[List[str]],
    as_json: bool,
    notify: bool,
    at: Optional[str],
    ping: Optional[str],
    **thresholds: Optional[str],
) -> int:
    """Find what did not run, is stuck, keeps failing, became slow or only ever skips.

    Leaves with 0 ok, 1 warning, 2 critical, 3 unknown. The thresholds given here overrule those of every job.

    Example: cronguard check --notify

    Example: cronguard check nightly-export --max-age 26h --json
    """
    options: Dict[str, str] = {name: text for name, text in thresholds.items() if text is not None}
    if ping is not None:
        judged("--ping", NOTIFY["ping"].parse, ping)
    talk = Talk(invocation.log_format, invocation.verbose, invocation.environ)
    result = check_of.check(CheckRequest(tuple(jobs or ()), options, at, notify, ping), invocation, talk)
    if as_json:
        print_json(check_of.as_json(result))
    elif result.told is None or is_terminal(invocation.environ):
        print_lines([_headline(result), *_lines(result)])
    else:
        print_lines(_told(result))
    return EXIT_CODES[result.state]


def _headline(result: Checked) -> str:
    """`CRITICAL: 2 of 12 jobs: nightly-export missed, billing failing`; no `|`, which would begin performance data."""
    troubled = list(dict.fromkeys(finding.job for finding in result.findings if finding.job))
    counts = f"{result.jobs} {'job' if result.jobs == 1 else 'jobs'}"
    counts = f"{len(troubled)} of {counts}" if troubled else counts
    counts += f" ({len(result.paused)} paused)" if result.paused else ""
    named = [f"{finding.job} {words_for(finding.kind)}".strip() for finding in result.findings]
    named += [f"{job} cannot be judged" for job, _ in result.unjudged]
    more = f" and {len(named) - _NAMED_AT_MOST} more" if len(named) > _NAMED_AT_MOST else ""
    listed = ", ".join(named[:_NAMED_AT_MOST]) + more
    return f"{result.state.upper()}: {counts}" + (f": {listed}" if listed else "")


def _lines(result: Checked) -> List[str]:
    by_job: Dict[str, List[Finding]] = {}
    for finding in result.findings:
        by_job.setdefault(finding.job, []).append(finding)
    alerts = [_alert(found) for found in by_job.values()]
    return [one_line(line) for line in (*alerts, *[why for _, why in (*result.unjudged, *result.paused)])]


def _alert(found: List[Finding]) -> str:
    """All of a job in one line, what to look at first said once."""
    summaries = "; ".join(finding.summary for finding in found)
    first = dict.fromkeys(line for finding in found for line in finding.check_first)
    return f"ALERT {summaries}" + (f". check first: {'; '.join(first)}" if first else "")


def _told(result: Checked) -> List[str]:
    lines = []
    for notice in result.told or ():
        message = message_of(notice, result.at_utc)
        lines.append(one_line(f"{message.title}: " + message.text.replace("\n", "; ")))
    return lines
