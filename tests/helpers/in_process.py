"""The koco command within this process: no server of Prefect's, no workers, nothing to wait for."""

import json

import click
import pytest
from click.testing import CliRunner


def command(*words, status=None):
    """Run `koco WORDS`; gives what click's runner does: exit_code, stdout, stderr. With `status`,
    the exit code must be that.
    """
    from flows.cli import koco

    words = [str(word) for word in words]
    done = CliRunner().invoke(koco, [*words, "--workers", "0"] if words[0] == "sweep" else words)
    assert status in (None, done.exit_code), (words, done.output, done.exception)
    return done


@pytest.fixture
def koco():
    """The function `command`."""
    return command


def strict(text):
    """What a JSON text says, as a parser reads it that knows no NaN."""
    return json.loads(text, parse_constant=pytest.fail)


def commands(group, words=("koco",)):
    """All commands below a group, with the words that a user types."""
    for name in group.list_commands(None):
        one = group.commands[name]
        yield (*words, *name.split()), one
        if isinstance(one, click.Group):
            yield from commands(one, (*words, name))
