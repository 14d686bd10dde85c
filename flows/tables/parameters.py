"""Parameters in words: which of them tell configurations apart, and how they are written."""

import re
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping
from typing import Any

from koco_stream.io.files import json_text
from koco_stream.learners import LEARNERS, shown_name

Params = Mapping[str, Any]


def varied(learner: str, configurations: Iterable[Params]) -> dict[str, list[Any]]:
    """Values of each parameter that is not the same in all configurations of a learner, sorted."""
    values: dict[str, set[Any]] = defaultdict(set)
    if learner in LEARNERS:
        values |= {parameter.name: set() for parameter in LEARNERS[learner].parameters}
    for params in configurations:
        for name, value in params.items():
            values[name].add(json_text(value) if isinstance(value, list | dict) else value)
    return {name: sorted(found, key=sort_key) for name, found in values.items() if len(found) > 1}


def sort_key(value: Any) -> tuple[bool, Any]:
    """Numbers come first, then texts and None; numbers in texts count as numbers."""
    if value is None or isinstance(value, str):
        parts = re.split(r"(\d+)", str(value))  # every second one is a number
        return True, [int(part) if k % 2 else part for k, part in enumerate(parts)]
    return False, value


def telling(learner: str, params: Params, among: Iterable[str]) -> list[str]:
    """Parameters that distinguish a configuration: those in `among`, or not at their default."""
    if learner not in LEARNERS:
        return list(params)
    one = LEARNERS[learner]
    usual = dict(one.defaults())
    if usual.get("curvature", 0) is None and {"loss", "clip"} <= params.keys():
        usual["curvature"] = one.usual_curvature(str(params["loss"]), float(params["clip"]))
    return [name for name, value in params.items() if name in among or usual.get(name) != value]


def params_text(params: Params, only: Collection[str]) -> str:
    return " ".join(
        f"{name}={value:g}" if isinstance(value, float) else f"{name}={shown(value)}"
        for name, value in sorted(params.items())
        if name in only
    )


def shown(value: Any) -> Any:
    """A value in words; of a mixture's members, how many there are of each learner."""
    if not (isinstance(value, list) and isinstance(value[0], dict) and "name" in value[0]):
        return value
    counts = Counter(shown_name(one["name"]) for one in value)
    return "+".join(f"{n}·{name}" if n > 1 else name for name, n in counts.items())
