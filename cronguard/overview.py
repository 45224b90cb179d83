"""What the looking commands begin with: every job that the store or the config file knows.

The file is judged as a whole first, so that a mistake in it is told and not looked past. Reads summaries, never the
history.
"""

from __future__ import annotations

from contextlib import contextmanager
from datetime import datetime
from typing import Callable, Iterator, Mapping, NamedTuple, Optional, Sequence, Tuple

from cronguard.core.document import check_document, table_of
from cronguard.core.model import Invocation, JobRow
from cronguard.core.names import did_you_mean
from cronguard.core.standing import JobStatus, standing_of
from cronguard.errors import ConfigError, NotFound
from cronguard.store.worker import StoreWorker
from cronguard.workspace import Workspace, open_workspace, planned_jobs

WITHIN_S = 10.0


class Overview(NamedTuple):
    """`rows` by job name; `names` of all jobs, in order, those without a row too."""

    workspace: Workspace
    store: StoreWorker
    rows: Mapping[str, JobRow]
    names: Tuple[str, ...]

    def chosen(self, names: Sequence[str]) -> Tuple[str, ...]:
        """Each of these names once, or all of them. NotFound for one that nobody knows."""
        for name in names:
            if name not in self.names:
                why = f"it never ran and no config file has it{did_you_mean(name, self.names)}"
                raise NotFound(f"no such job: {name}: {why}")
        return tuple(dict.fromkeys(names)) or self.names

    def standings(self, names: Sequence[str], environ: Mapping[str, str], at_utc: datetime) -> Tuple[JobStatus, ...]:
        """How these jobs stand; those that have never run by what the config file plans."""
        planned = planned_jobs(self.workspace, [name for name in names if name not in self.rows], environ)
        return tuple(standing_of(name, self.rows.get(name), planned.get(name), at_utc) for name in names)


def judged_workspace(invocation: Invocation) -> Workspace:
    """The workspace of no job in particular. ConfigError with every mistake of the file."""
    workspace = open_workspace(invocation, None)
    problems = check_document(workspace.document, workspace.file_name)
    if problems:
        raise ConfigError(problems)
    return workspace


@contextmanager
def overview(workspace: Workspace, before: Optional[Callable[[StoreWorker], None]] = None) -> Iterator[Overview]:
    """Read the summaries, after what is to be done `before`; the store is closed at the end."""
    store = workspace.worker()
    try:
        if before is not None:
            before(store)
        rows = {row.facts.job: row for row in store.call(lambda each: each.jobs((), WITHIN_S), WITHIN_S)}
        names = tuple(sorted({*rows, *table_of(workspace.document, "jobs")}))
        yield Overview(workspace, store, rows, names)
    finally:
        store.close(1.0)
