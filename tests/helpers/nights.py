"""Nightly runs without Prefect's server, and code that was altered: copies of the packages in a
folder of their own, run from there.
"""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
PACKAGES = ("koco_stream", "storage", "cluster", "flows")
STEP = "s.wG[idx[i], 0] -= params.step_size * g / math.sqrt(G)"
SCAN = '        scan, done = cls.compiled(scan_rows, "step", "full"), 0\n'
BUSY = """        import time
        quick, done = cls.compiled(scan_rows, "step", "full"), 0

        def scan(*words):
            begun = time.thread_time()
            ended = quick(*words)
            taken = time.thread_time() - begun
            while cls.__name__ == "OGD" and time.thread_time() - begun < 1.3 * taken:
                pass
            return ended

"""
# What is replaced, in which file: a step size that differs in the twelfth digit, and scans of one
# learner that take 30 % longer.
TWELFTH_DIGIT = (
    "koco_stream/learners/linear/adagrad.py",
    STEP,
    STEP.replace("params.step_size", "params.step_size * (1.0 + 3e-12)"),
)
SLOWER = ("koco_stream/learners/scan.py", SCAN, BUSY)


def altered(folder: Path, change: tuple[str, str, str]) -> Path:
    """A copy of the packages in which one text of a file is another; the folder to import them
    from.
    """
    for package in PACKAGES:
        shutil.copytree(
            ROOT / package, folder / package, ignore=shutil.ignore_patterns("__pycache__")
        )
    name, old, new = change
    text = (folder / name).read_text()
    assert text.count(old) == 1, f"{name} has changed: what is to be altered is not there"
    (folder / name).write_text(text.replace(old, new))
    return folder


def begin_nights(root: Path, spec: Path, store: Path, count: int) -> subprocess.Popen[str]:
    """A process that does so many nightly runs by the code in `root`, one after the other."""
    more = {
        "PYTHONPATH": str(root),
        "OMP_NUM_THREADS": "1",
        "PREFECT_HOME": os.path.join(os.environ["KOCO_CACHE"], "prefect"),
        "PREFECT_LOGGING_LEVEL": "CRITICAL",
    }
    return subprocess.Popen(
        [sys.executable, __file__, str(spec), str(store), str(count)],
        env={**os.environ, **more},
        cwd=root,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def nights(root: Path, spec: Path, store: Path, count: int = 1) -> list[dict[str, object]]:
    """So many nightly runs: what each came to."""
    process = begin_nights(root, spec, store, count)
    printed, said = process.communicate()
    assert process.returncode == 0, said
    return [json.loads(line) for line in printed.splitlines()]


def main(spec: str, store: str, count: str) -> None:
    """Run the nightly flow's own function, its tasks as plain functions."""
    import flows.nightly.flow as nightly
    from flows.sweeping.steps import PLAIN

    nightly.TASKS = PLAIN
    for name in ("compute", "compare"):
        setattr(nightly, name, getattr(nightly, name).fn)

    class Plain:
        """The sweep flow as a plain function."""

        def __init__(self, _: object, work: object) -> None:
            self.work = work

        def with_options(self, **_: object) -> object:
            return lambda **_: self.work()

    nightly.flow_of = Plain
    for _ in range(int(count)):
        state = nightly.nightly_flow.fn(spec, store)
        print(json.dumps({"state": state.name, "type": state.type.value, **state.data}), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
