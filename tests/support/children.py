"""Commands that behave badly, as shell scripts. Each says `ready PID` once it is set up; tests wait for that."""

from __future__ import annotations

# Ignores TERM and so does all it starts.
STUBBORN = 'trap "" TERM; echo ready $$; while :; do sleep 0.05; done'
# Ends with success when told to stop.
POLITE = 'trap "exit 0" TERM; echo ready $$; sleep 60 & wait'
# A grandchild in a session of its own that ignores TERM.
SETSID_GRANDCHILD = "setsid sh -c 'trap \"\" TERM; echo ready $$; exec sleep 60' & sleep 60; true"
# Forked twice: its parent is gone at once, its session too.
DOUBLE_FORK = "(setsid sh -c '(trap \"\" TERM; echo ready $$; exec sleep 60) &' &) ; sleep 60; true"
# Stops itself: acts on TERM only after CONT.
STOPPED = 'echo ready $$; kill -STOP $$; sleep 60'
# Orphans nine processes that end together with it.
ORPHANS_ENDING = 'for i in 1 2 3 4 5 6 7 8 9; do (setsid sleep .02 &) ; done; sleep .02; exit 3'
# A daemon that holds stdout and says nothing.
HOLDS_PIPE = 'echo before; (setsid sleep 60 &) ; exit 5'
# A daemon that keeps nothing of ours.
DAEMON = 'setsid sleep 60 >/dev/null 2>&1 & sleep .1; exit 0'
