"""Runs the blocks of code of a page of the documentation, in order, in a folder: the page is right
if this ends.

What a block is, its fence says: `sh` is run by the shell, `python` in a namespace that the page's
blocks share, `diff` is applied to files; anything with a title is written to the file of that name;
`toml` without a title is a sweep file or a part of one, or schedules; `text` is what the block
before it prints, among other lines, whatever its numbers and with … for any words of a line. A
fence without a language is a picture.

A comment above a fence says `not run: REASON`, or `needs THING`: then it runs only in a test that
has the thing. A comment that begins with `run` is a block of the shell that readers do not see, and
`after PAGE` begins with what the blocks of that page have left.
"""

import io
import os
import re
import shutil
import subprocess
import sys
import tomllib
from contextlib import chdir, redirect_stdout
from pathlib import Path
from typing import NamedTuple

from tests.helpers.project import ROOT

DOCS = ROOT / "docs"
PAGES = ["README.md", *sorted(file.name for file in DOCS.glob("*.md"))]
TIMEOUT = 280.0  # seconds of a block
PARTS = re.compile(
    r'^```(?P<language>\w*)(?: title="(?P<title>[^"]+)")?\n(?P<text>.*?)^```$'
    r"|^<!-- (?P<mark>not run|needs|run|after)\b:?\s+(?P<rest>.*?)\s*-->$",
    re.M | re.S,
)
COMMANDS = re.compile(r"^\s*\$?\s*(koco|make|python|pip|git|import|from \w+ import)\b", re.M)


class Block(NamedTuple):
    """A block of code: the line that it begins in, its language, the file that it is to be written
    to, its text; why it is not run, or what it needs.
    """

    line: int
    language: str
    title: str
    text: str
    not_run: str = ""
    needs: str = ""


def text_of(page):
    """The text of a page."""
    return (ROOT / page if page == "README.md" else DOCS / page).read_text()


def page_before(page):
    """The page whose folder this one begins with, if there is one."""
    found = re.search(r"^<!-- after (\S+) -->$", text_of(page), re.M)
    return found and found[1]


def blocks_of(page):
    """The blocks of a page, in order."""
    text = text_of(page)
    found, marks = [], {}
    for part in PARTS.finditer(text):
        line = text[: part.start()].count("\n") + 2
        where = f"{page}:{line}"
        if part["mark"] == "run":
            found.append(Block(line, "sh", "", part["rest"]))
        elif part["mark"] in ("not run", "needs"):
            assert re.match(r"\s*```", text[part.end() :]), f"{where}: a mark without a block"
            marks = {part["mark"].replace(" ", "_"): part["rest"]}
        elif part["mark"] is None:
            language, title, inner = part["language"], part["title"] or "", part["text"]
            assert language or not COMMANDS.search(inner), f"{where}: say what language this is"
            if language:
                found.append(Block(line, language, title, inner, **marks))
            marks = {}
    fences = len(re.findall(r"^\s*```", text, re.M))
    assert fences == 2 * sum(part["mark"] is None for part in PARTS.finditer(text)), (
        f"{page}: a fence that is indented, or of another kind"
    )
    return found


def run_page(page, folder, environment, things=(), without=None):
    """Run the blocks of the page in the folder, and of those that need something only those that
    need one of the things; none that has the words `without` in it.
    """
    names, printed = {"__name__": page}, ""
    for block in blocks_of(page):
        left_out = block.not_run or (block.needs and block.needs not in things)
        if left_out or (without and without in block.text):
            continue
        where = f"{page}:{block.line}"
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
        elif block.language == "toml":
            check_toml(block.text, folder, environment, where)
        else:
            assert block.language == "text", f"{where}: nothing runs {block.language!r}, no title"
            missing = missing_lines(block.text, printed)
            assert not missing, f"{where}: not printed: {missing}; printed was:\n{printed}"


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
    code = compile("\n" * (block.line - 1) + block.text, page, "exec")
    with chdir(folder), redirect_stdout(io.StringIO()) as out:
        exec(code, names)
    return out.getvalue()


def check_toml(text, folder, environment, where):
    """Read schedules as `koco serve` does, and a sweep file, whatever it lacks, as `koco sweep`."""
    given = tomllib.loads(text)
    file = Path(folder, ".part.toml")
    if "schedule" in given:
        file.write_text(text)
        if not (sweeps := Path(folder, "sweeps")).exists():
            sweeps.symlink_to(ROOT / "flows" / "sweeps")
        read = "from pathlib import Path; from flows.schedules.service import read_schedules as r"
        shell(f'python -c \'{read}; r(Path("{file}"), "store")\'', folder, environment, where)
        return
    step = "{ log_uniform = [0.1, 1.0] }" if "search" in given else "1.0"
    lacking = {
        "dataset": '[[dataset]]\nname = "ill-conditioned"\n',
        "learner": f'[[learner]]\nname = "OGD"\nstep_size = {step}\n',
    }
    first = "" if "name" in given else 'name = "part"\n'
    rest = "".join(table for key, table in lacking.items() if key not in given)
    file.write_text(f"{first}{text}\n{rest}")
    shell(f"koco sweep {file} --dry-run", folder, environment, where)


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


def environment_for(folder, source, python=sys.executable):
    """The environment in which a page's commands find this Python, `koco` of `source`, and folders
    for what they keep. With another Python, its programs see nothing of `source`.
    """
    programs = folder / ".programs"
    programs.mkdir()
    path = f'PYTHONPATH="{source}" '
    run = {
        "koco": f"{path}exec {sys.executable} -m flows",
        "python": f"{path * (python == sys.executable)}exec {python}",
    }
    for name, words in run.items():
        (programs / name).write_text(f'#!/bin/sh\n{words} "$@"\n')
    for program in programs.iterdir():
        program.chmod(0o755)
    inherited = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    return {**inherited, "PATH": f"{programs}:{os.environ['PATH']}"}


def folder_after(page, folder, left_by):
    """The new folder, with what the page before this one has left, and the real datasets."""
    before = page_before(page)
    if before:
        without = shutil.ignore_patterns(".programs", "data")
        shutil.copytree(left_by(before), folder, symlinks=True, ignore=without)
    else:
        folder.mkdir()
    if data := os.environ.get("KOCO_DATA"):
        (folder / "data").symlink_to(data)
    return folder
