"""A Python in which some packages are not installed."""

import subprocess
import sys
from collections.abc import Collection, Sequence

from tests.helpers.project import environment

WITHOUT = """
import sys

class Missing:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {modules!r}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)

sys.meta_path.insert(0, Missing())
sys.argv = {words!r}
{code}
"""


def python(
    code: str, modules: Collection[str] = (), words: Sequence[str] = ("koco",)
) -> subprocess.CompletedProcess[str]:
    """Run code in a Python that lacks some modules."""
    text = WITHOUT.format(modules=set(modules), words=list(words), code=code)
    return subprocess.run(
        [sys.executable, "-c", text], env=environment(), capture_output=True, text=True
    )
