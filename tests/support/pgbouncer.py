"""A PgBouncer of our own in transaction mode, with a pool too small for everybody, in front of a given server."""

from __future__ import annotations

import os
import shutil
import subprocess
import time
from typing import Dict, Optional

from tests.support.postgres import free_port, private_directory, unprivileged

POOL_SIZE = 2
START_S = 20.0

_CONFIG = """
[databases]
* = host={host} port={port} user={user}
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = {listen_port}
unix_socket_dir =
auth_type = any
pool_mode = transaction
default_pool_size = {pool_size}
max_client_conn = 300
server_login_retry = 1
ignore_startup_parameters = extra_float_digits
"""


def pgbouncer_binary() -> Optional[str]:
    return shutil.which("pgbouncer", path=f"{os.environ.get('PATH', '')}:/usr/sbin:/usr/local/sbin")


class Pooler:
    """Started with `start`, killed with `stop`, ended with `remove`."""

    def __init__(self, server: Dict[str, str]) -> None:
        """`server`: host, port and user of the server behind it."""
        self.port = free_port()
        self.directory = private_directory("cg-pgb-")
        self._config = self.directory / "pgbouncer.ini"
        self._config.write_text(_CONFIG.format(listen_port=self.port, pool_size=POOL_SIZE, **server))
        self._config.chmod(0o644)
        self._process: Optional[subprocess.Popen[bytes]] = None

    def dsn(self, database: str) -> str:
        return f"postgresql://anybody@127.0.0.1:{self.port}/{database}"

    def start(self, database: str) -> None:
        import psycopg

        binary = pgbouncer_binary()
        assert binary is not None
        with open(self.directory / "log", "ab") as log:
            self._process = subprocess.Popen(
                unprivileged([binary, str(self._config)]), stdin=subprocess.DEVNULL, stdout=log, stderr=log, cwd="/"
            )
        deadline = time.monotonic() + START_S
        while True:
            try:
                psycopg.connect(self.dsn(database), connect_timeout=2).close()
                return
            except psycopg.OperationalError:
                if self._process.poll() is not None or time.monotonic() > deadline:
                    raise AssertionError((self.directory / "log").read_text()) from None
                time.sleep(0.02)

    def stop(self) -> None:
        """As a crash would; `start` again is possible."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None

    def remove(self) -> None:
        self.stop()
        shutil.rmtree(self.directory, ignore_errors=True)
