"""From a URL to a store, and what is said of one that is wrong (P9)."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from cronguard.errors import ConfigError
from cronguard.store.opening import masked, open_store

SECRET = "hunter2"


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("sqlite:/var/lib/x.db", "sqlite:/var/lib/x.db"),
        (f"postgresql://app:{SECRET}@db.example:5433/app", "postgresql://db.example:5433/app"),
        (f"postgres://app:{SECRET}@db.example/app?sslmode=require&password={SECRET}", "postgres://db.example/app"),
        (f"postgresql://app:{SECRET}@/app?host=/run/pg&schema=cg", "postgresql:///app?host=/run/pg&schema=cg"),
        (f"postgresql://app:x@{SECRET}@db/app", "..."),
        (f"postgresql://app:x/{SECRET}@db/app", "postgresql://..."),
        (f"mysql://app:{SECRET}@db/app", "mysql://..."),
        (f"host=db password={SECRET}", "..."),
    ],
)
def test_masked_url_shows_the_place_and_no_secret(url: str, shown: str) -> None:
    assert masked(url) == shown


@pytest.mark.parametrize(
    "url",
    [
        "",
        "cronguard.db",
        "sqlite:",
        "sqlite::memory:",
        "sqlite://host/x.db",
        f"host=db password={SECRET}",
        f"mysql://app:{SECRET}@db/app",
        f"postgresql://app:x@{SECRET}@db/app",
        f"postgresql://app:x/{SECRET}@db/app",
        f"postgresql://app:x?{SECRET}@db/app",
        f"postgresql://app:x#{SECRET}@db/app",
        f"postgresql://app:{SECRET}@db/app?schema=",
        f"postgresql://app:{SECRET}@db/app?schema=a-b",
        f"postgresql://app:{SECRET}@db/app?schema=1a",
        f"postgresql://app:{SECRET}@db/app?no_such_parameter=1",
        f"postgresql://app:%zz{SECRET}@db/app",
    ],
)
def test_bad_url_is_an_error_that_names_the_option_and_no_secret(url: str) -> None:
    with pytest.raises(ConfigError) as caught:
        open_store(url)
    assert "--store" in str(caught.value)
    assert SECRET not in str(caught.value)
    assert str(caught.value.__cause__) == "None"


def test_opening_connects_to_nothing_and_creates_nothing(tmp_path: Path) -> None:
    open_store(f"sqlite:{tmp_path}/x/y.db").close()
    assert not (tmp_path / "x").exists()
    open_store("postgresql://nobody@192.0.2.1:1/none?schema=cg&sslmode=disable").close()


def test_sqlite_url_with_an_empty_authority_is_an_absolute_path() -> None:
    assert open_store("sqlite:///var/lib/x.db").name == "sqlite:/var/lib/x.db"


def test_relative_path_is_settled_when_opened(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """FR-34: the directory may be gone when the run ends."""
    monkeypatch.chdir(tmp_path)
    store = open_store("sqlite:x.db")
    monkeypatch.chdir("/")
    assert store.name == f"sqlite:{tmp_path}/x.db"


def test_sqlite_store_loads_no_postgres_driver(tmp_path: Path) -> None:
    code = (
        "import sys\n"
        "from cronguard.store.opening import open_store\n"
        "from cronguard.store.worker import StoreWorker\n"
        "worker = StoreWorker(open_store(sys.argv[1])); worker.call(lambda store: store.prepare(5), 5)\n"
        "heavy = {'psycopg', 'asyncio', 'logging', 'dataclasses', 'hashlib', 'random', 'subprocess'}\n"
        "print(sorted(heavy & set(sys.modules)))"
    )
    told = subprocess.run([sys.executable, "-c", code, f"sqlite:{tmp_path}/x.db"], capture_output=True, text=True,
                          cwd=Path(__file__).parents[2], check=True, env=dict(os.environ))
    assert told.stdout.strip() == "[]"
