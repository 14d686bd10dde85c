"""The commands `koco learners` and `koco learners check`."""

from pathlib import Path
from typing import Any

import click

from flows.commands.shared import JSON, example, show


@click.group(invoke_without_command=True)
@JSON
@click.pass_context
@example("koco learners")
def learners(context: click.Context, as_json: bool) -> None:
    """List the learners that a sweep file can name, with their parameters.

    These are the learners of the library and those that installed packages offer. A sweep file can
    also name a class in a file (file.py:Class, relative to the sweep file), a River or scikit-learn
    estimator (package.module:Class), or Vowpal Wabbit (vw).
    """
    if context.invoked_subcommand is None:
        show(_listed(), ("learner", "from", "parameters"), as_json)


def _listed() -> list[dict[str, Any]]:
    from koco_stream.learners import LEARNERS
    from koco_stream.learners.references import entry_points

    library = [
        {
            "learner": name,
            "from": "the library",
            "parameters": ", ".join(
                f"{parameter} = {value}" for parameter, value in learner.defaults().items()
            ),
        }
        for name, learner in LEARNERS.items()
    ]
    offered = [
        {
            "learner": name,
            "from": f"{found.dist.name} {found.dist.version}",
            "parameters": f"those of {found.value}",
        }
        for name, found in entry_points().items()
    ]
    return library + offered


@learners.command()
@click.argument("name")
@JSON
@example("koco learners check nlms.py:NLMS")
def check(name: str, as_json: bool) -> None:
    """Check whether a learner keeps the promises of every learner, and say which ones it breaks.

    NAME is file.py:Class, package.module:Class, or the name of a learner in the list. The checks
    take a minute, most of it for compiling. Exit status 1 if a promise is broken.
    """
    from koco_stream.errors import WrongInput
    from koco_stream.learners import Learner, learner_called, learner_named
    from koco_stream.learners.contract import check_contract

    learner = learner_named(learner_called(name, Path()))
    if not issubclass(learner, Learner):
        raise WrongInput(
            f"{name} is not a koco_stream.Learner; other learners do not make the promises that"
            " this command checks"
        )
    outcomes = check_contract(learner)
    rows = [
        {
            "": "kept" if one.found is None else "NOT KEPT",
            "promise": one.promise,
            "found": one.found,
        }
        for one in outcomes
    ]
    if as_json:
        show(rows, ("", "promise", "found"), as_json)
    else:
        for row in rows:
            click.echo(f"{row['']:8}  {row['promise']}")
            if row["found"]:
                click.echo(f"          {row['found']}")
    if any(one.found for one in outcomes):
        raise SystemExit(1)
