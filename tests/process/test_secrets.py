"""Where secrets may come from, and what is said when they do not (P9)."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from cronguard.errors import ConfigError
from cronguard.system.secrets import resolve


def test_text_stands_for_itself() -> None:
    assert resolve("https://example.com/x", {}, "--ping") == "https://example.com/x"


@pytest.mark.parametrize("content", [b"s3cret", b"s3cret\n", b"s3cret\r\n", b"  s3cret \nsecond line\n"])
def test_first_line_of_a_file(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "url").write_bytes(content)
    assert resolve(f"file:{tmp_path / 'url'}", {}, "--ping") == "s3cret"


def test_variable() -> None:
    assert resolve("env:URL", {"URL": "s3cret\n"}, "--ping") == "s3cret"


@pytest.mark.parametrize("content", [b"", b"\n", b" \nhidden", b"hidden\xff\n", b"hidden" * 20_000])
def test_unusable_file_is_named_and_its_content_is_not(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "url"
    path.write_bytes(content)
    with pytest.raises(ConfigError) as caught:
        resolve(f"file:{path}", {}, "--ping")
    assert str(caught.value).startswith(f"--ping: file '{path}': ")
    assert "hidden" not in str(caught.value)


def test_missing_file_directory_and_variable_are_named(tmp_path: Path) -> None:
    for text, told in (
        (f"file:{tmp_path}/none", f"--store: file '{tmp_path}/none': no such file or directory"),
        (f"file:{tmp_path}", f"--store: file '{tmp_path}': not a regular file"),
        ("file:", "--store: file '': no such file or directory"),
        ("file:a\0b", "--store: file 'a\\x00b': not a path"),
        ("env:NONE", "--store: environment variable NONE: not set or empty"),
    ):
        with pytest.raises(ConfigError) as caught:
            resolve(text, {}, "--store")
        assert str(caught.value) == told


def test_fifo_without_a_writer_does_not_hold_the_job_up(tmp_path: Path) -> None:
    os.mkfifo(str(tmp_path / "fifo"))
    with pytest.raises(ConfigError, match="not a regular file"):
        resolve(f"file:{tmp_path / 'fifo'}", {}, "--ping")
