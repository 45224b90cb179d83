"""The names of all jobs, for a shell that completes what somebody types.

It must never be in the way: half a second for the store, and whatever goes wrong, there are fewer names and no words.
"""

from __future__ import annotations

from typing import Set, Tuple

from cronguard.core.document import table_of
from cronguard.core.model import Invocation
from cronguard.core.names import check_job_name
from cronguard.errors import CronguardError
from cronguard.workspace import Workspace, open_workspace

WITHIN_S = 0.5


def job_names(invocation: Invocation) -> Tuple[str, ...]:
    """In order of name; those of the config file also when the store does not answer."""
    try:
        workspace = open_workspace(invocation, None)
        names = {*table_of(workspace.document, "jobs"), *_stored(workspace)}
        # A shell reads them: nothing that it could take for more than a word, wherever it came from.
        return tuple(sorted(name for name in names if check_job_name(name) is None))
    except CronguardError:
        return ()


def _stored(workspace: Workspace) -> Set[str]:
    try:
        worker = workspace.worker()
    except CronguardError:
        return set()
    try:
        return {row.facts.job for row in worker.call(lambda store: store.jobs((), WITHIN_S), WITHIN_S)}
    except CronguardError:
        return set()
    finally:
        worker.close(0.0)
