"""A foreign learner's class, `package.module:Class`."""

import inspect
import pkgutil
from functools import cache
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

from koco_stream.errors import WrongInput, nearest
from koco_stream.extras import remedy


@cache
def class_of(target: str) -> Any:
    """The class that a target names."""
    module, _, name = ("vowpalwabbit:Workspace" if target == "vw" else target).partition(":")
    if not module or not name:
        raise WrongInput(f"{target!r} must have the form package.module:Class")
    inside = _imported(module)
    if not hasattr(inside, name):
        classes = [one for one, _ in inspect.getmembers(inside, inspect.isclass) if one[0] != "_"]
        place = module if inside.__package__ else Path(str(inside.__file__)).name
        raise WrongInput(f"{place} has no class {name!r}{nearest(name, classes)}")
    found = getattr(inside, name)
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
def signature_of(called: Any) -> inspect.Signature:
    """How a class or function is called; anyhow, if it is written in C and does not say."""
    try:
        return inspect.signature(called)
    except ValueError:
        return inspect.signature(lambda *_, **__: None)
