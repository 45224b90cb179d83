"""The README as blocks of code: what a reader would copy, with the section and the comment that it stands under."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Dict, List, NamedTuple

TEXT = (Path(__file__).resolve().parents[2] / "README.md").read_text(encoding="utf-8")
_BLOCK = re.compile(r"^(?:<!-- (?P<note>[^\n]*) -->\n)?```(?P<language>[a-z]*)\n(?P<text>.*?)^```$", re.M | re.S)


class Block(NamedTuple):
    """`language` is the word behind the fence, empty for lines of a crontab. `note`: the comment right above."""

    section: str
    language: str
    note: str
    text: str

    @property
    def left_out(self) -> bool:
        """Not to be run, or run by CI itself as its first step."""
        return self.note.startswith(("not run: ", "ci: "))


def blocks() -> List[Block]:
    found = []
    for part in re.split(r"^(?=## )", TEXT, flags=re.M):
        section = part.partition("\n")[0][3:] if part.startswith("## ") else "At the top"
        for match in _BLOCK.finditer(part):
            found.append(Block(section, match["language"], match["note"] or "", match["text"]))
    return found


def sections() -> Dict[str, List[Block]]:
    """Sections that have blocks, in order."""
    grouped: Dict[str, List[Block]] = {}
    for block in blocks():
        grouped.setdefault(block.section, []).append(block)
    return grouped
