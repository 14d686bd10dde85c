"""Learners that are not the library's: of a file, or of an installed package.

A *reference* names such a learner together with its code: `nlms.py:NLMS@3f2a…` is the class `NLMS`
of a file with this content, `river.linear_model:LogisticRegression@river 0.26.1` a class of a
package in this version. Runs carry it in place of the learner's name, so that a changed file makes
new runs, and no process runs other code than was asked for.
"""

import importlib.metadata
import importlib.util
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple, cast

from koco_stream.errors import LearnerChanged, WrongInput, nearest
from koco_stream.foreign_host import target
from koco_stream.learners.files import copied_to_cache, imported

GROUP = "koco_stream.learners"  # of entry points
VW = "vw"


class Reference(NamedTuple):
    """A learner's name, as a sweep file has it, and its code: a hash, or a distribution's version.

    For a file, `name` has the file's name without its folder.
    """

    name: str
    code: str

    def __str__(self) -> str:
        return f"{self.name}@{self.code}"

    @staticmethod
    def of(text: str) -> "Reference":
        """The reference that a run carries in place of a learner's name."""
        name, _, code = text.partition("@")
        return Reference(name, code)

    @property
    def of_file(self) -> bool:
        """Whether the learner's code is a file, and not an installed package."""
        return self.name.partition(":")[0].endswith(".py")


def shown_name(learner: str) -> str:
    """The learner of a run as tables name it."""
    return Reference.of(learner).name


def reference_to(name: str, folder: Path, known: list[str]) -> Reference:
    """The reference of the learner that a sweep file in `folder` calls `name`, whose code, if it is
    a file, is copied to the cache folder. `known` are the library's learners.
    """
    place, _, class_name = name.partition(":")
    if class_name and place.endswith(".py"):
        path = folder / Path(place).expanduser()
        return Reference(f"{path.name}:{class_name}", copied_to_cache(path))
    offered = entry_points()
    is_dotted = (place if class_name else name).replace(".", "_").isidentifier()
    if name not in (VW, *offered) and not (class_name and is_dotted):
        module, _, last = name.rpartition(".")
        colon = f"{name}:Class" if last == "py" else f"{module}:{last}"
        words = [*known, *offered, VW, *[colon] * bool(module and is_dotted)]
        raise WrongInput(
            f"no learner is called {name!r}{nearest(name, words)} (a learner in a file is named"
            " 'file.py:Class', one of an installed package 'package.module:Class', and Vowpal"
            " Wabbit 'vw')"
        )
    return installed(name)


def entry_points() -> dict[str, Any]:
    """The learners that installed packages offer in the group `koco_stream.learners`, by name."""
    return {found.name: found for found in importlib.metadata.entry_points(group=GROUP)}


def installed(name: str) -> Reference:
    """The reference of a learner of an installed package. Raises `WrongInput` if there is none."""
    if name != VW and ":" not in name:
        offered = entry_points().get(name)
        if offered is None:
            raise WrongInput(f"no installed package offers the learner {name!r}")
        return Reference(name, _version_of(offered.dist))
    package = "vowpalwabbit" if name == VW else name.partition(":")[0].partition(".")[0]
    found = importlib.metadata.packages_distributions().get(package)
    if found:
        return Reference(name, _version_of(importlib.metadata.distribution(found[0])))
    if importlib.util.find_spec(package) is None:
        raise WrongInput(
            f"the learner {name!r} is in the package {package!r}, which is not installed; pip"
            f" install {package}, on every machine of the cluster"
        )
    raise WrongInput(
        f"the learner {name!r} is in the module {package!r}, which belongs to no installed"
        " distribution; name its file: 'file.py:Class'"
    )


def _version_of(distribution: Any) -> str:
    return f"{distribution.name} {distribution.version}"


@cache
def class_of(text: str) -> type:
    """The class that a reference names, or `LearnerChanged` if the code is another by now."""
    reference = Reference.of(text)
    if not reference.of_file and (found := installed(reference.name)) != reference:
        raise LearnerChanged(
            f"{reference.name}: this machine has {found.code}, but the sweep started with"
            f" {reference.code}; install the same version on every machine"
        )
    return cast(type, target.class_of(foreign_target(text)[1]))


def foreign_target(text: str) -> tuple[str, str, str]:
    """The name, class and file of a reference, as `foreign_learner` takes them."""
    reference = Reference.of(text)
    place, _, class_name = reference.name.partition(":")
    if reference.of_file:
        module = imported(place, reference.code)
        return reference.name, f"{module.__name__}:{class_name}", str(module.__file__)
    if reference.name == VW or class_name:
        return reference.name, reference.name, ""
    return reference.name, entry_points()[reference.name].value, ""
