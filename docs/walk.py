"""The files that a row and a sweep walk through, for the page of the architecture: those on the
call stack at certain moments, while small ones run uncompiled.

`python docs/walk.py` prints the lists as JSON, which docs/pages.py puts into the page.
"""

import json
import os
import re
import sys
import tempfile
from itertools import pairwise
from pathlib import Path
from textwrap import fill

os.environ["NUMBA_DISABLE_JIT"] = "1"  # a compiled step has no frame

ROOT = Path(__file__).parents[1]
PACKAGES = "flows", "cluster", "storage", "koco_stream"
SWEEP = """
name = "walk"
[[dataset]]
name = "ill-conditioned"
n_rows = 30
n_features = 3
[[learner]]
name = "OGD"
"""
LEARNERS = "koco_stream/learners"
LINES = "koco_stream/numerics/instructions/feature_rows.py"
WRITES = "koco_stream/io/table_file.py", "write_tables"
# moments in words, with a function that is called while another one runs, by their files
MOMENTS = {
    "row": [
        (
            "all rows are checked, and brought into canonical form",
            (f"{LEARNERS}/base.py", "progressive"),
            ("koco_stream/streams/rows.py", "canonical"),
        ),
        (
            "the sketch's lines of a row's features are gathered",
            (f"{LEARNERS}/scan.py", "scan_rows"),
            (LINES, "gather_current"),
        ),
        (
            "the weights are projected",
            (f"{LEARNERS}/linear/online_newton.py", "predict"),
            (f"{LEARNERS}/linear/oja_sketch.py", "project"),
        ),
        (
            "the gradient is taken",
            (f"{LEARNERS}/linear/online_newton.py", "gradient"),
            ("koco_stream/losses.py", "loss_slope"),
        ),
        (
            "sketch and weights are updated",
            (f"{LEARNERS}/linear/oja_sketch.py", "update"),
            (LINES, "scatter"),
        ),
        (
            "in some rounds, what changes all of V is noted",
            (f"{LEARNERS}/linear/oja_sketch.py", "update"),
            (f"{LEARNERS}/linear/oja_basis.py", "fold"),
        ),
    ],
    "sweep": [
        (
            "the file is read",
            ("flows/commands/sweep.py", "sweep"),
            ("flows/sweeping/toml_file.py", "__init__"),
        ),
        (
            "its runs are listed",
            ("flows/sweeping/launch.py", "launch"),
            ("flows/sweeping/checks.py", "all_runs"),
        ),
        (
            "those in the store are subtracted",
            ("flows/sweeping/launch.py", "run_sweep"),
            ("storage/results.py", "finished_runs"),
        ),
        (
            "cohorts are planned",
            ("flows/sweeping/launch.py", "run_sweep"),
            ("koco_stream/runs/planner.py", "plan"),
        ),
        (
            "a worker learns a row",
            ("koco_stream/engine/cohort.py", "run_cohort"),
            (f"{LEARNERS}/linear/ogd.py", "step"),
        ),
        ("it writes a result file", ("koco_stream/engine/result_file.py", "commit"), WRITES),
        ("results are collected", ("storage/collecting.py", "collect"), WRITES),
        (
            "the report is written",
            ("flows/sweeping/launch.py", "run_sweep"),
            ("flows/report/document.py", "write_report"),
        ),
        (
            "the results are read for the last lines",
            ("flows/sweeping/launch.py", "outcome"),
            ("koco_stream/io/table_file.py", "read_table"),
        ),
    ],
}


def learn():
    """Some rows through OjaSON, with the lines of a sketch that is worth its instructions."""
    import numpy as np

    from koco_stream import OjaSON

    X = np.random.default_rng(0).standard_normal((200, 20))
    OjaSON(sketch_size=10, alpha=1.0).progressive(X, np.sign(X[:, 0]))


def files_of(action):
    """The files of ours whose functions an action calls."""
    files = set()

    def called(frame, event, _):
        file = frame.f_code.co_filename
        if event == "call" and file.startswith(f"{ROOT}/koco_stream/"):
            files.add(file.removeprefix(f"{ROOT}/"))

    sys.setprofile(called)
    action()
    sys.setprofile(None)
    return sorted(files)


def sweep(folder):
    """A small sweep."""
    from click.testing import CliRunner

    from flows.commands.sweep import sweep

    Path(folder, "walk.toml").write_text(SWEEP)
    words = [f"{folder}/walk.toml", "--store", f"{folder}/store", "--workers=0"]
    done = CliRunner().invoke(sweep, words)
    assert done.exit_code == 0, done.output


def stacks_of(action, moments):
    """The calls (file, function) on the stack at each moment, lists of them."""
    inner = {name for _, _, (_, name) in moments}
    stacks = {}

    def called(frame, event, _):
        if event != "call" or frame.f_code.co_name not in inner:
            return
        calls = []
        while frame:
            file = frame.f_code.co_filename.removeprefix(f"{ROOT}/")
            calls.append((file, frame.f_code.co_name))
            frame = frame.f_back
        for words, outer, last in moments:
            if calls[0] == last and outer in calls[1:]:
                ours = [call for call in reversed(calls) if call[0].startswith(PACKAGES)]
                stacks.setdefault(words, []).append(ours)

    sys.setprofile(called)
    action()
    sys.setprofile(None)
    return {words: stacks[words] for words, _, _ in moments}


def listed(stacks):
    """A moment a line, with the files that are not in those before it and their functions; and the
    rooms that call those above them.
    """
    seen, back, lines = set(), {}, []
    for number, (words, several) in enumerate(stacks.items(), 1):
        files = {}
        for stack in several:
            for file, function in stack:
                if (file, function) not in seen and function.isidentifier():
                    files.setdefault(file, {})[function] = None
                seen.add((file, function))
            for (caller, _), (file, _) in pairwise(stack):
                rooms = room_of(caller), room_of(file)
                if rooms[0] != rooms[1] and imports(rooms[1], rooms[0]):
                    back[rooms] = f"`{rooms[0]}` to `{rooms[1]}`"
        named = [
            f"`{file}` ({', '.join(f'`{name}`' for name in names)})"
            for file, names in files.items()
        ]
        text = f"{number}. {words}: {', '.join(named) or 'by what is named above'}"
        lines.append(fill(text, 100, subsequent_indent="   ", break_on_hyphens=False))
    if back:
        text = f"A room calls back one that imports it: {', '.join(back.values())}."
        lines += ["", fill(text, 100)]
    return "\n".join(lines)


def room_of(file):
    """The room of a file: a name in the layers of its package."""
    package, *names = Path(file).with_suffix("").parts
    return package if package == "cluster" else f"{package}/{names[0]}"


def imports(room, other):
    """Whether a file of a room imports from the other room."""
    files = (ROOT / room).rglob("*.py") if (ROOT / room).is_dir() else [ROOT / f"{room}.py"]
    name = other.replace("/", ".")
    return any(re.search(rf"^\s*from {name}[. ]", file.read_text(), re.M) for file in files)


def main():
    """Print the two lists."""
    sys.path.insert(0, str(ROOT))
    with tempfile.TemporaryDirectory() as folder:
        os.environ["KOCO_CACHE"] = f"{folder}/cache"
        found = {
            "row": listed(stacks_of(learn, MOMENTS["row"])),
            "sweep": listed(stacks_of(lambda: sweep(folder), MOMENTS["sweep"])),
        }
    json.dump(found, sys.stdout)


if __name__ == "__main__":
    main()
