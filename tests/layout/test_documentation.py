"""The sessions of docs/layouts.md print what the document shows."""

from __future__ import annotations

import doctest
import re
from pathlib import Path

DOCUMENT = Path(__file__).resolve().parents[2] / "docs" / "layouts.md"


def test_sessions_of_the_document() -> None:
    blocks = re.findall(r"^```pycon\n(.*?)^```$", DOCUMENT.read_text("utf-8"), re.M | re.S)
    assert len(blocks) > 10
    session = doctest.DocTestParser().get_doctest("\n".join(blocks), {}, "layouts", None, 0)
    flags = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
    report: list[str] = []
    doctest.DocTestRunner(optionflags=flags).run(session, out=report.append)
    assert "".join(report) == ""
