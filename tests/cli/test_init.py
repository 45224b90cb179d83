"""`init`: what it says, on both stores. What it does there and for whom is the store's (tests/contract/test_rights)."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from cronguard.cli.main import execute
from cronguard.store import schema
from cronguard.store.dialect import Statement
from cronguard.store.opening import open_store
from tests.support.versions import EARLIER, make_version

NOW = schema.VERSION


@pytest.fixture(params=["sqlite", "postgres"])
def url(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    found: str = request.getfixturevalue(f"{request.param}_url")
    monkeypatch.setenv("CRONGUARD_STORE", found)
    return found


def _change_version(url: str, version: int) -> None:
    with closing(open_store(url)) as store:
        store._changed(Statement("UPDATE meta SET value = ? WHERE name = 'schema_version'", (str(version),)), 10)


def test_init_says_what_it_made_and_what_was_there(url: str, capfd: pytest.CaptureFixture[str]) -> None:
    for expected in (f"created the schema (version {NOW})", f"the schema is current (version {NOW})"):
        assert execute(["init"]) == 0
        out, err = capfd.readouterr()
        assert (out.partition(": ")[2], err) == (f"{expected}\n", "")
    assert execute(["status"]) == 0


@pytest.mark.parametrize("version", EARLIER)
def test_init_says_from_which_version_it_upgraded(
    url: str, version: int, capfd: pytest.CaptureFixture[str]
) -> None:
    make_version(version, url)
    assert execute(["init"]) == 0
    assert capfd.readouterr().out.endswith(f": upgraded the schema from version {version} to {NOW}\n")


def test_init_refuses_a_newer_schema(url: str, capfd: pytest.CaptureFixture[str]) -> None:
    assert execute(["init"]) == 0
    _change_version(url, 99)
    capfd.readouterr()
    for words in (["init"], ["init", "--sql"]):
        assert execute(words) == 125
        out, err = capfd.readouterr()
        assert out == ""
        assert err.endswith(f"its schema has version 99, this cronguard knows {NOW}; update cronguard on this host\n")


def test_sql_is_printed_and_nothing_is_touched(url: str, capfd: pytest.CaptureFixture[str]) -> None:
    assert execute(["init", "--sql"]) == 0
    lines = capfd.readouterr().out.splitlines()
    assert lines[-1] == "COMMIT;"
    assert sum(line.startswith("BEGIN") for line in lines) == 1
    assert execute(["init"]) == 0
    assert "created the schema" in capfd.readouterr().out
    assert execute(["init", "--sql"]) == 0
    assert capfd.readouterr().out == f"-- the schema is current (version {NOW}): nothing to do\n"


def test_grant_on_postgres(postgres_url: str, capfd: pytest.CaptureFixture[str]) -> None:
    """The superuser stands in for a runner: it has all rights already, and granting them again is harmless."""
    assert execute(["init", "--store", postgres_url, "--grant", "postgres", "--grant", "postgres"]) == 0
    assert capfd.readouterr().out.splitlines()[1] == "granted what a runner needs to postgres"
    assert execute(["init", "--sql", "--store", postgres_url, "--grant", "postgres"]) == 0
    out = capfd.readouterr().out
    assert out.count("GRANT ") == 4
    assert "CREATE" not in out


@pytest.mark.parametrize(
    ("words", "code", "named"),
    [
        (["--grant", "postgrse"], 2, "--grant: 'postgrse': no such role"),
        (["--grant", "postgrse", "--sql"], 2, "did you mean postgres?"),
        (["--grant", ""], 2, "--grant: '': not a role's name"),
        (["--grants", "postgres"], 2, "did you mean --grant?"),
    ],
)
def test_mistake_is_one_line(
    postgres_url: str, words: list, code: int, named: str, capfd: pytest.CaptureFixture[str]
) -> None:
    assert execute(["init", "--store", postgres_url, *words]) == code
    out, err = capfd.readouterr()
    assert (out, err.count("\n"), named in err) == ("", 1, True)


def test_sqlite_file_that_cannot_be_made_is_named(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "file").touch()
    assert execute(["init", "--store", f"sqlite:{tmp_path}/file/x.db"]) == 125
    assert f"{tmp_path}/file/x.db" in capfd.readouterr().err


def test_sql_for_sqlite_keeps_readers_from_waiting(sqlite_url: str, capfd: pytest.CaptureFixture[str]) -> None:
    """A file made by hand is found current, so that no run would switch it to WAL any more."""
    assert execute(["init", "--sql", "--store", sqlite_url]) == 0
    lines = capfd.readouterr().out.splitlines()
    assert lines[1] == ".bail on"
    path = Path(sqlite_url.partition(":")[2])
    path.parent.mkdir()
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.executescript("\n".join(lines[2:]))
        assert connection.execute("PRAGMA journal_mode").fetchall() == [("wal",)]
    assert execute(["init", "--store", sqlite_url]) == 0
    assert "is current" in capfd.readouterr().out
