"""`report` and `metrics`: what is on record, as a file for others to read, or on stdout."""

from __future__ import annotations

from typing import Any, Optional

from cronguard.cli.edge import print_lines
from cronguard.cli.parameters import command, option
from cronguard.commands import metrics as metrics_of
from cronguard.commands import report as report_of
from cronguard.core.metrics import exposition
from cronguard.core.model import Invocation
from cronguard.core.report import page
from cronguard.errors import UsageError
from cronguard.system.publishing import publish

_STDOUT = "-"


@command(
    option("html", "--html", "where to; - is stdout", "FILE"),
    option("since", "--since", f"the last so long [{report_of.DEFAULT_SINCE}]", "DUR"),
)
def report(invocation: Invocation, ctx: Any, html: Optional[str], since: Optional[str]) -> int:
    """Write a page to look at: what became of each job's slots, how long they took, what is wrong.

    One file that needs nothing else and asks for nothing. It is replaced as a whole, so that cron can publish it.

    Example: cronguard report --html /var/www/html/jobs.html --since 30d
    """
    if not html:
        raise UsageError("--html: missing: say where the page goes, or - for stdout")
    _write(html, page(report_of.report(since, invocation)))
    return 0


@command(option("textfile", "--textfile", "where to; stdout without it", "FILE"))
def metrics(invocation: Invocation, ctx: Any, textfile: Optional[str]) -> int:
    """Write numbers of each job for Prometheus, as node_exporter's textfile collector reads them (*.prom).

    Example: cronguard metrics --textfile /var/lib/node_exporter/cronguard.prom
    """
    _write(_STDOUT if textfile is None else textfile, exposition(metrics_of.metrics(invocation)))
    return 0


def _write(place: str, text: str) -> None:
    if place == _STDOUT:
        print_lines(text.splitlines())
    elif place:
        publish(place, text)
    else:
        raise UsageError("FILE: empty; - is stdout")
