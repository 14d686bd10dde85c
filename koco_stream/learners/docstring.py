"""A learner class's docstring, completed with what is written elsewhere: its parameters, from their
declarations and the constructor's signature, and its attributes, from the properties' docstrings.
"""

import inspect
import re
import textwrap
from collections.abc import Sequence

from koco_stream.learners.parameter import Parameter


def completed(cls: type, declared: Sequence[Parameter]) -> str:
    """The docstring with the sections Parameters and Attributes, before all other sections."""
    text = inspect.cleandoc(cls.__doc__ or "")
    first = re.search(r"^\w+\n---", text, re.MULTILINE)
    place = first.start() if first else len(text)
    sections = [text[:place].rstrip(), _parameters(cls, declared), _attributes(cls), text[place:]]
    return "\n\n".join(filter(None, sections)) + "\n"


def _parameters(cls: type, declared: Sequence[Parameter]) -> str:
    known = {parameter.name: parameter for parameter in declared}
    lines = ["Parameters", "----------"]
    for name, argument in inspect.signature(cls).parameters.items():
        if name in known:
            q = known[name]
            default = "optional" if argument.default is None else f"default {argument.default!r}"
            allowed = f" ({q.range_words})" if q.range_words else ""
            said = "; ".join(filter(None, [q.meaning + allowed, q.condition]))
            lines += [f"{name} : {q.type_words}, {default}", _indented(f"{said}. {q.note}")]
    return "\n".join(lines)


def _attributes(cls: type) -> str:
    found = {
        name: _indented(inspect.cleandoc(value.__doc__ or ""))
        for base in reversed(cls.__mro__)
        for name, value in vars(base).items()
        if isinstance(value, property) and name.endswith("_")
    }
    lines = [line for pair in found.items() for line in pair]
    return "\n".join(["Attributes", "----------", *lines]) if lines else ""


def _indented(text: str) -> str:
    return textwrap.fill(text.strip(), 96, initial_indent="    ", subsequent_indent="    ")
