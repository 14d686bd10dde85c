"""Code that is altered: a copy of the packages in a folder of its own."""

import shutil
from pathlib import Path

from tests.helpers.project import ROOT

PACKAGES = ("koco_stream", "storage", "cluster", "flows")
STEP = "adagrad_row(s.wG, idx, val, slope, params.step_size)"
# What is replaced, in which file: a step size that differs in the twelfth digit.
TWELFTH_DIGIT = (
    "koco_stream/learners/linear/adagrad.py",
    STEP,
    STEP.replace("params.step_size", "params.step_size * (1.0 + 3e-12)"),
)


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
