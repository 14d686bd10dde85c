"""The sweep of several tests, on the datasets of `small_store`, and the koco command for it."""

import subprocess

from flows.sweep.checks import checked
from koco_stream.runs.cost_model import DataSize
from koco_stream.runs.planner import Limits, plan
from tests.helpers.project import command, environment

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
    _, manifests, runs, _ = checked(spec, str(store))
    sizes = {
        m.dataset_hash: DataSize(m.n_rows, m.n_features, m.n_values) for m in manifests.values()
    }
    return (
        plan(runs, sizes, Limits(workers, 4 << 30, 0.001 * workers, cohort_runs=cohort_runs)),
        manifests,
    )


def koco(*words, cwd, **more):
    """Run `koco WORDS` in a process of its own."""
    return subprocess.run(
        command(*words), cwd=cwd, env=environment(**more), capture_output=True, text=True
    )
