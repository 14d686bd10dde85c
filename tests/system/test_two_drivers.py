"""Several sweeps at once on one store, while it is compacted and read: nobody sees a wrong number,
loses a run, or finds one twice; of two that are the same, one is refused or finds all done.
"""

import subprocess
import sys
import threading
import time

from storage.collecting import compact
from storage.results import read_curves, read_runs
from tests.helpers.project import ROOT, environment
from tests.helpers.sweeps import tables
from tests.helpers.swept import koco

SPEC = """
name = "{name}"
[[dataset]]
name = "ill-conditioned"
condition_number = [10, 50]
[[learner]]
name = "OjaSON"
sketch_size = {sizes}
alpha = {{ powers_of_two = [-4, 8] }}
"""


def begun(spec, store):
    """A sweep in a process of its own, in cohorts of four runs."""
    short = [sys.executable, "-m", "tests.helpers.sweep_in_short_cohorts"]
    return subprocess.Popen(
        [*short, "sweep", spec, "--store", store, "--workers", "0"],
        cwd=ROOT,
        env=environment(KOCO_TEST_RUNS="4"),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )


def without_sweeps(found):
    """Tables without the name of the sweep that was first, where two share a run."""
    runs, curves = found
    return [{**run, "sweep": None} for run in runs], curves


def test_sweeps_at_once__leave_what_one_after_the_other_does(tmp_path):
    specs = {name: tmp_path / f"{name}.toml" for name in ("one", "two")}
    for (name, spec), sizes in zip(specs.items(), ("[0, 3]", "[3, 5]"), strict=True):
        spec.write_text(SPEC.format(name=name, sizes=sizes))
        koco("sweep", spec, "--store", tmp_path / "alone", "--workers", 0, cwd=ROOT, status=0)
    store = tmp_path / "store"
    sweeps = [begun(specs[name], store) for name in ("one", "one", "two")]
    wrong, seen, ended = [], set(), threading.Event()

    def look():
        """Every run that was seen stays, once, with its curve if it has done a round."""
        runs = read_runs(store, ["run_id", "status", "rounds"]).to_pylist()
        curves = set(read_curves(store).column("run_id").to_pylist())
        ids = [run["run_id"] for run in runs]
        if len(ids) > len(set(ids)) or not seen <= set(ids):
            wrong.append((len(ids), len(set(ids)), len(seen)))
        wrong.extend(run for run in runs if run["rounds"] and run["run_id"] not in curves)
        seen.update(ids)

    def again_and_again(work):
        while not ended.is_set():
            if (store / "results").is_dir():
                work()
            time.sleep(0.01)

    beside = [
        threading.Thread(target=again_and_again, args=(work,))
        for work in (look, lambda: compact(store), lambda: compact(store))
    ]
    for thread in beside:
        thread.start()
    said = [sweep.communicate()[1] for sweep in sweeps]
    ended.set()
    for thread in beside:
        thread.join()
    assert wrong == []
    assert sweeps[2].returncode == 0, said[2]
    statuses = [sweep.returncode for sweep in sweeps[:2]]
    assert 0 in statuses, said
    for status, text in zip(statuses, said, strict=False):
        assert status == 0 or (status, "the sweep one is running on" in text) == (2, True), text
        assert "Traceback" not in text
    assert without_sweeps(tables(store)) == without_sweeps(tables(tmp_path / "alone"))
    assert not list(store.rglob("*.tmp"))
