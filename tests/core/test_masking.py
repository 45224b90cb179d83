"""What is hidden in stored and shown texts (promise P9)."""

from __future__ import annotations

from typing import List, Tuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cronguard.core.masking import is_secret_name, mask_argv, mask_endpoint, mask_text, mask_url

SECRET = "hunter2secretvalue"


@pytest.mark.parametrize(
    "argv",
    [
        ("pg_dump", f"--password={SECRET}", "db"),
        ("tool", "--token", SECRET),
        ("tool", "--api-key", SECRET, "--verbose"),
        ("tool", f"API_KEY={SECRET}"),
        ("env", f"PGPASSWORD={SECRET} with blanks {SECRET}", "psql"),
        ("psql", f"postgresql://app:{SECRET}@db.example/app"),
        ("psql", f"postgresql://app:{SECRET}/x?y#z@db.example/app"),
        ("psql", f"host=db password={SECRET} user=app"),
        ("psql", f"--dbname=postgresql://db/app?sslpassword={SECRET}"),
        ("git", "clone", f"https://{SECRET}@github.com/x/y"),
        ("curl", "-H", f"Authorization: Bearer {SECRET}", "https://x.example/"),
        ("curl", "-H", f"X-Auth-Token: {SECRET}"),
        ("curl", f"-u me:{SECRET}"),
        ("curl", "-u", f"me:{SECRET}"),
        ("mysql", f"-p{SECRET}", "db"),
        ("/usr/bin/mysqldump", f"-p{SECRET}"),
        ("redis-cli", "-a", SECRET),
        ("sh", "-c", f"PGPASSWORD={SECRET} pg_dump --token {SECRET} 'postgresql://a:{SECRET}@h/d' | gzip"),
        ("sh", "-c", f"curl -d '{{\"password\": \"{SECRET}\"}}' https://x.example"),
        (f"PGPASSWORD={SECRET} pg_dump",),
    ],
)
def test_secret_in_an_argument_list_is_hidden(argv: Tuple[str, ...]) -> None:
    assert SECRET not in " ".join(mask_argv(argv))


@pytest.mark.parametrize(
    "argv",
    [
        ("true",),
        ("tar", "-czf", "/backup/a.tgz", "--exclude=*.tmp", "/home"),
        ("tool", "--password-file", "/run/secrets/x", "--no-password"),
        ("ls", "-p", "/tmp"),
        ("git", "log", "--author", "me", "--sort-key=name"),
        ("curl", "https://x.example:8443/path/@user?page=2"),
        ("psql", "postgresql://app@db.example:5432/app"),
    ],
)
def test_harmless_argument_list_stays_as_it_is(argv: Tuple[str, ...]) -> None:
    assert mask_argv(argv) == argv


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("postgresql://app:s3@db:5432/x", "postgresql://app:***@db:5432/x"),
        ("https://hc-ping.com/5b1a0f6e-1111-2222-3333-444455556666/start", "https://hc-ping.com/***/start"),
        ("https://kuma.example/api/push/AbC?status=up", "https://kuma.example/api/push/***?status=up"),
        ("https://x.example/a?token=q&page=2", "https://x.example/a?token=***&page=2"),
        ("sqlite:/var/lib/x.db", "sqlite:/var/lib/x.db"),
        ("env:DSN", "env:DSN"),
    ],
)
def test_url_keeps_its_place_and_loses_its_secrets(url: str, shown: str) -> None:
    assert mask_url(url) == shown


@pytest.mark.parametrize("url", ["https://hc-ping.com/short", "https://u:p@hc-ping.com/short?x#y", "https://hc-ping.com"])
def test_endpoint_shows_its_host_only(url: str) -> None:
    assert mask_endpoint(url) == "https://hc-ping.com/***"


@pytest.mark.parametrize(
    "text", ["AKIAABCDEFGHIJKLMNOP", "ghp_" + "a1" * 18, "xoxb-1234567890-abc", "eyJhbGciOiJI.eyJzdWIi.abc"]
)
def test_known_token_shapes_are_hidden_anywhere(text: str) -> None:
    assert text not in mask_text(f"failed with {text} in it")


@pytest.mark.parametrize("name", ["--password", "PGPASSWORD", "api_key", "AWS_SECRET_KEY", "--auth", "db.passwd"])
def test_telling_name_is_a_secrets(name: str) -> None:
    assert is_secret_name(name)


@pytest.mark.parametrize("name", ["--author", "--password-file", "--no-password", "--keyboard", "PATH", "monkey"])
def test_other_name_is_not(name: str) -> None:
    assert not is_secret_name(name)


PIECES = st.sampled_from(
    ["--token", "password=", "secret", "://", "http", "https://u:p@h/x", "@", ":", "=", "'", '"', " ", "-p",
     "Authorization:", "a", "1", "/", "?key=", "&", "***", "mysql", "\n", "AKIAABCDEFGHIJKLMNOP"]
)  # fmt: skip
TEXTS = st.lists(PIECES, max_size=8).map("".join)


@given(TEXTS)
def test_masking_a_text_twice_is_masking_it_once(text: str) -> None:
    once = mask_text(text)
    assert mask_text(once) == once


@given(st.lists(TEXTS, max_size=4))
def test_masking_an_argument_list_twice_is_masking_it_once(argv: List[str]) -> None:
    once = mask_argv(argv)
    assert len(once) == len(argv)
    assert mask_argv(once) == once


@given(TEXTS)
def test_masking_a_url_twice_is_masking_it_once(url: str) -> None:
    once = mask_url(url)
    assert mask_url(once) == once
