"""The members of a `Mixture`, as a parameter."""

from collections.abc import Iterator, Mapping
from typing import Any

from koco_stream.errors import WrongInput
from koco_stream.learners.base import Learner
from koco_stream.learners.grids import combinations, values_of
from koco_stream.learners.named import LEARNERS, AnyLearner, learner_named
from koco_stream.learners.parameter import Parameter
from koco_stream.learners.spec import SEED, Public

USUAL = (  # what `Mixture()` mixes
    {"name": "OjaSON", "alpha": {"powers_of_two": [-6, 6]}},
    {"name": "AdaGrad", "step_size": {"powers_of_two": [-5, 2]}},
)


class MembersParameter(Parameter):
    """The members of a mixture: learners, or tables of a name and parameters, lists of which make
    several members.
    """

    def check(self, value: Any) -> Any:
        """A table for each member, or None for those that are mixed by default."""
        if value is None:
            return None
        if not (isinstance(value, list | tuple) and value):
            raise WrongInput(
                f"members must be a list of learners or tables, not {value!r}; a sweep file has"
                " tables [[learner.member]]"
            )
        return [table for member in value for table in tables_of(member)]


def tables_of(member: Any) -> Iterator[dict[str, Any]]:
    """A member as a table; a table with lists as several."""
    if isinstance(member, Learner):
        yield {"name": name_of(type(member)), **member.get_params()}
    elif isinstance(member, Mapping) and isinstance(member.get("name"), str):
        grids = {key: values_of(value) for key, value in member.items() if key != "name"}
        yield from ({"name": member["name"], **given} for given in combinations(grids))
    else:
        raise WrongInput(f"a member is a learner, or a table with a name, not {member!r}")


def name_of(learner: Any) -> str:
    """The name by which a learner of the library is a member."""
    if learner not in LEARNERS.values():
        raise WrongInput(
            f"{learner!r} is not a learner of the library; one of yours can be a member in a sweep"
            " file, by its file: name = 'file.py:Class'"
        )
    return str(learner.__name__)


MEMBERS = MembersParameter(
    "members",
    list,
    "the learners that are mixed; by default 13 of OjaSON and 8 of AdaGrad",
    optional=True,
)


def learner_of(table: Mapping[str, Any]) -> tuple[AnyLearner, dict[str, Any]]:
    """A member's class, and its parameters in its table."""
    given = {name: value for name, value in table.items() if name not in ("name", "seed")}
    return learner_named(table["name"]), given


def completed(table: Mapping[str, Any], shared: Public) -> dict[str, Any]:
    """A member's table with all parameters that have an effect, and those that are `shared`."""
    learner, given = learner_of(table)
    if not learner.predicts or MEMBERS.name in learner.defaults():
        raise WrongInput(f"{table['name']} cannot be a member of a Mixture")
    for name, value in shared.items() if learner.numbers == "own" else ():
        if given.setdefault(name, value) != value:
            raise WrongInput(
                f"a member, {table['name']}, has {name} = {given[name]!r}, and the Mixture"
                f" {value!r}; they must be equal: give {name} to the Mixture only"
            )
    public = learner.complete(given)
    seed = {"seed": SEED.check(table["seed"])} if "seed" in table else {}
    return {
        "name": table["name"],
        **learner.identifying(public),
        **(seed if learner.stochastic(public) else {}),
    }
