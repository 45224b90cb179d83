"""cronguard with one of its protections taken away, so that the storm's checker can be seen to fail.

`python tests/faults/weakened.py claim run ...`: nobody is ever in the way of a claim. `deadline`: the keeper is never
told when the lease ends, so a stopped supervisor's command outlives its claim.
"""

from __future__ import annotations

import sys
from math import inf

from cronguard.cli.main import main
from cronguard.store import claiming
from cronguard.store.flock import HostLock
from cronguard.system.supervisor import _Supervision


def take_away(protection: str) -> None:
    if protection == "claim":
        claiming.obstacle = lambda *_: None  # type: ignore[assignment]
        HostLock.try_acquire = lambda *_: True  # type: ignore[assignment,method-assign]
    elif protection == "deadline":
        _Supervision._deadlines = lambda *_: (inf, inf)  # type: ignore[method-assign]
    else:
        raise SystemExit(f"no such protection: {protection}")


if __name__ == "__main__":
    take_away(sys.argv[1])
    main(sys.argv[2:])
