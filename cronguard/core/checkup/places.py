"""Files and directories: can state be kept where it is to be kept, and can others read or change what is ours alone."""

from __future__ import annotations

from typing import List, Optional, Sequence

from cronguard.core.checkup.facts import Folder, Here, Private, Waiting
from cronguard.core.checkup.item import FAILURE, OK, SKIPPED, WARNING, Item, counted

LITTLE_BYTES = 100 << 20
TOO_LITTLE_BYTES = 10 << 20
FEW_INODES = 1000
TOO_FEW_INODES = 50
_PASSING_KINDS = ("tmpfs", "ramfs")
_OWN = "chmod 700 {path}"


def folder_items(name: str, folder: Folder, holds_store: bool, here: Here) -> List[Item]:
    """`holds_store`: a SQLite store is, or would be, in it."""
    where = folder.path if folder.exists else f"{folder.path} (made by the first run below {folder.nearest})"
    findings = [*_access(name, folder), *_room(name, folder), *_kind(name, folder, holds_store, here)]
    if findings:
        return findings
    mode = f", {folder.mode:04o}" if folder.exists else ""
    return [Item(name, OK, f"{where}: {folder.owner}'s{mode}, {_size(folder.free_bytes)} free on {folder.kind}")]


def _access(name: str, folder: Folder) -> List[Item]:
    path = folder.path
    elsewhere = "set CRONGUARD_STATE_DIR" if name == "state" else "name another file by --store"
    if folder.exists and not folder.is_ours:
        text = f"{path} belongs to {folder.owner}"
        return [Item(name, FAILURE, text, f"run as {folder.owner}, or {elsewhere}")]
    if not folder.writable:
        text = f"{path} cannot be used: {folder.nearest} is not a directory that we may write to"
        return [Item(name, FAILURE, text, elsewhere)]
    if not folder.exists:
        return []
    if folder.mode & 0o022:
        text = f"{path} can be written by others (mode {folder.mode:04o})"
        return [Item(name, FAILURE, text, _OWN.format(path=path))]
    if folder.mode & 0o055:
        text = f"{path} can be read by others (mode {folder.mode:04o}): outputs of jobs are in it"
        return [Item(name, WARNING, text, _OWN.format(path=path))]
    return []


def _room(name: str, folder: Folder) -> List[Item]:
    free, inodes = folder.free_bytes, folder.free_inodes
    if free < LITTLE_BYTES:
        state = FAILURE if free < TOO_LITTLE_BYTES else WARNING
        return [Item(name, state, f"{folder.path}: only {_size(free)} free", "free some space, or keep less history")]
    if inodes is not None and inodes < FEW_INODES:
        state = FAILURE if inodes < TOO_FEW_INODES else WARNING
        text = f"{folder.path}: only {counted(inodes, 'file')} more can be made (inodes)"
        return [Item(name, state, text, "delete small files on that file system")]
    return []


def _kind(name: str, folder: Folder, holds_store: bool, here: Here) -> List[Item]:
    """Where a file's locks mean nothing to others, or where the file itself does not last (FR-07, FR-85)."""
    if folder.is_shared:
        text = f"{folder.path} is on {folder.kind}, a network or FUSE file system: locks may not hold there"
        return [Item(name, WARNING, text, "use a local disk, or PostgreSQL for several machines")]
    if not holds_store:
        return []
    if folder.kind in _PASSING_KINDS:
        text = f"{folder.path} is on {folder.kind}: what was done is forgotten at the next boot"
        return [Item(name, WARNING, text, "use a disk, or PostgreSQL")]
    if folder.kind == "overlay" and here.is_container:
        text = f"{folder.path}: state is container-local: another container, or this one made anew, knows nothing of it"
        return [Item(name, WARNING, text, "mount a volume there, or use PostgreSQL for several containers")]
    return []


def waiting_items(waiting: Waiting) -> List[Item]:
    """What this host still has to tell the store and people."""
    items = []
    if waiting.reports:
        text = f"{counted(waiting.reports, 'finished run')} could not be brought into the store yet"
        items.append(Item("spool", WARNING, text, "the next run, check or doctor tries again; see the store's item"))
    if waiting.elsewhere:
        text = f"{counted(waiting.elsewhere, 'finished run')} wait for a store that is not this one"
        items.append(Item("spool", WARNING, text, "run doctor with that --store, or delete them below spool/"))
    if waiting.aside:
        text = f"{counted(waiting.aside, 'report')} could not be understood or were refused, and lie aside as *.bad"
        items.append(Item("spool", WARNING, text, "look at them below spool/, then delete them"))
    if waiting.messages:
        text = f"{counted(waiting.messages, 'alert')} could not be delivered yet"
        items.append(Item("spool", WARNING, text, "see `cronguard check --notify` for the channel that fails"))
    return items or [Item("spool", OK, "nothing waits to be delivered")]


def private_items(files: Optional[Sequence[Private]], config_problems: Sequence[str]) -> List[Item]:
    """The config file and what it names by `file:`; None: their file system did not answer."""
    items = [Item("config", FAILURE, problem, "cronguard config shows what it makes of the file")
             for problem in config_problems]
    if files is None:
        return [*items, Item("config", SKIPPED, "who may read it could not be looked at in time")]
    if not files and not items:
        return [Item("config", SKIPPED, "there is no config file")]
    items += [item for file in files for item in _private(file)]
    return items or [Item("config", OK, f"{', '.join(file.path for file in files)}: nobody else's to change or read")]


def _private(file: Private) -> List[Item]:
    where = file.path if file.what == "config" else f"{file.path} (named by {file.what})"
    if file.problem:
        return [Item("config", FAILURE, f"{where}: {file.problem}", "make it, or change what names it")]
    if not file.is_trusted:
        return [Item("config", FAILURE, f"{where} belongs to {file.owner}, who decides by it what we run",
                     f"chown it to root or to the user that runs the jobs: chown root {file.path}")]
    if file.open_folder:
        text = f"{where} can be replaced: others may write to {file.open_folder}"
        return [Item("config", FAILURE, text, f"chmod go-w {file.open_folder}")]
    if file.mode & 0o002:
        return [Item("config", FAILURE, f"{where} can be written by everybody", f"chmod o-w {file.path}")]
    if file.has_secret and file.mode & 0o004 and file.is_reachable:
        text = f"{where} holds a secret and can be read by everybody (mode {file.mode:04o})"
        return [Item("config", FAILURE, text, f"chmod 600 {file.path}, and change the secret")]
    if file.mode & 0o020:
        text = f"{where} can be written by its group (mode {file.mode:04o})"
        return [Item("config", WARNING, text, f"chmod g-w {file.path}")]
    return []


def _size(size_bytes: int) -> str:
    for unit, factor in (("GiB", 1 << 30), ("MiB", 1 << 20)):
        if size_bytes >= factor:
            return f"{size_bytes / factor:.0f} {unit}"
    return f"{size_bytes >> 10} KiB"
