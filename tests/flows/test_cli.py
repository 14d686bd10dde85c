"""The help of the koco command: commands by use, each with an example that is a command."""

import errno
import re
import shlex
import subprocess
import sys
from pathlib import Path

import click
import pytest

from flows.cli import COMMANDS, koco as command, outcome_of
from storage.store import open_store
from tests.helpers.in_process import commands
from tests.helpers.sweeps import koco as koco_process, written

OGD = '[[learner]]\nname = "OGD"'


def test_help__shows_all_commands_by_use(koco):
    """What is used each day comes first, and no command or sentence is cut."""
    text = koco("--help", status=0).stdout
    shown = re.findall(r"^  ([a-z]+(?: accept)?)  ", text, re.M)
    assert shown == [one.name for commands in COMMANDS.values() for one in commands]
    assert len({name.split()[0] for name in shown}) == 14
    assert [f"{title}:" in text for title in COMMANDS] == [True] * len(COMMANDS)
    assert "..." not in text.partition("Options:")[2]


def test_every_command__has_an_example_of_it_with_options_that_it_has():
    for words, one in commands(command):
        _, _, example = (one.help or "").partition("Example:\n")
        [line] = example.strip().splitlines()
        given = shlex.split(line)
        assert tuple(given[: len(words)]) == words, line
        if not isinstance(one, click.Group):
            assert {word for word in given if word.startswith("--")} <= {
                name for parameter in one.params for name in parameter.opts
            }, line


def test_command_of_two_words__is_itself_and_not_an_argument_of_the_first(koco, tmp_path):
    assert (
        "there is no store"
        in koco("nightly", "accept", "small", "--store", tmp_path / "none", status=2).stderr
    )
    assert "SPEC" in koco("nightly", status=2).output
    assert "No such command 'accept'" in koco("accept", "small", status=2).output


@pytest.mark.parametrize("letter", ["a", "é"])
def test_name__that_no_file_can_have__is_refused_in_a_sentence(letter, koco, tmp_path):
    """A file's name has at most 255 bytes; é has two."""
    name, store = letter * (300 // len(letter.encode())), ("--store", open_store(tmp_path / "s"))
    (tmp_path / "t.csv").write_text("1,1\n2,0\n")
    (tmp_path / "s.toml").write_text(f'name = "s"\n[[dataset]]\nname = "{name}"\n{OGD}')
    for words in (
        ("sweep", name, *store),
        ("sweep", tmp_path / "s.toml", *store),
        ("prepare", name, "--from", tmp_path / "t.csv", *store),
        ("prepare", "t", "--from", name, *store),
        *((one, name, *store) for one in ("report", "compare")),
        *(("store", *one, name, *store) for one in (("remove", "sweep"), ("verify",))),
        ("results", "--sweep", name, *store),
        ("list", "--store", tmp_path / name),
        ("results", "--arrow", tmp_path / name, *store),
    ):
        assert koco(*words, status=2).stderr.startswith("koco: "), words


def test_permission__to_be_changed_is_that_of_what_there_is(tmp_path):
    for path in (tmp_path, tmp_path / "new", tmp_path / "new" / "file"):
        status, said = outcome_of(PermissionError(errno.EACCES, "Permission denied", str(path)))
        assert status == 1
        assert said.startswith(f"{tmp_path}: Permission denied; change its permissions")


def test_ctrl_c__in_a_query_is_a_stop():
    assert outcome_of(RuntimeError("Query interrupted")) == (1, "stopped")
    assert outcome_of(RuntimeError("no")) == (1, "RuntimeError: no")


def test_report__is_opened_in_the_browser(swept_store, tmp_path):
    browser = written(tmp_path, '#!/bin/sh\nprintf %s "$1" > opened\n', "browser")
    browser.chmod(0o755)
    words = ("report", "first", "--store", swept_store, "--open")
    done = koco_process(*words, cwd=tmp_path, status=0, BROWSER=f"{browser} %s")
    assert (tmp_path / "opened").read_text() == Path(done.stdout.strip()).as_uri()


SLOW = """
import sys
from flows.cli import koco
try:
    koco(sys.argv[1:])
except SystemExit as end:
    print(end.code, *sorted({"numba", "dask", "pandas", "scipy", "prefect"} & {*sys.modules}))
"""


@pytest.mark.parametrize(
    ("learner", "dataset", "words"),
    [
        ("OjaSN", "ill-conditioned", ()),
        ("OjaSON", "il-conditioned", ()),
        ("OGD", "ill-conditioned", ("--worker", "3")),
        ("OGD", "ill-conditioned", ("--cluster", "loca")),
    ],
)
def test_refusal__imports_no_compiler_and_no_scheduler(learner, dataset, words, tmp_path):
    """Each of them takes about half a second to import."""
    text = f'name = "s"\n[[dataset]]\nname = "{dataset}"\n[[learner]]\nname = "{learner}"'
    words = ["sweep", written(tmp_path, text, "s.toml"), "--store", tmp_path / "store", *words]
    done = subprocess.run([sys.executable, "-c", SLOW, *words], capture_output=True, text=True)
    assert done.stdout == "2\n", done.stderr
