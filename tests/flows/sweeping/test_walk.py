"""How many files a sweep walks through, from the command to the compiled step and back."""

import re
import subprocess
import sys

from tests.helpers.project import ROOT, environment


def test_walk__is_short_and_is_the_page_s():
    words = [sys.executable, "docs/walk.py"]
    found = subprocess.check_output(words, cwd=ROOT, env=environment(), text=True)
    files, back = found.split("\n\n")
    assert len(re.findall(r"^\d+\. ", files, re.M)) <= 18
    assert back.split().count("to") <= 2
    # python docs/walk.py --write puts it there
    assert found in (ROOT / "docs" / "architecture.md").read_text()
