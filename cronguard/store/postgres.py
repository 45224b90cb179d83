"""The store of many machines: leases in PostgreSQL, in short transactions.

No transaction stays open while a command runs; an advisory *transaction* lock serialises claims of one lock name, the
rows decide. Every transaction says its isolation level in words (a role may default to SERIALIZABLE) but not READ
WRITE, which would override the operator's `default_transaction_read_only`. A lost connection is met by starting the
transaction again: for a claim that begins with the same advisory lock, behind which a COMMIT may still be under way.
"""

from __future__ import annotations

from typing import Callable, List, NoReturn, Sequence, TypeVar

import psycopg

from cronguard.core.advisory import advisory_key
from cronguard.core.checkpoints import CheckpointSet
from cronguard.core.model import ClaimRequest
from cronguard.core.names import did_you_mean, shown
from cronguard.core.queue import Reserved, Take
from cronguard.errors import ConfigError, NoRights, StoreDown, StoreError, UsageError
from cronguard.store import installing, schema, taking
from cronguard.store.backend import SqlStore
from cronguard.store.dialect import Collision, Dialect, NoSchema, Result, Session, Statement
from cronguard.store.installing import Installed, Standing
from cronguard.store.postgres_connection import (
    COLLISION,
    NO_RIGHTS,
    NO_TABLES,
    OLD_TABLES,
    READ_ONLY,
    RETRY,
    Link,
    TimeIsUp,
    meaning,
)
from cronguard.store.waiting import Deadline, Pauses

T = TypeVar("T")

DIALECT = Dialect(
    now="clock_timestamp()",  # now() stands still within a transaction
    lease_end="clock_timestamp() + make_interval(secs => ?)",
    next_fence="greatest(fence + 1, (extract(epoch FROM clock_timestamp()) * 1000)::bigint)",
    for_update="FOR UPDATE",
    for_key_share="FOR KEY SHARE",
    among="= ANY (ARRAY({0}))",  # IN would be a join, which without fresh statistics reads the whole table
    each="json_array_elements(?::json) AS each(value)",
    cell="value->>{0}",
    instant_cell="(value->>{0})::timestamptz",
)

# A server that nobody reaches for so long is down, however much time a caller would give a busy one.
UNREACHABLE_S = 10.0
LOCK_WAIT_MS = 2000
# A claimer that is stopped in the middle must not be in the way of an owner's renewal for longer than this.
IDLE_MS = 2000
TRANSACTION_MS = 5000
TRANSACTION_TIMEOUT_SINCE = 170000

# No lock names: those have no NUL.
_DDL_LOCK = "\0ddl"
_INCIDENTS_LOCK = "\0incidents"
_CHECKPOINT_LOCK = "\0checkpoint:"
_TAKE_LOCK = "\0take:"


class PostgresStore(SqlStore):
    """See contract.py. `name` is the URL as people may see it."""

    leased = True
    dialect = DIALECT

    def __init__(self, conninfo: str, schema_name: str, name: str) -> None:
        self.name = name
        self.warnings = []
        self._schema = schema_name
        self._prepared = False
        try:
            self._link = Link(conninfo)
        except psycopg.Error:
            # libpq's text is not passed on: it may quote a piece of a password.
            raise ConfigError([f"--store: {name}: not a PostgreSQL URL that libpq understands"]) from None

    def prepare(self, within_s: float) -> None:
        if self._prepared:
            return
        deadline = Deadline(within_s)
        (result,) = self._read([Statement(schema.VERSION_SQL)], deadline)
        version = schema.version_of(result)
        if not schema.is_current(version, self.name):
            try:
                self._repeat(self._migrate, deadline, LOCK_WAIT_MS * 10)
            except NoRights as problem:
                lacking = f"version {version}, not {schema.VERSION}" if version else "no tables"
                raise NoRights(f"{problem.message}, and the schema has {lacking}", problem.hint) from None
        self._prepared = True

    def install(self, roles: Sequence[str], within_s: float) -> Installed:
        def work(session: Session) -> Installed:
            before = self._migrate(session)
            self._refuse_unknown(session, roles)
            grants = [Statement(sql) for sql in installing.grants(self._schema, roles)]
            (*_, lacking) = session.run([*grants, installing.roles_falling_short(self._schema, roles)])
            short = tuple(str(values[0]) for values in lacking.rows)
            if not set(short).isdisjoint(roles):
                raise NoRights(f"store: {self.name}: no right to grant", self._for_the_owner(roles))
            return Installed(before, schema.VERSION, short)

        return self._repeat(work, Deadline(within_s), LOCK_WAIT_MS * 10)

    def script(self, roles: Sequence[str], within_s: float) -> List[str]:
        def work(session: Session) -> Standing:
            self._refuse_unknown(session, roles)
            return self._standing(session)

        standing = self._repeat(work, Deadline(within_s))
        return installing.postgres_script(self._schema, standing, roles, self._key(_DDL_LOCK))

    def close(self) -> None:
        self._link.close()

    def _alone(self, name: str) -> Statement:
        """Waits for whoever else is in a transaction under that name. A statement of its own: what is read in the same
        one would be older than the end of the waiting."""
        return Statement("SELECT pg_advisory_xact_lock(?)", (self._key(name),))

    def _key(self, name: str) -> int:
        return advisory_key(self._schema, name)

    def _before_claim(self, request: ClaimRequest) -> List[Statement]:
        return [self._alone(request.lock)]

    def _before_sync(self) -> List[Statement]:
        return [self._alone(_INCIDENTS_LOCK)]

    def _before_set(self, wish: CheckpointSet) -> List[Statement]:
        return [self._alone(f"{_CHECKPOINT_LOCK}{wish.job}\0{wish.name}")]

    def _take_in(self, session: Session, take: Take) -> List[Reserved]:
        # Behind an earlier try of the same take, which may still be under way.
        return taking.take_by_locks(session, take, self.dialect, self._alone(f"{_TAKE_LOCK}{take.take_id}"))

    def _read(self, statements: Sequence[Statement], deadline: Deadline) -> List[Result]:
        try:
            return self._repeat(lambda session: session.run(statements, last=True), deadline)
        except NoSchema:
            self._refuse_if_hidden(deadline)
            return [Result([], 0) for _ in statements]

    def _refuse_if_hidden(self, deadline: Deadline) -> None:
        """A schema that this role may not use looks as if it had no tables; that must not read as an empty store."""
        hidden = Statement(
            "SELECT 1 FROM pg_namespace WHERE nspname = ? AND NOT has_schema_privilege(nspname, 'USAGE')",
            (self._schema,),
        )
        (result,) = self._repeat(lambda session: session.run([hidden], last=True), deadline)
        if result.rows:
            raise NoRights(f"store: {self.name}: no right to use schema {self._schema}", self._for_the_owner())

    def _transact(self, work: Callable[[Session], T], deadline: Deadline) -> T:
        try:
            return self._repeat(work, deadline)
        except NoSchema:
            missing = f"store: {self.name}: no tables in schema {self._schema}"
            raise StoreError(missing, self._for_the_owner()) from None

    def _repeat(self, work: Callable[[Session], T], deadline: Deadline, patience_ms: int = LOCK_WAIT_MS) -> T:
        """The transaction, again and again while what is in the way may pass (FR-63), until the time is up."""
        pauses = Pauses(deadline)
        unreachable = Deadline(UNREACHABLE_S)
        while True:
            try:
                return self._once(work, deadline, patience_ms)
            except TimeIsUp:
                failure = f"no answer within {deadline.within_s:.0f} s"
            except psycopg.Error as problem:
                if meaning(problem, self._link) != RETRY:
                    self._fail(problem)
                failure = self._told(problem)
            finally:
                self._link.roll_back()
            if (self._link.is_lost and unreachable.over) or not pauses.take():
                raise StoreDown(f"store: {self.name}: {failure}")

    def _once(self, work: Callable[[Session], T], deadline: Deadline, patience_ms: int) -> T:
        self._link.ensure(deadline)
        session = _PostgresSession(self._link, self._begin(deadline, patience_ms), deadline)
        value = work(session)
        session.commit()
        return value

    def _begin(self, deadline: Deadline, patience_ms: int) -> List[Statement]:
        left_ms = max(100, int(deadline.left_s * 1000))
        settings = {
            # pg_temp last, or a pooled session's temporary table of the same name would be taken for ours.
            "search_path": f'"{self._schema}", pg_temp',
            "lock_timeout": str(min(patience_ms, left_ms)),
            "statement_timeout": str(left_ms),
            "idle_in_transaction_session_timeout": str(IDLE_MS),
        }
        if self._link.server_version >= TRANSACTION_TIMEOUT_SINCE:
            settings["transaction_timeout"] = str(max(TRANSACTION_MS, patience_ms))
        return [
            Statement("BEGIN ISOLATION LEVEL READ COMMITTED"),
            *(Statement(f"SET LOCAL {name} = {value}") for name, value in settings.items()),
        ]

    def _migrate(self, session: Session) -> int:
        """Under a lock, since CREATE ... IF NOT EXISTS is not atomic (FR-62); somebody else may have been first.

        Which version there was."""
        session.run([self._alone(_DDL_LOCK)])
        standing = self._standing(session)
        missing = installing.creation(self._schema, standing)
        if missing and standing.owner:
            why = f"store: {self.name}: only role {standing.owner} may change its tables"
            raise NoRights(why, self._for_the_owner())
        if missing:
            session.run([Statement(sql) for sql in missing])
        return standing.version

    def _standing(self, session: Session) -> Standing:
        """StoreError for a schema that is newer than this program."""
        schemas, tables = session.run([
            Statement("SELECT 1 FROM pg_namespace WHERE nspname = ?", (self._schema,)),
            Statement(
                "SELECT pg_get_userbyid(relowner), pg_has_role(relowner, 'USAGE') FROM pg_class"
                " WHERE oid = to_regclass(?)",
                (f'"{self._schema}".meta',),
            ),
        ])
        if not tables.rows:
            return Standing(bool(schemas.rows), 0)
        ((owner, is_ours),) = tables.rows
        version = schema.version_of(session.run([Statement(schema.VERSION_SQL)])[0])
        schema.is_current(version, self.name)
        return Standing(True, version, "" if is_ours else str(owner))

    def _refuse_unknown(self, session: Session, roles: Sequence[str]) -> None:
        (result,) = session.run([Statement("SELECT rolname FROM pg_roles WHERE left(rolname, 3) <> 'pg_'")])
        known = [str(values[0]) for values in result.rows]
        for role in roles:
            if role not in known:
                hint = did_you_mean(role, known).lstrip("; ") or f"CREATE ROLE {installing.quoted(role)} LOGIN makes it"
                raise UsageError(f"--grant: {shown(role)}: no such role in {self.name}", hint)

    def _for_the_owner(self, roles: Sequence[str] = ()) -> str:
        """The hint for a right that is missing: what its owner has to type, secrets left out."""
        import shlex

        whom = [word for role in roles or [self._link.user] if role for word in ("--grant", role)]
        words = ["cronguard", "init", "--store", self.name, *whom]
        return f"an owner must run: {' '.join(map(shlex.quote, words))}"

    def _fail(self, problem: psycopg.Error) -> NoReturn:
        """An error that trying again does not help."""
        kind = meaning(problem, self._link)
        if kind == COLLISION:
            raise Collision from problem
        if kind == NO_TABLES:
            raise NoSchema from problem
        if kind == OLD_TABLES:
            raise StoreError(
                f"store: {self.name}: its tables have an older version: {self._told(problem)}", schema.BRING_UP
            ) from problem
        if kind == READ_ONLY:
            raise StoreDown(f"store: {self.name}: the server is read-only") from problem
        if kind == NO_RIGHTS:
            raise NoRights(f"store: {self.name}: {self._told(problem)}", self._for_the_owner()) from problem
        raise StoreError(f"store: {self.name}: {self._told(problem)}") from problem

    def _told(self, problem: psycopg.Error) -> str:
        """The server's own words on one line, without the statement that it quotes below, and without the password."""
        text = problem.diag.message_primary or " ".join(str(problem).split())
        password = self._link.password
        return text.replace(password, "***") if password else text


class _PostgresSession:
    """A transaction that begins with its first message and can end with its last."""

    def __init__(self, link: Link, begin: List[Statement], deadline: Deadline) -> None:
        self._link = link
        self._begin = begin
        self._deadline = deadline
        self._ended = False

    def run(self, statements: Sequence[Statement], last: bool = False) -> List[Result]:
        begin, self._begin = self._begin, []
        end = [Statement("COMMIT")] if last else []
        results = self._link.send([*begin, *statements, *end], self._deadline)
        self._ended = last
        return results[len(begin) : len(begin) + len(statements)]

    def commit(self) -> None:
        if not self._ended:
            self._link.send([Statement("COMMIT")], self._deadline)
            self._ended = True
