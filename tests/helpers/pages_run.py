"""Runs the code of a page of the documentation, in order, in a folder: the page is right if this
ends.

What a block is, its fence says: `sh` is run by the shell, `python` in a namespace that the page's
blocks share, `diff` is applied to files; anything with a title is written to the file of that name;
`text` is what the block before it prints, among other lines, whatever its numbers and with … for
any part of a line.
"""

import io
import os
import re
import subprocess
import sys
from contextlib import redirect_stdout
from pathlib import Path
from typing import NamedTuple

from tests.helpers.project import ROOT

DOCS = ROOT / "docs"
TIMEOUT = 280.0  # seconds of a block


class Block(NamedTuple):
    """A block of code: the line that it begins in, its language, the file that it is to be written
    to, its text.
    """

    line: int
    language: str
    title: str
    text: str


def blocks_of(page):
    """The blocks of a page, in order."""
    text = (DOCS / page).read_text()
    fence = re.compile(r"^```(\w*)(?: title=\"([^\"]+)\")?\n(.*?)^```$", re.M | re.S)
    found = [
        Block(text[: m.start()].count("\n") + 2, m[1], m[2] or "", m[3])
        for m in fence.finditer(text)
    ]
    assert len(found) * 2 == len(re.findall(r"^\s*```", text, re.M)), (
        f"{page}: a fence that is indented, or of another kind"
    )
    return found


def run_page(page, folder, environment, without=None):
    """Run all blocks of the page in the folder, but for those that have the words `without` in
    them.
    """
    names, printed = {"__name__": page}, ""
    for block in blocks_of(page):
        if without and without in block.text:
            continue
        where = f"docs/{page}:{block.line}"
        if block.title:
            target = folder / block.title
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(block.text)
        elif block.language == "sh":
            printed = shell(block.text, folder, environment, where)
        elif block.language == "python":
            printed = python(block, folder, names, page)
        elif block.language == "diff":
            applied = subprocess.run(
                ["git", "apply", "-p0", "-"],
                input=block.text,
                cwd=folder,
                capture_output=True,
                text=True,
            )
            assert applied.returncode == 0, f"{where}: {applied.stderr}"
        elif block.language == "text":
            missing = missing_lines(block.text, printed)
            assert not missing, f"{where}: not printed: {missing}; printed was:\n{printed}"
        else:
            raise AssertionError(
                f"{where}: a block of language {block.language!r} and no title is not run by"
                " anything"
            )


def shell(text, folder, environment, where):
    """What the commands print, both to stdout and to stderr; the first that fails ends them."""
    done = subprocess.run(
        ["bash", "-eu", "-c", text],
        cwd=folder,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=TIMEOUT,
    )
    assert done.returncode == 0, f"{where}: exit status {done.returncode}\n{done.stdout}"
    return done.stdout


def python(block, folder, names, page):
    """What the code prints."""
    before, out = Path.cwd(), io.StringIO()
    os.chdir(folder)
    try:
        with redirect_stdout(out):
            exec(compile("\n" * (block.line - 1) + block.text, str(DOCS / page), "exec"), names)
    finally:
        os.chdir(before)
    return out.getvalue()


def missing_lines(expected, printed):
    """The lines of `expected` that are not among those printed, numbers aside."""
    there = [masked(line) for line in printed.splitlines()]

    def found(line):
        pattern = ".*".join(map(re.escape, masked(line).split("…")))
        return any(re.fullmatch(pattern, other) for other in there)

    return [line for line in expected.splitlines() if line.strip() and not found(line)]


def masked(line):
    """The line with each number as #, and single spaces."""
    return " ".join(re.sub(r"\d[\d.,]*(e[+-]?\d+)?", "#", line).split())


def environment_for(folder, source):
    """Where the commands of a page find this Python, `koco` of `source`, and places for what they
    keep.
    """
    programs = folder / ".programs"
    programs.mkdir()
    (programs / "koco").write_text(f'#!/bin/sh\nexec {sys.executable} -m flows.cli "$@"\n')
    (programs / "python").write_text(f'#!/bin/sh\nexec {sys.executable} "$@"\n')
    for program in programs.iterdir():
        program.chmod(0o755)
    return {**os.environ, "PATH": f"{programs}:{os.environ['PATH']}", "PYTHONPATH": str(source)}
