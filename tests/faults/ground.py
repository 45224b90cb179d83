"""Where a storm happens: a folder, pretended hosts, a store of its own that can be hurt, and invocations of cronguard.

Each pretended host has its own state directory, as real ones have. Everything started here carries a tag in its
environment, by which what is left can be found.
"""

from __future__ import annotations

import json
import os
import signal
import sqlite3
import subprocess
import sys
import uuid
from pathlib import Path
from typing import Any, Dict, List, NamedTuple, Optional, Set

from cronguard.system import processes
from tests.faults.verdict import Ended, Trace, read_trace
from tests.support.pgbouncer import Pooler
from tests.support.postgres import Server
from tests.support.processes import ROOT, TAG, tagged
from tests.support.stores import parts_of

LEASE_S = 15.0
JOBS = ("storm", "other")  # both under the lock `storm`
_HOSTS = {"sqlite": ("web-1",), "postgres": ("web-1", "web-2", "web-3"), "pgbouncer": ("web-1", "web-2", "web-3")}
_OPTIONS = ["--key", "none", "--lock", "storm", "--lease", "15s", "--timeout", "60s", "--grace", "0.5s"]


class Work(NamedTuple):
    """What a command is to do: see tests/support/beater.py."""

    seconds: float
    code: int = 0
    flags: str = ""


class Invocation:
    """A supervisor of the storm's, its command, and what has been done to it."""

    def __init__(self, name: str, job: str, host: str, folder: Path, argv: List[str], env: Dict[str, str]) -> None:
        self.name = name
        self.job = job
        self.host = host
        self.struck: Set[str] = set()  # kinds of faults that were meant for it
        self.stopped = False
        self.at_end: Optional[signal.Signals] = None  # to be sent once the command has ended
        self._trace_path = folder / "traces" / name
        self._error_path = folder / "stderr" / name
        with open(self._error_path, "wb") as said:
            self.process = subprocess.Popen(
                argv, env=env, cwd=ROOT, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=said
            )

    @property
    def pid(self) -> int:
        return self.process.pid

    @property
    def over(self) -> bool:
        return self.process.poll() is not None

    @property
    def trace(self) -> Optional[Trace]:
        return read_trace(self._trace_path)

    @property
    def running(self) -> bool:
        """Its command has begun and not said that it ended."""
        trace = self.trace
        return trace is not None and trace.code is None

    def send(self, signum: signal.Signals) -> None:
        self.process.send_signal(signum)

    def send_keeper(self, signum: signal.Signals) -> bool:
        """False: there is none to be seen (its number may be somebody else's by now)."""
        trace = self.trace
        stat = None if trace is None else processes.read_stat(trace.keeper_pid)
        if stat is None or not stat.alive or stat.ppid != self.pid:
            return False
        os.kill(stat.pid, signum)
        return True

    def ended(self) -> Ended:
        said = self._error_path.read_text(errors="replace")
        return Ended(self.name, self.job, self.process.wait(), frozenset(self.struck), said)


class Ground:
    """`weakness`: which protection cronguard is to be without (see weakened.py)."""

    def __init__(self, kind: str, folder: Path, weakness: Optional[str] = None) -> None:
        self.kind = kind
        self.hosts = _HOSTS[kind]
        self.folder = folder
        self.server: Optional[Server] = None
        self.pooler: Optional[Pooler] = None
        self._tag = uuid.uuid4().hex
        self._program = [sys.executable, "-m", "cronguard"]
        if weakness is not None:
            self._program = [sys.executable, str(ROOT / "tests" / "faults" / "weakened.py"), weakness]
        for name in ("traces", "holds", "stderr"):
            (folder / name).mkdir()
        self.url = self._open()

    def _open(self) -> str:
        if self.kind == "sqlite":
            return f"sqlite:{self.folder}/store/cronguard.db"
        self.server = Server()
        self.server.start()
        if self.kind == "postgres":
            return self.server.dsn
        parts = parts_of(self.server.dsn)
        self.pooler = Pooler({name: parts[name] for name in ("host", "port", "user")})
        self.pooler.start(parts["dbname"])
        return self.pooler.dsn(parts["dbname"])

    def close(self) -> None:
        """End what is ours."""
        for pid in self.left():
            processes.send((pid,), signal.SIGKILL)
        if self.pooler is not None:
            self.pooler.remove()
        if self.server is not None:
            self.server.remove()

    def start(self, name: str, job: str, host: str, work: Work, wait_s: float) -> Invocation:
        conflict = ["--on-conflict", "wait", "--wait", f"{wait_s:.1f}s"] if wait_s else []
        beater = [sys.executable, "-I", "-S", str(ROOT / "tests" / "support" / "beater.py")]
        command = [*beater, str(self.folder), name, f"{work.seconds:.3f}", str(work.code), *work.flags]
        argv = [*self._program, "run", job, *_OPTIONS, "--leftovers", "kill", *conflict, "--", *command]
        return Invocation(name, job, host, self.folder, argv, self._environment(host))

    def rows(self) -> List[Dict[str, Any]]:
        """All that the store knows of both jobs."""
        found: List[Dict[str, Any]] = []
        for job in JOBS:
            argv = [sys.executable, "-m", "cronguard", "history", job, "--limit", "10000", "--json"]
            done = subprocess.run(
                argv, env=self._environment(self.hosts[0]), cwd=ROOT, check=False, stdout=subprocess.PIPE
            )
            found += json.loads(done.stdout)["runs"] if done.returncode == 0 else []
        return found

    def spooled(self, host: str) -> List[Path]:
        return list((self.folder / f"state-{host}").glob("spool/*/*"))

    def left(self) -> List[int]:
        """Living processes of the storm's: supervisors, keepers, commands and what those started."""
        return sorted(tagged(self._tag))

    # What can be done to the store.

    def hold(self, name: str) -> Path:
        """Keeps that invocation's command from ending as long as it is there."""
        path = self.folder / "holds" / name
        path.touch()
        return path

    def terminate_backends(self, share: float) -> int:
        import psycopg

        assert self.server is not None
        with psycopg.connect(self.server.dsn, autocommit=True) as connection:
            ended = connection.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
                " WHERE backend_type = 'client backend' AND pid <> pg_backend_pid() AND random() < %s",
                (share,),
            ).fetchall()
        return len(ended)

    def start_pooler(self) -> None:
        assert self.server is not None
        assert self.pooler is not None
        self.pooler.start(parts_of(self.server.dsn)["dbname"])

    def lock_database(self) -> Optional[sqlite3.Connection]:
        """As somebody with the sqlite3 shell might, until it is closed; None if it is not there or locked."""
        path = self.url.partition(":")[2]
        if not os.path.exists(path):
            return None
        connection = sqlite3.connect(path, timeout=1, isolation_level=None)
        try:
            connection.execute("BEGIN IMMEDIATE")
        except sqlite3.OperationalError:
            connection.close()
            return None
        return connection

    def _environment(self, host: str) -> Dict[str, str]:
        return {
            "PATH": os.environ["PATH"],
            "PYTHONPATH": str(ROOT),
            "HOME": str(self.folder / "no-home"),
            "XDG_CONFIG_HOME": str(self.folder / "no-config"),
            "CRONGUARD_STORE": self.url,
            "CRONGUARD_STATE_DIR": str(self.folder / f"state-{host}"),
            "CRONGUARD_TEST": "1",
            "CRONGUARD_TEST_HOST": host,
            TAG: self._tag,
        }
