"""The compiled code is Python: without the compiler it gives the same bits, and Python's checks of
indices, overflow and division, which compiled code does without, find nothing. And what one process
has compiled, the next one finds.
"""

import json
import shutil
import subprocess
import sys
import warnings

import numpy as np
import scipy.sparse

from tests.golden.cases import COMBINATIONS
from tests.helpers.examples import EXAMPLES, make, width_of
from tests.helpers.project import ROOT, environment


def predictions():
    """By learner and parameters: predictions of 30 rounds, and of three rows afterwards. Some rows
    are orthogonal, the same, or empty.
    """
    draw = np.random.default_rng(0)
    X = draw.standard_normal((30, 5)) * (draw.random((30, 5)) < 0.7)
    X[5:14] = np.vstack([np.eye(5), X[:3], np.zeros(5)])
    rows, labels = scipy.sparse.csr_array(X), np.where(X.sum(1) >= 0.0, 1.0, -1.0)
    found = {}
    for name, base in EXAMPLES.items():
        for more in ({}, *COMBINATIONS.get(name, [])):
            if width_of(name, base | more) != width_of(name, base):
                continue  # compiled anew
            model = make(name, **more, seed=3)
            progressive = model.progressive(rows, labels)
            found[f"{name} {more}"] = [*progressive.tolist(), *model.predict(rows[:3]).tolist()]
    return found


def test_without_the_compiler__the_bits_are_the_same_and_nothing_warns():
    words = [sys.executable, "-W", "error", "-m", "tests.learners.test_compiling"]
    process = subprocess.run(
        words, cwd=ROOT, env=environment(NUMBA_DISABLE_JIT="1"), capture_output=True, text=True
    )
    assert process.returncode == 0, process.stderr
    plain = json.loads(process.stdout)
    assert {name: got for name, got in predictions().items() if got != plain[name]} == {}


OF_A_PROCESS = """
import koco_stream, numpy as np
from koco_stream.learners.scan import scan_rows
from nlms import NLMS
learners = (koco_stream.OGD, NLMS)
for learner in learners:
    print(learner(0.1).progressive(np.ones((3, 2)), np.ones(3)).tolist())
scans = [learner.compiled(scan_rows, "step", "full") for learner in learners]
print(sum(sum(one.stats.cache_hits.values()) for one in scans))
print(sum(sum(one.stats.cache_misses.values()) for one in scans))
"""


def test_second_process__compiles_nothing_and_a_changed_helper_is_compiled_anew(tmp_path):
    """Also where it is called by a learner in a file of a user's."""
    library, cache = tmp_path / "koco_stream", tmp_path / "cache"
    shutil.copytree(ROOT / "koco_stream", library, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "examples" / "nlms.py", tmp_path)

    def run():
        """The predictions of two learners, what came from the cache and what was compiled."""
        words = [sys.executable, "-c", OF_A_PROCESS]
        env = environment(PYTHONPATH=str(tmp_path), KOCO_CACHE=str(cache))
        return subprocess.check_output(words, cwd=tmp_path, env=env, text=True).splitlines()

    (*first, hits, misses), again = run(), run()
    assert (hits, misses) == ("0", "2")
    assert again == [*first, "2", "0"]
    for unused in ("engine/cohort.py", "learners/linear/ons.py", "learners/__init__.py"):
        with (library / unused).open("a") as file:
            file.write("# a comment\n")
    assert run() == again
    helper = (library / "losses.py").read_text()
    (library / "losses.py").write_text(helper.replace("return 2.0 * rest", "return 3.0 * rest"))
    *other, hits, misses = run()
    assert (hits, misses) == ("0", "2")
    assert not set(other) & set(first)


if __name__ == "__main__":
    # The hash under the random numbers is meant to wrap around.
    warnings.filterwarnings("ignore", "overflow", RuntimeWarning, "koco_stream.numerics.random")
    print(json.dumps(predictions()))
