"""README, "In your own transaction": its blocks, run as they stand against PostgreSQL, through commits and crashes."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import threading
import uuid
from contextlib import closing
from pathlib import Path
from typing import Any, Dict, Iterator, List

import psycopg
import pytest

from cronguard.core.queue import NewItem
from cronguard.store.opening import open_store
from tests.support.cronguard import Started, cronguard, environment, until
from tests.support.postgres import server_binaries
from tests.support.stores import Sql, unavailable

pytestmark = pytest.mark.usual

README = (Path(__file__).parents[2] / "README.md").read_text(encoding="utf-8")
WITHIN_S = 20.0


def block(name: str) -> str:
    """The code after `<!-- test: NAME -->`."""
    found = re.search(rf"<!-- test: {name} -->\n```\w+\n(.*?)```", README, re.DOTALL)
    assert found is not None, name
    return found[1]


class Database:
    """Of our own, for the blocks say `cronguard.ledger`: with cronguard's tables, and one of the job's."""

    def __init__(self, dsn: str) -> None:
        self.dsn = dsn
        self.env = environment(CRONGUARD_STORE=dsn, DATABASE_URL=dsn)
        with closing(open_store(dsn)) as store:
            store.prepare(WITHIN_S)
            store.add_items("mails", [NewItem("a"), NewItem("b")], WITHIN_S)
        self.run("create table balances (id int, amount int); insert into balances values (7, 1000)")

    def connection(self) -> Any:
        return psycopg.connect(self.dsn, autocommit=True)

    def run(self, text: str) -> None:
        with closing(self.connection()) as connection:
            connection.execute(text)

    def one(self, query: str) -> Any:
        with closing(self.connection()) as connection:
            return connection.execute(query).fetchone()[0]

    def state(self) -> Any:
        """The effect and the mark, which must go together."""
        return self.one("select amount from balances"), self.one("select count(*) from cronguard.ledger")


@pytest.fixture
def database(admin_dsn: str, sql: Sql) -> Iterator[Database]:
    name = f"own_{uuid.uuid4().hex[:12]}"
    sql(f"CREATE DATABASE {name} TEMPLATE template0")
    yield Database(f"{admin_dsn.rpartition('/')[0]}/{name}")
    sql(f"DROP DATABASE {name} WITH (FORCE)")


@pytest.fixture
def psql_env(database: Database) -> Dict[str, str]:
    """With the server's own psql first in PATH."""
    folder = server_binaries()
    own = folder is not None and (folder / "psql").exists()
    if not own and shutil.which("psql") is None:
        unavailable("no psql: install the Debian package postgresql-client")
    path = f"{folder}{os.pathsep}{os.environ['PATH']}" if own else os.environ["PATH"]
    return {**database.env, "PATH": path}


UNTOUCHED, CHARGED = (1000, 0), (900, 1)


def test_effect_and_mark_commit_together_once(database: Database) -> None:
    connection = database.connection()
    connection.execute(block("sql").replace("commit;", ""))
    pid = connection.info.backend_pid
    database.run(f"select pg_terminate_backend({pid})")
    with pytest.raises(psycopg.OperationalError):
        connection.execute("commit")
    until(lambda: not database.one(f"select count(*) from pg_stat_activity where pid = {pid}"), "the crash")
    assert database.state() == UNTOUCHED
    for _ in range(2):
        database.run(block("sql"))
        assert database.state() == CHARGED


def test_somebody_else_who_is_at_it_is_waited_for(database: Database) -> None:
    with closing(database.connection()) as first:
        first.execute(block("sql").replace("commit;", ""))
        second = threading.Thread(target=database.run, args=(block("sql"),))
        second.start()
        blocked = f"select count(*) from pg_stat_activity where {first.info.backend_pid} = any(pg_blocking_pids(pid))"
        until(lambda: database.one(blocked), "the second to wait")
        first.execute("commit")
        second.join(WITHIN_S)
    assert database.state() == CHARGED


def test_mark_of_own_sql_and_of_once_are_the_same(database: Database) -> None:
    database.run(block("sql"))
    done = cronguard("-v", "once", "invoice:4711", "--job", "billing", "--", "touch", "charged", env=database.env)
    assert (done.returncode, Path("charged").exists()) == (0, False)
    assert "not begun: it is done" in done.stderr
    forget = ("items", "forget", "billing", "--ledger", "invoice:4711")
    assert cronguard(*forget, env=database.env).stdout == "forgotten=1\n"
    assert cronguard("once", "invoice:4711", "--job", "billing", "--", "true", env=database.env).returncode == 0
    database.run(block("sql"))
    assert database.state() == (900, 1), "and the other way round"


def test_python_function_charges_once_and_not_at_all_when_its_transaction_fails(database: Database) -> None:
    names: Dict[str, Any] = {}
    exec(block("python"), names)
    charge = names["charge"]
    with closing(psycopg.connect(database.dsn)) as connection:
        with connection.transaction(force_rollback=True):
            assert charge(connection, 4711)
        assert database.state() == UNTOUCHED
        assert [charge(connection, 4711) for _ in range(2)] == [True, False]
        connection.rollback()
        assert database.state() == CHARGED


def test_shell_script_charges_once_whatever_is_in_the_key(database: Database, psql_env: Dict[str, str]) -> None:
    def charge() -> int:
        env = {**psql_env, "invoice": "o'neill's; --"}
        return subprocess.run(["sh", "-c", block("shell")], env=env, stderr=subprocess.DEVNULL, check=False).returncode

    database.run("alter table balances rename to missing")
    assert charge() == 3
    database.run("alter table missing rename to balances")
    assert database.state() == UNTOUCHED
    assert [charge(), charge()] == [0, 0]
    assert database.state() == CHARGED
    assert database.one("select effect_key from cronguard.ledger") == "invoice:o'neill's; --"


def test_item_is_in_the_outbox_if_its_transaction_committed(database: Database) -> None:
    for end, expected in (("rollback", 2), ("commit", 3), ("commit", 3)):
        database.run(f"begin; {block('outbox')} {end}")
        assert database.one("select count(*) from cronguard.items") == expected
    worked = cronguard("items", "work", "mails", "--group", "example.com", "--", "echo", "{key}", "{payload}",
                       env=database.env)
    assert worked.stdout == 'welcome:4711 {"to": "a@example.com"}\ndone=1 failed=0 left=2\n'


def settling(*first: str) -> List[str]:
    """A handler that takes 100 and settles its item, in one transaction; `first`: shell commands before that."""
    Path("settle.sql").write_text(f"""\\set ON_ERROR_STOP
begin;
update balances set amount = amount - 100;
{block("settle")}
\\if :ROW_COUNT
commit;
\\else
rollback;
\\endif
""")
    item = '-v key="$CRONGUARD_ITEM_KEY" -v token="$CRONGUARD_ITEM_TOKEN"'
    return ["--", "sh", "-c", "; ".join([*first, f'psql --no-psqlrc -qf settle.sql {item} "$DATABASE_URL"'])]


def test_command_settles_its_item_in_its_own_transaction(database: Database, psql_env: Dict[str, str]) -> None:
    """Killed with its worker right after the commit, it is not done again."""
    killing = settling()
    killing[-1] += "; kill -9 $(sed -n 's/^PPid:\\t//p' /proc/$PPID/status) $PPID"
    assert cronguard("items", "work", "mails", "--batch", "1", *killing, env=psql_env).returncode == -9
    assert database.one("select amount from balances") == 900
    worked = cronguard("items", "work", "mails", *settling(), env=psql_env)
    assert (worked.returncode, worked.stdout) == (0, "done=1 failed=0 left=0\n")
    assert database.one("select amount from balances") == 800


def test_late_writer_changes_nothing(database: Database, psql_env: Dict[str, str]) -> None:
    """FR-69: its item was taken again meanwhile; neither the item nor the balance is touched."""
    late = settling("echo in", "until test -e go; do sleep 0.02; done")
    with Started("items", "work", "mails", "--batch", "1", *late, env=psql_env) as working:
        assert working.line() == "in"
        database.run("update cronguard.items set token = token + 1 where status = 'reserved'")
        Path("go").touch()
        ended = working.end()
    assert ended.stdout.endswith("done=1 failed=0 left=1 lost=1\n"), "the other item"
    assert "item_lost job=mails item=a" in ended.stderr
    assert database.one("select status from cronguard.items where item_key = 'a'") == "reserved"
    assert database.one("select amount from balances") == 900
