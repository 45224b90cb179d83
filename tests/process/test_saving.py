"""A file that a person wrote is changed as a whole, with the old text beside it, or not at all."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from cronguard.errors import CronguardError
from cronguard.system.program import can_keep_runs, own_program
from cronguard.system.saving import save

STAMP = "20260120020000"


def test_old_text_stays_beside_the_new_one_with_the_same_mode(tmp_path: Path) -> None:
    file = tmp_path / "tab"
    file.write_bytes(b"old\n")
    file.chmod(0o640)
    backup = save(str(file), b"old\n", b"new\n", STAMP)
    assert backup == f"{file}.bak-{STAMP}"
    assert (file.read_bytes(), Path(backup).read_bytes()) == (b"new\n", b"old\n")
    assert {stat.S_IMODE(place.stat().st_mode) for place in (file, Path(backup))} == {0o640}
    assert sorted(path.name for path in tmp_path.glob("*tab*")) == ["tab", f"tab.bak-{STAMP}"]


def test_backup_never_takes_the_place_of_another(tmp_path: Path) -> None:
    file = tmp_path / "tab"
    for text in (b"1", b"2", b"3"):
        file.write_bytes(text)
        save(str(file), text, b"new", STAMP)
    assert sorted(path.read_bytes() for path in tmp_path.glob("tab.bak-*")) == [b"1", b"2", b"3"]


def test_backup_in_cron_d_is_hidden_from_cronie(tmp_path: Path) -> None:
    """cronie runs every file of a cron.d but those that begin with a dot."""
    folder = tmp_path / "cron.d"
    folder.mkdir()
    (folder / "tab").write_bytes(b"old")
    save(str(folder / "tab"), b"old", b"new", STAMP)
    assert sorted(os.listdir(folder)) == [f".tab.bak-{STAMP}", "tab"]


def test_link_stays_and_its_target_changes(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    target, link = tmp_path / "real" / "tab", tmp_path / "link"
    target.write_bytes(b"old")
    link.symlink_to(target)
    backup = save(str(link), b"old", b"new", STAMP)
    assert link.is_symlink()
    assert target.read_bytes() == b"new"
    assert backup.startswith(str(target))


def test_file_that_changed_meanwhile_is_left_alone(tmp_path: Path) -> None:
    file = tmp_path / "tab"
    file.write_bytes(b"newer")
    with pytest.raises(CronguardError, match="somebody else"):
        save(str(file), b"old", b"new", STAMP)
    assert [path.name for path in tmp_path.glob("*tab*")] == ["tab"]
    assert file.read_bytes() == b"newer"


def test_what_is_no_file_or_not_there_is_refused(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "fifo")
    with pytest.raises(CronguardError, match="not a regular file"):
        save(str(tmp_path / "fifo"), b"", b"new", STAMP)
    with pytest.raises(CronguardError, match="no such file"):
        save(str(tmp_path / "none"), b"", b"new", STAMP)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")
def test_owner_is_kept(tmp_path: Path) -> None:
    file = tmp_path / "tab"
    file.write_bytes(b"old")
    os.chown(file, 65534, 65534)
    backup = save(str(file), b"old", b"new", STAMP)
    assert {(place.stat().st_uid, place.stat().st_gid) for place in (file, Path(backup))} == {(65534, 65534)}


def test_program_is_the_one_that_was_called_by_its_link(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A link may lead to the live release, whose own path does not live long (FR-34)."""
    real, link = tmp_path / "release-1" / "cronguard", tmp_path / "cronguard"
    real.parent.mkdir()
    real.touch(0o755)
    link.symlink_to(real)
    monkeypatch.setattr("sys.argv", [os.path.relpath(str(link))])
    assert own_program() == str(link)
    monkeypatch.setattr("sys.argv", ["/somewhere/__main__.py"])
    monkeypatch.setattr("sys.executable", str(tmp_path / "python"))
    assert own_program() == str(link)
    link.unlink()
    assert own_program() is None


def test_root_and_strangers_can_keep_runs_and_nobody_cannot() -> None:
    assert can_keep_runs("root")
    assert can_keep_runs("no-such-user-anywhere")
    assert not can_keep_runs("nobody")
