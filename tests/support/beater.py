"""The storm's command: says when it begins, every few milliseconds that it is still there, and when it ends.

`python -I -S beater.py FOLDER NAME SECONDS CODE [t] [c] [h]`. Its trace is FOLDER/traces/NAME, a line an event. As long
as FOLDER/holds/NAME exists it does not end by itself. `t`: it ignores TERM. `c`: it has a child in a session of its
own, which ignores TERM and stays a second longer; `h`: the hold keeps that too. All processes of a run share a flock on
FOLDER/witness, which the kernel ends with the last of them: whoever does not get it has met somebody, and says so.
"""

import fcntl
import os
import signal
import sys
import time

BEAT_S = 0.005
CHILD_LONGER_S = 1.0
# A bound for everybody, should the storm itself die.
LONGEST_S = 45.0


def now() -> float:
    return time.clock_gettime(time.CLOCK_BOOTTIME)


def beat(trace: int, seconds: float, hold: str) -> None:
    began = now()
    while now() < began + seconds or (now() < began + LONGEST_S and os.path.exists(hold)):
        os.write(trace, b"beat %.6f\n" % now())
        time.sleep(BEAT_S)


def main() -> None:
    folder, name, seconds, code, *flags = sys.argv[1:]
    trace = os.open(f"{folder}/traces/{name}", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    witness = os.open(f"{folder}/witness", os.O_RDWR | os.O_CREAT, 0o600)
    run_id, fence = os.environ["CRONGUARD_RUN_ID"], os.environ["CRONGUARD_FENCE"]
    os.write(trace, f"begin {now():.6f} {os.getppid()} {run_id} {fence}\n".encode())
    try:
        fcntl.flock(witness, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.write(trace, b"clash %.6f\n" % now())
    hold = f"{folder}/holds/{name}"
    if "t" in flags or "c" in flags:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    if "c" in flags and os.fork() == 0:
        os.setsid()
        beat(trace, float(seconds) + CHILD_LONGER_S, hold if "h" in flags else "")
        os._exit(0)
    if "t" not in flags:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
    beat(trace, float(seconds), hold)
    os.write(trace, f"end {now():.6f} {code}\n".encode())
    os._exit(int(code))


main()
