"""Small sweeps: made in this process, planned, or run by the koco command."""

import subprocess

import numpy as np

from flows.sweeping.launch import prepare_datasets, remember
from flows.sweeping.planning import limits_of
from flows.views.views import Views, runs_of
from koco_stream.runs.planner import Limits, plan
from storage.collecting import collect
from storage.preparing.prepare import prepare_file
from storage.store import open_store
from tests.helpers.project import command, environment
from tests.helpers.sweeps import checked, run_here, written

# of several tests, on the datasets of `small_store`
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
# on the dataset of `swept_once`
TWO_RUNS = """
[[dataset]]
name = "plain"
[[learner]]
name = "OGD"
step_size = 0.1
[[learner]]
name = "AdaGrad"
"""
# a minute's work, so that it is interrupted in the middle on any machine
MINUTE = """
name = "s"
[[dataset]]
name = "ill-conditioned"
[[learner]]
name = "OjaSON"
alpha = { powers_of_two = [-200, 200] }
clip = [1, 2, 3, 4, 5, 6, 7, 8]
sketch_rate = [1, 2, 3, 4]
"""


def prepared(tmp_path, name, X, y):
    """The store `tmp_path`/store, with a dataset of these rows and labels prepared in it."""
    np.savetxt(tmp_path / f"{name}.csv", np.column_stack([X, y]), delimiter=",")
    prepare_file(tmp_path / "store", name, [tmp_path / f"{name}.csv"], header=False)
    return tmp_path / "store"


def swept(tmp_path, text, name="tiny"):
    """The runs of a sweep with this text, made in this process; the store is `tmp_path`/store."""
    store = open_store(tmp_path / "store")
    sweep_on(store, written(tmp_path, f'name = "{name}"\n{text}', f"{name}.toml"))
    return runs_of(Views(store, [name]))


def sweep_on(store, spec):
    """The sweep of this file is run on the store, in this process."""
    sweep = prepare_datasets(checked(spec, store))
    cohorts = plan(sweep.runs, sweep.sizes, limits_of(store, "local", 1)).cohorts
    run_here(store, cohorts, sweep.sweep.name)
    collect(store)
    remember(store, sweep, sweep.runs)


def plan_for(store, tmp_path, workers, cohort_runs=4096):
    sweep = checked(written(tmp_path, SWEEP), store)
    limits = Limits(workers, 4 << 30, 0.001 * workers, cohort_runs=cohort_runs)
    return plan(sweep.runs, sweep.sizes, limits), sweep.manifests


def koco(*words, cwd, status=None, **more):
    """Run `koco WORDS` in a process of its own. With `status`, its exit status must be that."""
    done = subprocess.run(
        command(*words), cwd=cwd, env=environment(**more), capture_output=True, text=True
    )
    assert status in (None, done.returncode), (words, done.stdout, done.stderr)
    return done
