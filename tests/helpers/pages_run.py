"""Runs the code of a page of the documentation, in order, in a folder: the page is right if this
ends.

What a block is, its fence says: `sh` is run by the shell, `python` in a namespace that the page's
blocks share, `diff` is applied to files; anything with a title is written to the file of that name;
`text` is what the block before it prints, among other lines, whatever its numbers and with … for
any words of a line.
"""

import io
import os
import re
import subprocess
import sys
from contextlib import chdir, redirect_stdout
from typing import NamedTuple

import pytest

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
            shell("git apply -p0 -", folder, environment, where, block.text)
        elif block.language == "text":
            missing = missing_lines(block.text, printed)
            assert not missing, f"{where}: not printed: {missing}; printed was:\n{printed}"
        else:
            pytest.fail(f"{where}: nothing runs a block of language {block.language!r}, no title")


def shell(text, folder, environment, where, given=None):
    """What the commands print, both to stdout and to stderr; the first that fails ends them."""
    done = subprocess.run(
        ["bash", "-eu", "-c", text],
        cwd=folder,
        env=environment,
        input=given,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=TIMEOUT,
    )
    assert done.returncode == 0, f"{where}: exit status {done.returncode}\n{done.stdout}"
    return done.stdout


def python(block, folder, names, page):
    """What the code prints."""
    code = compile("\n" * (block.line - 1) + block.text, str(DOCS / page), "exec")
    with chdir(folder), redirect_stdout(io.StringIO()) as out:
        exec(code, names)
    return out.getvalue()


def missing_lines(expected, printed):
    """The lines of `expected` that are not among those printed, numbers aside."""
    there = "\n".join(masked(line) for line in printed.splitlines())

    def found(line):
        pattern = ".*".join(map(re.escape, masked(line).split("…")))
        return re.search(rf"^{pattern}$", there, re.M)

    return [line for line in expected.splitlines() if line.strip() and not found(line)]


def masked(line):
    """The line with each number as #, and single spaces."""
    return " ".join(re.sub(r"\d[\d.,]*(e[+-]?\d+)?", "#", line).split())


def environment_for(folder, source):
    """The environment in which a page's commands find this Python, `koco` of `source`, and folders
    for what they keep.
    """
    programs = folder / ".programs"
    programs.mkdir()
    (programs / "koco").write_text(f'#!/bin/sh\nexec {sys.executable} -m flows "$@"\n')
    (programs / "python").write_text(f'#!/bin/sh\nexec {sys.executable} "$@"\n')
    for program in programs.iterdir():
        program.chmod(0o755)
    return {**os.environ, "PATH": f"{programs}:{os.environ['PATH']}", "PYTHONPATH": str(source)}
