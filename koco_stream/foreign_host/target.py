"""A foreign learner's class, `package.module:Class`, whose public methods say how it is called."""

import inspect
import pkgutil
from functools import cache
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

from koco_stream.errors import WrongInput, nearest
from koco_stream.extras import remedy

VOWPAL_WABBIT, RIVER, SCIKIT_LEARN = "vw", "river", "scikit-learn"
SHORT = {"vw": "vowpalwabbit:Workspace"}  # targets that have a short name
# A constructor's argument that is the seed of its random numbers.
SEEDS = ("seed", "random_state")
SEED_LIMIT = 2**32  # random_state and NumPy's own generator take no larger seeds


@cache
def class_of(target: str) -> Any:
    """The class that a target names."""
    module, _, path = SHORT.get(target, target).partition(":")
    if not module or not path:
        raise WrongInput(f"{target!r} must have the form package.module:Class")
    found: Any = _imported(module)
    for part in path.split("."):
        if not hasattr(found, part):
            inside = [name for name, value in vars(found).items() if inspect.isclass(value)]
            names = [name for name in inside if not name.startswith("_")]
            place = module if found.__package__ else Path(found.__file__).name
            raise WrongInput(f"{place} has no class {path!r}{nearest(part, names)}")
        found = getattr(found, part)
    if not inspect.isclass(found):
        raise WrongInput(f"{target} is not a class, but of type {type(found).__name__}")
    return found


def _imported(module: str) -> ModuleType:
    try:
        return import_module(module)
    except ModuleNotFoundError as error:
        missing = error.name or module
        parent, _, last = missing.rpartition(".")
        if parent and module.startswith(missing):
            inside = [info.name for info in pkgutil.iter_modules(_imported(parent).__path__)]
            raise WrongInput(f"{parent} has no module {last!r}{nearest(last, inside)}") from None
        raise WrongInput(
            remedy(error)
            or f"{missing} is not installed, and {module} needs it: install its package in this"
            " Python's environment, or add its folder to PYTHONPATH"
        ) from None
    except Exception as error:  # importing a module may raise anything
        raise WrongInput(f"{module} cannot be imported: {type(error).__name__}: {error}") from error


@cache
def kind_of(target: str) -> str:
    """How a target's class is called."""
    found = class_of(target)

    def has(*names: str) -> bool:
        return all(callable(getattr(found, name, None)) for name in names)

    if has("example", "learn", "finish_example"):
        return VOWPAL_WABBIT
    if has("learn_one", "predict_one") and _takes(found.learn_one, 2):
        return RIVER
    if has("partial_fit") and (has("predict") or has("decision_function")):
        return SCIKIT_LEARN
    raise WrongInput(
        f"{target} has neither learn_one(x, y) and predict_one(x), as River's learners have, nor"
        " partial_fit and predict or decision_function, as scikit-learn's that learn row by row"
        " have"
    )


def learns_classes(learner: Any) -> bool:
    """Whether `partial_fit` is told the classes."""
    signature = _signature(learner.partial_fit)
    return signature is not None and "classes" in signature.parameters


@cache
def constructor_of(target: str) -> inspect.Signature | None:
    """The constructor's signature, if it has one."""
    return _signature(class_of(target))


def seed_argument(target: str) -> str | None:
    """The constructor's argument that is a seed, if any."""
    signature = constructor_of(target)
    names = signature.parameters if signature else ()
    return next((name for name in SEEDS if name in names), None)


def _signature(called: Any) -> inspect.Signature | None:
    try:
        return inspect.signature(called)
    except ValueError:  # as of some classes that are written in C
        return None


def _takes(method: Any, arguments: int) -> bool:
    signature = _signature(method)
    if signature is None:
        return True
    kinds = [parameter.kind for parameter in signature.parameters.values()]
    return inspect.Parameter.VAR_POSITIONAL in kinds or len(kinds) > arguments
