"""Cohorts that are run in this process, and what their parts say."""

from dataclasses import replace

import pyarrow.parquet as pq

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
    """What the cohort's part says; the part is taken away, so that the cohort can be run again."""
    path = result_files_folder(store).path / f"{cohort.cohort_id}.parquet"
    table = pq.read_table(path)
    path.unlink()
    return table.drop_columns(MEASURED).to_pylist()


def undisturbed(store, cohort):
    """What the part says of the cohort that is run without checkpoints; the part is taken away."""
    run_cohort(str(store), "try", replace(cohort, checkpoint_rounds=0))
    return part(store, cohort)
