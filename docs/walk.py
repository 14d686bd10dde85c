"""The files that a sweep walks through, as the page of the architecture lists them: those that are
on the call stack at the moments of the sweep's sentence, while a small sweep runs uncompiled.

`python docs/walk.py` prints the list, and `python docs/walk.py --write` puts it into the page.
"""

import ast
import os
import re
import sys
import tempfile
from itertools import pairwise
from pathlib import Path
from textwrap import fill

os.environ["NUMBA_DISABLE_JIT"] = "1"  # a compiled step has no frame

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "architecture.md"
LISTED = re.compile(r"^1\. `flows/commands/.*?\n\nA room calls back.*?\n(?=\n)", re.M | re.S)
SWEEP = """
name = "walk"
[[dataset]]
name = "ill-conditioned"
n_rows = 30
n_features = 3
[[learner]]
name = "OGD"
"""
WIDTH = 88
WRITES = "koco_stream/io/table_file.py", "write_tables"
# a function that is called while another one runs, by their files
MOMENTS = [
    (("flows/commands/sweep.py", "sweep"), ("flows/sweeping/toml_file.py", "__init__")),
    (("flows/sweeping/launch.py", "launch"), ("flows/sweeping/checks.py", "all_runs")),
    (("flows/sweeping/launch.py", "run_sweep"), ("storage/results.py", "finished_runs")),
    (("flows/sweeping/launch.py", "run_sweep"), ("koco_stream/runs/planner.py", "plan")),
    (
        ("koco_stream/engine/cohort.py", "run_cohort"),
        ("koco_stream/learners/linear/ogd.py", "step"),
    ),
    (("koco_stream/engine/result_file.py", "commit"), WRITES),
    (("storage/collecting.py", "collect"), WRITES),
    (("flows/sweeping/launch.py", "run_sweep"), ("flows/report/document.py", "write_report")),
    (("flows/sweeping/launch.py", "outcome"), ("koco_stream/io/table_file.py", "read_table")),
]
PACKAGES = "flows", "cluster", "storage", "koco_stream"


def walk():
    """The calls (file, function) on the stack at each moment, from the command on."""
    from click.testing import CliRunner

    from flows.commands.sweep import sweep

    stacks = {}

    def place(frame):
        return frame.f_code.co_filename.removeprefix(f"{ROOT}/"), frame.f_code.co_name

    inner = {name for _, (_, name) in MOMENTS}

    def called(frame, event, _):
        if event != "call" or frame.f_code.co_name not in inner:
            return
        calls = []
        here = frame
        while here:
            calls.append(place(here))
            here = here.f_back
        for moment in MOMENTS:
            if calls[0] == moment[1] and moment[0] in calls:
                ours = [call for call in reversed(calls) if call[0].startswith(PACKAGES)]
                stacks.setdefault(moment, []).append(ours)

    with tempfile.TemporaryDirectory() as folder:
        os.environ["KOCO_CACHE"] = f"{folder}/cache"
        file = Path(folder, "walk.toml")
        file.write_text(SWEEP)
        sys.setprofile(called)
        done = CliRunner().invoke(sweep, [str(file), "--store", f"{folder}/store", "--workers=0"])
        sys.setprofile(None)
    assert done.exit_code == 0, done.output
    assert list(stacks) == MOMENTS, stacks.keys()
    return [stack for found in stacks.values() for stack in found]


def room_of(file):
    """The room of a file: a name in the layers of its package."""
    package, *names = Path(file).with_suffix("").parts
    return package if package == "cluster" else f"{package}/{names[0]}"


def imports(room, other):
    """Whether a file of a room imports from the other room."""
    files = (ROOT / room).rglob("*.py") if (ROOT / room).is_dir() else [ROOT / f"{room}.py"]
    name = other.replace("/", ".")
    return any(re.search(rf"^\s*from {name}[. ]", file.read_text(), re.M) for file in files)


def listed(stacks):
    """The list: a line for each file, and one for the rooms that call those above them."""
    functions, back = {}, {}
    for stack in stacks:
        for file, function in stack:
            functions.setdefault(file, {})[function] = None
        for (caller, _), (file, _) in pairwise(stack):
            rooms = room_of(caller), room_of(file)
            if rooms[0] != rooms[1] and imports(rooms[1], rooms[0]):
                back[rooms] = f"`{rooms[0]}` to `{rooms[1]}`"
    lines = []
    for number, (file, names) in enumerate(functions.items(), 1):
        about = ast.get_docstring(ast.parse((ROOT / file).read_text())).partition("\n\n")[0]
        about = re.split(r"(?<=\.)\s", " ".join(about.split()))[0]
        names = ", ".join(f"`{name}`" for name in names if name.isidentifier())
        lines.append(fill(f"{number}. `{file}` ({names}): {about}", WIDTH, subsequent_indent="   "))
    calls = fill(f"A room calls back one that imports it: {', '.join(back.values())}.", WIDTH)
    return "\n".join([*lines, "", calls, ""])


if __name__ == "__main__":
    sys.path.insert(0, str(ROOT))
    found = listed(walk())
    if "--write" in sys.argv:
        PAGE.write_text(LISTED.sub(lambda _: found, PAGE.read_text(), count=1))
    sys.stdout.write(found)
