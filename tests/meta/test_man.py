"""The manual page says what the command line takes, is readable, and travels with the wheel."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import zipfile
from importlib import import_module
from pathlib import Path

import pytest

from cronguard.cli.manual import EXIT_STATUS, manual
from cronguard.cli.tree import Node, command_line
from tests.support.stores import unavailable

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "contrib" / "cronguard.1"
README = (ROOT / "README.md").read_text(encoding="utf-8")
LEAVES = [node for node in command_line().walk() if not node.verbs]


def shown() -> str:
    """The page without its markup."""
    text = "\n".join(manual())
    for name, sign in (("\\fB", ""), ("\\fI", ""), ("\\fR", ""), ("\\&", ""), ("\\-", "-"), ("\\(aq", "'")):
        text = text.replace(name, sign)
    return text


def test_page_is_what_the_command_line_is_now() -> None:
    assert PAGE.read_text() == "\n".join(manual()) + "\n", f"python -m cronguard.cli.manual > {PAGE.relative_to(ROOT)}"


@pytest.mark.parametrize("node", LEAVES, ids=lambda node: " ".join(node.path))
def test_every_command_is_there_with_its_options_and_examples(node: Node) -> None:
    _, found, behind = shown().partition(f".SS cronguard {' '.join(node.path)}\n")
    assert found
    own = re.split(r"\n\.S[SH] ", behind)[0]
    for option in node.options:
        line = f".TP\n{', '.join(option.flags)}{f' {option.metavar}' if option.metavar else ''}\n"
        assert line in (shown() if option.shared else own)
    for example in node.examples:
        assert example in own


def test_exit_codes_and_variables_are_those_of_the_readme() -> None:
    codes = re.findall(r"^\| ([0-9][0-9n,+ -]*) \|", README.partition("## Exit codes")[2], re.MULTILINE)
    assert [code for code, _ in EXIT_STATUS] == codes[: len(EXIT_STATUS)]
    section = README.partition("\n## Environment\n")[2].partition("\n## ")[0]
    variables = set(re.findall(r"`(CRONGUARD_[A-Z_]+)`", section))
    assert variables == set(re.findall(r"CRONGUARD_[A-Z_]+", shown().partition(".SH ENVIRONMENT")[2]))


def test_page_formats_without_a_warning() -> None:
    groff = shutil.which("groff")
    if groff is None:
        unavailable("no groff")
    done = subprocess.run([groff, "-man", "-Tutf8", "-ww", str(PAGE)], capture_output=True, check=True)
    assert done.stderr == b""
    assert b"CRONGUARD" in done.stdout


def test_wheel_is_told_to_bring_the_page() -> None:
    toml = import_module("tomllib" if sys.version_info >= (3, 11) else "tomli")
    wheel = toml.loads((ROOT / "pyproject.toml").read_text())["tool"]["hatch"]["build"]["targets"]["wheel"]
    assert wheel["shared-data"] == {str(PAGE.relative_to(ROOT)): "share/man/man1/cronguard.1"}


@pytest.mark.usual
def test_wheel_brings_the_page(tmp_path: Path) -> None:
    """What `pip install` puts where `man` finds it: share/man of the environment."""
    try:
        import_module("hatchling")
    except ImportError:
        unavailable("no hatchling")
    build = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(tmp_path)]
    subprocess.run(build, cwd=ROOT, check=True, capture_output=True)
    (wheel,) = tmp_path.glob("*.whl")
    with zipfile.ZipFile(wheel) as content:
        (name,) = [name for name in content.namelist() if name.endswith(".data/data/share/man/man1/cronguard.1")]
        assert content.read(name) == PAGE.read_bytes()
