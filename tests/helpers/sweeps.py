"""Small sweeps: made in this process, planned, cut, or run by the koco command; their tables."""

import subprocess
from dataclasses import replace

import numpy as np
import pyarrow.parquet as pq
import pytest
import scipy.sparse

from cluster.executors import Executor
from flows.sweeping.checks import read_checked
from flows.sweeping.launch import prepare_datasets, remember
from flows.sweeping.planning import limits_of
from flows.sweeping.request import SweepRequest
from flows.views.views import Views, runs_of
from koco_stream.engine.checkpoint import save_cohort
from koco_stream.engine.cohort import run_cohort
from koco_stream.engine.result_file import result_path
from koco_stream.engine.warm_up import needed, warm_up
from koco_stream.runs.cost_model import DataSize
from koco_stream.runs.planner import Limits, plan
from koco_stream.runs.run import Cohort, Run
from koco_stream.runs.schemas import RUNS
from koco_stream.streams.manifest import load_manifest
from koco_stream.streams.reader import StreamReader
from koco_stream.streams.stream import Stream
from storage.collecting import collect
from storage.preparing.prepare import prepare_file
from storage.results import read_curves, read_runs
from storage.store import open_store
from tests.helpers.examples import EXAMPLES
from tests.helpers.project import command, environment
from tests.helpers.refusal import refusal

MEASURED = [column.name for column in RUNS if column.measured]


def written(folder, text, name="try.toml"):
    """A file of this text in the folder."""
    path = folder / name
    path.write_text(text)
    return path


def checked(spec, store):
    """The sweep of this file on this store, checked."""
    return read_checked(SweepRequest(str(spec), str(store)))


def sizes_of(manifests):
    """The sizes of prepared datasets, by dataset hash."""
    return {manifest.dataset_hash: DataSize.of(manifest) for manifest in manifests}


def stream_of(store, name, *more, **given):
    """A stream of the dataset of this name in the store."""
    return Stream(name, load_manifest(store, name).dataset_hash, *more, **given)


def dense_rows(store, name="x", *more, **given):
    """The rows of a stream as a dense matrix, and their labels."""
    rows, labels = StreamReader(store, stream_of(store, name, *more, **given)).whole()
    indices = rows.indices if rows.index_stride else np.tile(rows.indices, rows.n_rows)
    shape = (rows.n_rows, rows.n_features)
    return scipy.sparse.csr_array((rows.values, indices, rows.indptr), shape).toarray(), labels


def prepared_text(folder, text, name="a.txt", **options):
    """A file of this text prepared as dataset "x": its manifest, its rows, its labels."""
    manifest = prepare_file(folder / "store", "x", written(folder, text, name), **options)
    assert load_manifest(folder / "store", "x") == manifest
    return manifest, *dense_rows(folder / "store")


def refused_text(folder, text, name="a.csv", **options):
    """The message with which a file of this text is refused."""
    return refusal(None, prepared_text, folder, text, name, **options).replace(f"{folder}/", "")


def compiled(runs, manifests):
    """Compile what these runs on these datasets need."""
    warm_up(needed(runs, {one.dataset_hash: one.value_type for one in manifests}))


def run_here(store, cohorts, sweep="try", block_rows=4096):
    """Run cohorts one after the other in this process; their receipts."""
    receipts = []
    Executor(None, str(store), sweep, receipts.append, block_rows).run(cohorts)
    return receipts


def tables(store):
    """Runs and curves, without what may differ from one execution to the next."""
    runs = read_runs(store).drop_columns(MEASURED).sort_by("run_id").to_pylist()
    curves = read_curves(store).sort_by([("run_id", "ascending"), ("t", "ascending")])
    return runs, curves.to_pylist()


def random_source(path, seed):
    """A LIBSVM file of 300 rows, each with six of fifty features."""
    draw = np.random.default_rng(seed)
    rows = [np.sort(draw.choice(50, 6, replace=False)) + 1 for _ in range(300)]
    path.write_text(
        "".join(
            f"{t % 2} " + " ".join(f"{j}:{draw.random():.4f}" for j in row) + "\n"
            for t, row in enumerate(rows)
        )
    )
    return path


def wide_store(folder, rows):
    """A store with one regression set of thirty features."""
    X = np.random.default_rng(0).standard_normal((rows, 30))
    np.savetxt(folder / "real.csv", np.c_[X, X.sum(1)], delimiter=",", fmt="%.4f")
    prepare_file(folder / "store", "real", folder / "real.csv")
    return folder / "store"


def cohort_on(store, learners, name="real", order="shuffled"):
    """A cohort of (learner, more than its example's parameters, seed)."""
    stream = stream_of(store, name, order, 3 if order == "shuffled" else None)
    runs = tuple(
        Run.of(stream, learner, {**EXAMPLES[learner], **more}, seed)
        for learner, more, seed in learners
    )
    return Cohort(stream, runs, 1.0)


def all_classes(cohort):
    """The same cohort on a stream of all classes."""
    stream = replace(cohort.stream, multiclass="one-vs-rest")
    return replace(
        cohort, stream=stream, runs=tuple(replace(r, stream=stream) for r in cohort.runs)
    )


def results_of(store, cohort):
    """The rows of the cohort's result file, each with its windows and predictions if it has any.
    The files are taken away: the cohort can be run again.
    """
    path = result_path(store, cohort).path
    rows = pq.read_table(path).drop_columns(MEASURED).to_pylist()
    path.unlink()
    for name in ("windows", "predictions"):
        table = store / "results" / name / path.name
        if table.exists():
            for row in rows:
                of_run = [("run_id", "=", row["run_id"])]
                row[name] = pq.read_table(table, filters=of_run).to_pylist()
            table.unlink()
    return rows


def undisturbed(store, cohort):
    """The rows of the result file of the cohort; it is taken away."""
    run_cohort(str(store), "try", cohort)
    return results_of(store, cohort)


def die_after(monkeypatch, store, cohort, saves, block_rows):
    """Run the cohort, with a checkpoint after each block, in a process that dies after so many:
    here by an exception that nothing catches.
    """
    done = []

    def saved(where, rounds, *states):
        save_cohort(where, rounds, *states)
        done.append(rounds)
        if len(done) == saves:
            raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr("koco_stream.engine.cohort.save_cohort", saved)
        patched.setattr("koco_stream.engine.cohort.SAVING_SHARE", np.inf)
        with pytest.raises(KeyboardInterrupt):
            run_cohort(str(store), "try", replace(cohort, checkpoint_seconds=0.0), block_rows)


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
    spec = written(tmp_path, f'name = "{name}"\n{text}', f"{name}.toml")
    sweep = prepare_datasets(checked(spec, store))
    cohorts = plan(sweep.runs, sweep.sizes, limits_of("local", 1)).cohorts
    run_here(store, cohorts, name)
    collect(store)
    remember(store, sweep, sweep.runs)
    return runs_of(Views(store, [name]))


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
