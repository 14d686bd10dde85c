"""The sweep of several tests, on the datasets of `small_store`, and the koco command for it."""

import subprocess

from koco_stream.runs.planner import Limits, plan
from tests.helpers.project import command, environment
from tests.helpers.sweeps import checked

SWEEP = """
name = "try"
[[dataset]]
name = "sparse"
positive_class = 1
order = "shuffled"
order_seeds = 2
[[dataset]]
name = "real"
[[learner]]
name = "OjaSON"
sketch_size = [0, 3]
sketch_start = "random"
alpha = [0.5, 4]
fit_intercept = [true, false]
[[learner]]
name = "AdaGrad"
step_size = [0.1, 1]
"""


def plan_for(store, tmp_path, workers, cohort_runs=4096):
    spec = tmp_path / "try.toml"
    spec.write_text(SWEEP)
    sweep = checked(spec, store)
    limits = Limits(workers, 4 << 30, 0.001 * workers, cohort_runs=cohort_runs)
    return plan(sweep.runs, sweep.sizes, limits), sweep.manifests


def koco(*words, cwd, **more):
    """Run `koco WORDS` in a process of its own."""
    return subprocess.run(
        command(*words), cwd=cwd, env=environment(**more), capture_output=True, text=True
    )
