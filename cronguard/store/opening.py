"""From a `--store` URL to a store, without connecting to anything and without importing the backend that is not meant.

Secrets never leave here: errors and names show a URL without user, password and parameters.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, List, Tuple

from cronguard.errors import ConfigError, StoreError

if TYPE_CHECKING:
    from cronguard.store.backend import SqlStore

SCHEMA = "cronguard"
_POSTGRES = ("postgresql://", "postgres://")


def open_store(url: str, network_fs: bool = False) -> SqlStore:
    """The store that the URL names: `sqlite:PATH`, `postgresql://...` (`?schema=NAME` picks the schema).

    `network_fs`: the SQLite file is on a network or FUSE file system (only the caller can tell). ConfigError for a URL
    that cannot be understood.
    """
    if url.startswith("sqlite:"):
        from cronguard.store.sqlite import SqliteStore

        return SqliteStore(sqlite_path(url), network_fs)
    if url.startswith(_POSTGRES):
        conninfo, schema_name = without_schema(url)
        try:
            from cronguard.store.postgres import PostgresStore
        except ImportError as problem:
            why = f"store: {masked(url)}: psycopg cannot be loaded: {problem}"
            raise StoreError(why, "reinstall cronguard") from None
        return PostgresStore(conninfo, schema_name, masked(url))
    raise _bad(url, "not a store", "use sqlite:PATH or postgresql://HOST/DATABASE")


def masked(url: str) -> str:
    """The URL for people: scheme, host, port, database and schema, never a user or password, nothing of other texts."""
    if url.startswith("sqlite:"):
        return url
    scheme, separator, rest = url.partition("://")
    if not separator or "@" in rest.partition("@")[2]:
        return "..."
    if not url.startswith(_POSTGRES):
        return f"{scheme}://..."
    place, _, query = rest.partition("?")
    if "@" in query or "@" in place.partition("/")[2]:
        return f"{scheme}://..."
    told = [part for part in query.split("&") if part.startswith(("host=", "schema="))]
    return f"{scheme}://{place.rpartition('@')[2]}" + (f"?{'&'.join(told)}" if told else "")


def sqlite_path(url: str) -> str:
    """The path in `sqlite:PATH`; ConfigError for none."""
    path = url[len("sqlite:") :]
    if path.startswith("///"):  # the form with an empty authority
        path = path[2:]
    if not path or path.startswith("//") or ":memory:" in path:
        raise _bad(url, "no file named", "use sqlite:PATH, with a path on a local disk")
    if "\0" in path:
        raise _bad("sqlite:...", "a NUL in the path", "")
    return path


def without_schema(url: str) -> Tuple[str, str]:
    """What libpq is given, and our own parameter, which it would refuse; ConfigError for what it would misread."""
    authority_and_path, _, query = url.partition("?")
    authority, _, path = authority_and_path.partition("://")[2].partition("/")
    # libpq ends the user's part at the first @ and would print what follows it as a host name: part of a password.
    if authority.count("@") > 1 or "@" in path or "@" in query or "#" in authority:
        raise _bad(url, "a special character in user or password", "percent-encode it (@ is %40, / is %2F, ? is %3F)")
    schema_name = SCHEMA
    kept: List[str] = []
    for part in query.split("&") if query else []:
        name, _, value = part.partition("=")
        if name == "schema":
            schema_name = value
        else:
            kept.append(part)
    plain = schema_name.replace("_", "a")
    if not (plain.isascii() and plain.isalnum() and not plain[0].isdigit() and len(plain) <= 63):
        raise _bad(url, f"schema {schema_name!r}", "use letters, digits and _ only, at most 63")
    return authority_and_path + ("?" + "&".join(kept) if kept else ""), schema_name


def _bad(url: str, why: str, hint: str) -> ConfigError:
    return ConfigError([f"--store: {masked(url)}: {why}"], hint)
