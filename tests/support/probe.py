"""A program that says what it was given, and a cron that runs one line: what wrapped lines are compared by."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Dict, Mapping, NamedTuple, Optional

from cronguard.core.crontab import Job

PATIENCE_S = 60.0

# Set by every shell for itself, and one deeper where cronguard stands between two of them.
_OF_SHELLS = (b"SHLVL=", b"_=", b"PWD=", b"OLDPWD=")

_PROBE = """\
import os, sys
given = open("/proc/self/environ", "rb").read().split(b"\\0")  # before Python set LC_CTYPE (PEP 538)
own = [pair for pair in given if pair and not pair.startswith((b"CRONGUARD_", *%r))]
sys.stdout.write(ascii([os.fsencode(word) for word in sys.argv[1:]]) + "\\n")
sys.stdout.write(ascii(sys.stdin.buffer.read()) + "\\n")
sys.stdout.write(ascii(sorted(own)) + "\\n" + os.getcwd() + "\\n")
sys.stderr.write("to stderr: %%d\\n" %% len(sys.argv))
sys.exit(len(sys.argv) - 1)
"""


class Ran(NamedTuple):
    stdout: bytes
    stderr: bytes
    exit_code: int


def make_probe(folder: Path) -> Path:
    """A program `probe` in that folder: prints arguments, stdin, environment and directory; exits with argc - 1."""
    probe = folder / "probe"
    probe.write_text(f"#!{sys.executable} -IS\n{_PROBE % (_OF_SHELLS,)}")
    probe.chmod(0o755)
    return probe


def run_as_cron(job: Job, extra: Mapping[str, str], home: Path, path: Optional[str] = None) -> Ran:
    """What child_process() of do_command.c does: the settings' SHELL -c COMMAND in the home, an empty pipe as stdin
    unless there is a `%`, and no environment but cron's own and the settings."""
    environment: Dict[bytes, bytes] = {
        b"SHELL": b"/bin/sh", b"HOME": bytes(home), b"LOGNAME": b"root", b"USER": b"root",
        b"PATH": (path or "/usr/bin:/bin").encode(), **job.environment,
        **{name.encode(): value.encode() for name, value in extra.items()},
    }  # fmt: skip
    shell = environment[b"SHELL"]
    done = subprocess.run(
        [shell, b"-c", job.command],
        input=job.stdin or b"",
        env=environment,
        cwd=str(home),
        capture_output=True,
        timeout=PATIENCE_S,
        check=False,
    )
    return Ran(done.stdout, done.stderr, done.returncode)
