"""How many files a sweep walks through, from the command to the compiled step and back."""

import re

from tests.helpers.project import ROOT


def test_walk__is_short():
    """The page of the architecture has it as traced, and a test keeps it current."""
    page = (ROOT / "docs" / "architecture.md").read_text()
    [walk] = re.findall(r"<!-- sweep: .*?<!-- end of sweep -->", page, re.S)
    files, _, back = walk.partition("A room calls back")
    assert 10 < len(set(re.findall(r"`(\w+/[\w/]+\.py)`", files))) <= 18
    assert back.split().count("to") <= 2
