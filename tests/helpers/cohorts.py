"""Cohorts that are run in this process, and what their result files say."""

from dataclasses import replace

import pyarrow.parquet as pq
import pytest

from koco_stream.engine.checkpoint import save_cohort
from koco_stream.engine.cohort import run_cohort
from koco_stream.engine.result_file import result_files_folder
from koco_stream.runs.run import Cohort, Run
from koco_stream.streams.manifest import load_manifest
from koco_stream.streams.stream import Stream
from tests.helpers.examples import EXAMPLES
from tests.helpers.sweeps import MEASURED


def cohort_on(store, learners, every, name="real", order="shuffled"):
    manifest = load_manifest(store, name)
    stream = Stream(name, manifest.dataset_hash, order, 3 if order == "shuffled" else None)
    runs = tuple(
        Run.of(stream, learner, {**EXAMPLES[learner], **more}, seed)
        for learner, more, seed in learners
    )
    return Cohort(stream, runs, 1.0, every)


def part(store, cohort):
    """The rows of the cohort's result file, which is taken away: the cohort can be run again."""
    path = result_files_folder(store).path / f"{cohort.cohort_id}.parquet"
    table = pq.read_table(path)
    path.unlink()
    return table.drop_columns(MEASURED).to_pylist()


def undisturbed(store, cohort):
    """The rows of the result file of the cohort run without checkpoints; it is taken away."""
    run_cohort(str(store), "try", replace(cohort, checkpoint_rounds=0))
    return part(store, cohort)


def die_after(monkeypatch, store, cohort, saves):
    """Run the cohort in a process that dies after so many checkpoints: here by an exception that
    nothing catches.
    """
    left = [saves]

    def saved(where, rounds, run_states):
        save_cohort(where, rounds, run_states)
        left[0] -= 1
        if not left[0]:
            raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr("koco_stream.engine.cohort.save_cohort", saved)
        with pytest.raises(KeyboardInterrupt):
            run_cohort(str(store), "try", cohort)
