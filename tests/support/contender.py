"""Processes that fight for claims: `python -m tests.support.contender MODE NUMBER URL [FILE]`.

One process is started and forks the others, which all begin at the same instant; each says its outcome on a line.
`prepare`: create the tables. `once`: one try for one slot. `alone`: the same, each under a lock name of its own.
`count`: add to the number in FILE five times, each under a claim and otherwise unguarded. `hold`: claim, say so, and
never let go (NUMBER is 0: no fork).
"""

from __future__ import annotations

import os
import sys
import time

from cronguard.core.model import Claimed, Owner, Verdict
from cronguard.store.backend import SqlStore
from cronguard.store.opening import open_store
from tests.support.claims import OWNER, WITHIN_S, finish, request

TURNS = 5
PATIENCE_S = 60.0


def me() -> Owner:
    return OWNER._replace(pid=os.getpid())


def judge(owner: Owner, _run_id: str) -> Verdict:
    """By the process table; all contenders are on one machine and run no command."""
    try:
        os.kill(owner.pid, 0)
    except ProcessLookupError:
        return Verdict("dead")
    return Verdict("alive")


def once(store: SqlStore, lock: str = "job") -> str:
    answer = store.claim(request(owner=me(), lock=lock), judge, PATIENCE_S)
    if isinstance(answer, Claimed):
        time.sleep(0.2)  # so that others meet a running run
        store.finish(answer, finish(), WITHIN_S)
    return type(answer).__name__


def alone(store: SqlStore) -> str:
    return once(store, f"lock-{os.getpid()}")


def count(store: SqlStore, file: str) -> str:
    for turn in range(TURNS):
        wish = request(f"{os.getpid()}-{turn}", owner=me())
        deadline = time.monotonic() + PATIENCE_S
        answer = store.claim(wish, judge, PATIENCE_S)
        while not isinstance(answer, Claimed):
            assert time.monotonic() < deadline, answer
            time.sleep(0.01)
            answer = store.claim(wish, judge, PATIENCE_S)
        with open(file) as counter:
            number = int(counter.read())
        time.sleep(0.002)
        with open(file, "w") as counter:
            counter.write(str(number + 1))
        assert store.finish(answer, finish(), WITHIN_S)
    return "counted"


def hold(store: SqlStore) -> str:
    claim = store.claim(request("held", owner=me()), judge, PATIENCE_S)
    print(type(claim).__name__, flush=True)
    sys.stdin.read()
    return "let go"


def contend(mode: str, url: str, *rest: str) -> str:
    store = open_store(url)
    store.prepare(PATIENCE_S)
    outcome = {"once": once, "alone": alone, "count": count, "hold": hold, "prepare": prepared}[mode](store, *rest)
    store.close()
    return outcome


def prepared(_store: SqlStore) -> str:
    return "prepared"


def main(mode: str, number: str, url: str, *rest: str) -> int:
    if number == "0":
        print(contend(mode, url, *rest))
        return 0
    open_store(url).close()  # the backend is imported once, before the forks
    gate, opener = os.pipe()
    children = []
    for _ in range(int(number)):
        pid = os.fork()
        if pid == 0:
            os.close(opener)
            os.read(gate, 1)  # ends when the parent closes the other end
            os.write(1, f"{contend(mode, url, *rest)}\n".encode())
            os._exit(0)
        children.append(pid)
    os.close(opener)
    return max(os.waitpid(pid, 0)[1] for pid in children)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]) and 1)
