"""The compiled code is Python: without the compiler it gives the same bits, and Python's checks of
indices, overflow and division, which compiled code does without, find nothing.
"""

import json
import subprocess
import sys

from tests.helpers.project import ROOT, environment
from tests.helpers.uncompiled import predictions


def test_without_the_compiler__the_bits_are_the_same_and_nothing_warns():
    words = [sys.executable, "-W", "error", "-m", "tests.helpers.uncompiled"]
    process = subprocess.run(
        words, cwd=ROOT, env=environment(NUMBA_DISABLE_JIT="1"), capture_output=True, text=True
    )
    assert process.returncode == 0, process.stderr
    plain = json.loads(process.stdout)
    assert {name: got for name, got in predictions().items() if got != plain[name]} == {}
