"""A crontab with a guard before each command, and back: bytes in, bytes and remarks out.

What cron hands to the shell becomes, in single quotes, the argument of `cronguard run NAME --cron "..." --shell --`,
and that hands the same bytes to the same shell. Only quotes are touched, and each becomes `'\\''`. This commutes with
cron's own reading: cron drops backslashes only before `%` and (Debian's) before another backslash, and of what is
inserted neither follows one. So `%` and `\\%`, with the standard input behind the first one, stay where they are, and
it matters not which cron reads the line. A command is never taken apart to run it without a shell: a script without
`#!`, a builtin or a `$` would then mean something else.

What cannot be kept is left as it is, and said: never guessed. Promises not to raise, whatever the bytes; that wrapping
again changes nothing; that `unwrap` gives back every byte (but for a final newline, without which cron takes no line).
Sources: do_command.c, entry.c and cron.h (MAX_COMMAND) of Debian's cron 3.0pl1 and of cronie.
"""

from __future__ import annotations

import re
from typing import Dict, List, NamedTuple, Optional, Tuple

from cronguard.core.crons import CRONS, Cron
from cronguard.core.crontab import Job, Line, parse_crontab
from cronguard.core.guard_plans import USUAL_SHELL, Plan, Remark, Wishes, named, plan_for
from cronguard.core.guards import command_end, guarding, one_blank, original, quoted, told_schedule

_LONGEST_COMMAND = CRONS["debian"].longest_command  # of cronie, too, for long; who knows which one comes next
_TO_SHELL = b"--shell --"
_TO_NAMED_SHELL = b'-- "$SHELL" -c'
_SAFE = re.compile(r"/[A-Za-z0-9_./+,:@=-]+")


class Wrapped(NamedTuple):
    """The new text. `guarded`: lines that now have a guard. `already`: had one. `left`: have none."""

    data: bytes
    remarks: Tuple[Remark, ...]
    guarded: int = 0
    already: int = 0
    left: int = 0


def unsafe_program(path: str) -> Optional[str]:
    """Why a path cannot stand in a crontab as it is; None if it can."""
    if not path.startswith("/"):
        return "not an absolute path"
    return None if _SAFE.fullmatch(path) else "has characters that a crontab line would need quotes for"


def wrap(data: bytes, flavour: Optional[str], wishes: Wishes) -> Wrapped:
    """The crontab with every line guarded that can be."""
    crontab = parse_crontab(data, flavour)
    remarks: List[Remark] = []
    plans: List[Plan] = []
    taken: Dict[str, Optional[bytes]] = dict(wishes.taken)
    already = left = 0
    for line in crontab.lines:
        if line.kind == "unparsable":
            remarks.append(Remark(line.number, f"not understood, left as it is: {line.problem}"))
        if line.job is None:
            continue
        names = guarding(line.job)
        if names is not None:
            taken.update((name, None) for name in names)
            remarks += _drifted(line, line.job)
            already += 1
            continue
        plan = plan_for(line, line.job, wishes)
        if isinstance(plan, str):
            remarks.append(Remark(line.number, f"left as it is: {plan}"))
            left += 1
        else:
            plans.append(plan)
    new, too_long = _guarded(named(plans, taken), wishes)
    remarks += too_long
    if data and not data.endswith(b"\n"):
        remarks.append(Remark(len(crontab.lines), "the last line had no newline, so cron passed it over: one is added"))
    text = b"".join(new.get(line.number, line.raw) for line in crontab.lines)
    return Wrapped(_ended(text), tuple(sorted(remarks)), len(new), already, left + len(too_long))


def unwrap(data: bytes, flavour: Optional[str], cron: Cron) -> Wrapped:
    """The crontab with the guards taken away that `wrap` has put there. `guarded`: how many those were."""
    crontab = parse_crontab(data, flavour)
    remarks: List[Remark] = []
    pieces: List[bytes] = []
    count = 0
    for line in crontab.lines:
        job = line.job
        before = None if job is None else original(job, cron)
        if job is None or before is None:
            pieces.append(line.raw)
            if job is not None and guarding(job) is not None:
                remarks.append(Remark(line.number, "left as it is: guarded, but not in the form that wrap writes"))
        else:
            pieces.append(line.raw[: job.written_at] + before + line.raw[job.written_at + len(job.written) :])
            count += 1
    return Wrapped(b"".join(pieces), tuple(remarks), guarded=count)


def _guarded(plans: List[Plan], wishes: Wishes) -> Tuple[Dict[int, bytes], List[Remark]]:
    """The new lines by number, and what to say of those that would be too long for cron."""
    new: Dict[int, bytes] = {}
    too_long: List[Remark] = []
    for plan in plans:
        written = _written(plan, wishes)
        if len(written) > _LONGEST_COMMAND:
            why = f"left as it is: cron takes {_LONGEST_COMMAND} bytes of a command, and it would have {len(written)}"
            too_long.append(Remark(plan.line.number, why + "; move it into a script and wrap again"))
        else:
            new[plan.line.number] = plan.line.raw[: plan.job.written_at] + written + b"\n"
    return new, too_long


def guard_words(plan: Plan, wishes: Wishes) -> str:
    """The guard's own words, which need no quotes in any shell but those that are there."""
    words = [f'{wishes.program} run {plan.name} --cron "{one_blank(plan.job.schedule)}"']
    words += [f"--timezone {plan.zone}"] if plan.zone else []
    words += [f"--timeout {wishes.timeout}"] if wishes.timeout else []
    return " ".join(words)


def _written(plan: Plan, wishes: Wishes) -> bytes:
    end = command_end(plan.job.written, wishes.cron)
    own = guard_words(plan, wishes) + (" --stdin inherit" if end < len(plan.job.written) else "")
    to_shell = _TO_SHELL if plan.shell == USUAL_SHELL else _TO_NAMED_SHELL
    return b" ".join((own.encode("ascii"), to_shell, quoted(plan.job.written[:end]))) + plan.job.written[end:]


def _drifted(line: Line, job: Job) -> List[Remark]:
    """A schedule that was changed in one of the two places where a guarded line has it."""
    told = told_schedule(job)
    if told is None or told == one_blank(job.schedule):
        return []
    return [Remark(line.number, f'--cron says "{told}", but the line is started at "{one_blank(job.schedule)}"')]


def _ended(data: bytes) -> bytes:
    return data if not data or data.endswith(b"\n") else data + b"\n"
