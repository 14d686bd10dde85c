"""How many files a sweep walks through, from the command to the compiled step and back."""

import re
import subprocess
import sys

from tests.helpers.project import ROOT, environment


def test_walk__is_short_and_is_the_page_s():
    words = [sys.executable, "docs/walk.py"]
    done = subprocess.run(words, cwd=ROOT, env=environment(), capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    files, back = done.stdout.split("\n\n")
    assert len(files.splitlines()) <= 18
    assert len(re.findall(" to ", back)) <= 2
    page = (ROOT / "docs" / "architecture.md").read_text()
    assert done.stdout in page, "python docs/walk.py --write puts it into the page"
