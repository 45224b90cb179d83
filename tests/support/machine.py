"""A machine to throw away: this one's files, seen through a layer that takes every change and is gone afterwards.

A mount namespace with an overlay over `/` and a root changed into it, so that commands may write below /etc, /opt, /srv
and /var, add users and install crontabs as a reader of the README would. Processes, network and clock are this
machine's. Programs that would do something elsewhere (systemctl, kubectl, docker) are stand-ins that write down their
arguments; `python3 -m venv` and its pip too, for they would fetch packages.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path
from types import TracebackType
from typing import Dict, List, Mapping, Optional, Type

ROOT = Path(__file__).resolve().parents[2]
PATIENCE_S = 120.0
PATH = "/opt/stand-ins:/opt/cronguard/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
NOTED = "/var/noted"

# Arguments: a directory to mount on, then what else must be seen because it is a file system of its own.
_SCRIPT = """
set -e
mount -t tmpfs none "$1"
mkdir "$1/upper" "$1/work" "$1/root"
mount -t overlay none -o "lowerdir=/,upperdir=$1/upper,workdir=$1/work" "$1/root"
root=$1/root
shift
for place in /proc /sys /dev "$@"; do mount --rbind "$place" "$root$place"; done
exec chroot "$root" sh -c 'echo ready; exec sleep infinity'
"""
_PROGRAM = f"""\
#!{sys.executable}
import sys
sys.path.insert(0, {str(ROOT)!r})
from cronguard.cli.main import main
main()
"""
_NOTING = f"""\
#!/bin/sh
echo "${{0##*/}} $*" >> {NOTED}
"""
_VENV = """\
#!/bin/sh
[ "$1 $2" = "-m venv" ] || { echo "python3: only -m venv is to be had here: $*" >&2; exit 1; }
mkdir -p "$3/bin" && cp /opt/stand-ins/pip "$3/bin/pip"
"""
_PIP = """\
#!/bin/sh
[ "$1" = install ] && [ -f "$2/pyproject.toml" ] || { echo "pip: no checkout: $*" >&2; exit 1; }
cp /opt/stand-ins/program "$(dirname "$0")/cronguard"
"""
_STAND_INS = {
    "systemctl": _NOTING, "kubectl": _NOTING, "docker": _NOTING, "python3": _VENV, "pip": _PIP, "program": _PROGRAM,
}  # fmt: skip


class Machine:
    """`with Machine(folder) as machine:`. `root` is its `/`, as seen from outside; write what you like."""

    def __init__(self, folder: Path) -> None:
        place = folder / "machine"
        place.mkdir()
        command = ["unshare", "--mount", "--propagation", "private", "sh", "-c", _SCRIPT, "sh", str(place), *_others()]
        self._process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        assert self._process.stdout is not None
        assert self._process.stderr is not None
        if self._process.stdout.readline() != "ready\n":
            raise OSError(self._process.stderr.read())
        self._started: List[subprocess.Popen[str]] = []
        self.root = Path(f"/proc/{self._process.pid}/root")
        self.environment: Dict[str, str] = {"PATH": PATH, "HOME": "/root", "LC_ALL": "C.UTF-8", "TERM": "dumb"}
        for name, text in _STAND_INS.items():
            self.program(f"/opt/stand-ins/{name}", text)
        # Interpreters may lie where only root gets to.
        for folder_above in Path(os.path.realpath(sys.executable)).parents:
            inside = self.path(str(folder_above))
            inside.chmod(inside.stat().st_mode | 0o555)

    def __enter__(self) -> Machine:
        return self

    def __exit__(
        self, kind: Optional[Type[BaseException]], error: Optional[BaseException], trace: Optional[TracebackType]
    ) -> None:
        for process in (*self._started, self._process):
            process.terminate()
            process.communicate()

    def path(self, inside: str) -> Path:
        return self.root / inside.lstrip("/")

    def file(self, inside: str, text: str, mode: int = 0o644) -> None:
        path = self.path(inside)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        path.chmod(mode)

    def program(self, inside: str, text: str = '#!/bin/sh\necho "did ${0##*/} $*"\n') -> None:
        self.file(inside, text, 0o755)

    def install(self) -> None:
        """cronguard where the README puts it."""
        self.program("/opt/cronguard/bin/cronguard", _PROGRAM)

    def noted(self) -> List[str]:
        """What the stand-ins were called with."""
        path = self.path(NOTED)
        return path.read_text().splitlines() if path.exists() else []

    def words(self, cwd: str, user: str = "") -> List[str]:
        inside = ["nsenter", f"--target={self._process.pid}", "--mount", f"--root=/proc/{self._process.pid}/root"]
        as_user = [f"--setuid={user}", f"--setgid={user}"] if user else []
        return [*inside, *as_user, f"--wdns={cwd}"]

    def run(
        self,
        words: List[str],
        cwd: str = "/",
        env: Optional[Mapping[str, str]] = None,
        user: str = "",
        stdin: str = "",
    ) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [*self.words(cwd, user), *words],
            env={**self.environment, **(env or {})}, input=stdin, timeout=PATIENCE_S, check=False, text=True,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        )  # fmt: skip

    def start(self, words: List[str]) -> subprocess.Popen[str]:
        """Beside everything else, until the machine is gone."""
        started = subprocess.Popen(
            [*self.words("/"), *words], env=self.environment, stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        )  # fmt: skip
        self._started.append(started)
        return started


def lacking() -> Optional[str]:
    """Why such a machine cannot be had here."""
    if os.geteuid() != 0:
        return "only root can mount an overlay"
    missing = [name for name in ("unshare", "nsenter", "chroot", "crontab", "sqlite3") if shutil.which(name) is None]
    return f"not installed: {' '.join(missing)}" if missing else None


def _others() -> List[str]:
    """Places that are needed and lie on another file system than `/`."""
    device = os.stat("/").st_dev
    needed = (sys.prefix, sys.base_prefix, str(ROOT))
    return sorted({os.path.realpath(place) for place in needed if os.stat(place).st_dev != device})
