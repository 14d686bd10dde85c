"""The generators of synthetic datasets by name: their parameters, what they may be, and the names
of the datasets that come of them.
"""

import inspect
from collections.abc import Callable
from typing import Any

from koco_stream.errors import WrongInput, nearest
from storage.generated.streams import Blocks, dense_stream, sparse_text
from storage.generated.tables import adversary, ill_conditioned, slice_like
from storage.preparing.transform import MOST_DENSE_VALUES, SCALES
from storage.sources.source import Piece

LIMIT = 2**63
TABLES: dict[str, Callable[..., Piece]] = {
    "ill-conditioned": ill_conditioned,
    "adversary": adversary,
    "slice-like": slice_like,
}
STREAMS: dict[str, Callable[..., Blocks]] = {
    "sparse-text": sparse_text,
    "dense-stream": dense_stream,
}
GENERATORS: dict[str, Callable[..., Piece] | Callable[..., Blocks]] = {**TABLES, **STREAMS}
OF_DENSE_ROWS = tuple(scale for scale in SCALES if scale != "tf-idf")
CHOICES = {
    "sparse-text": {"scale": ("unit-rows", "none")}
}  # of a generator's own parameters that are words
ABOUT = {
    "ill-conditioned": ("classification", "SON 2016"),
    "adversary": ("regression", "KONS 2017"),
    "slice-like": ("regression", "PROS-N-KONS 2017"),
    "sparse-text": ("classification", "SON 2016"),
    "dense-stream": ("regression", "PROS-N-KONS 2017"),
}


def own_parameters(generator: str) -> dict[str, Any]:
    """The generator's own parameters and their defaults."""
    return {
        name: p.default for name, p in inspect.signature(GENERATORS[generator]).parameters.items()
    }


def parameters_of(generator: str) -> dict[str, Any]:
    """The parameters of a generated dataset and their defaults: `scale`, which is done to the rows
    that were made, and the generator's.
    """
    return {**own_parameters(generator), "scale": own_parameters(generator).get("scale", "none")}


def synthetic_name(generator: str, given: dict[str, Any]) -> str:
    """The dataset's name: the generator's, then what was given, in the generator's order. Raises
    `WrongInput` for what it does not take.
    """
    known = parameters_of(generator)
    for name, value in given.items():
        if name not in known:
            raise WrongInput(f"{generator} has no parameter {name!r}{nearest(name, list(known))}")
        if isinstance(known[name], str):
            choices = CHOICES.get(generator, {}).get(name, OF_DENSE_ROWS)
            if value not in choices:
                raise WrongInput(
                    f"{generator}: {name} must be one of {', '.join(choices)}, not {value!r}"
                )
            continue
        whole = isinstance(known[name], int)
        if (
            isinstance(value, bool)
            or not isinstance(value, int | float)
            or not 0 < value < LIMIT
            or (whole and value != int(value))
        ):
            raise WrongInput(
                f"{generator}: {name} must be a positive {'whole ' if whole else ''}number below"
                f" {LIMIT:g}, not {value!r}"
            )
    values = all_values(generator, given)
    if generator in STREAMS:
        STREAMS[generator](
            **own_values(generator, given)
        )  # which makes no rows, and refuses parameters that do not go together
    elif values["n_rows"] * values["n_features"] > MOST_DENSE_VALUES:
        raise WrongInput(
            f"{generator}: n_rows = {values['n_rows']} of n_features = {values['n_features']} are"
            f" more than {MOST_DENSE_VALUES:,} values"
        )
    return ",".join(
        [generator, *(f"{name}={_text(values[name])}" for name in known if name in given)]
    )


def _text(value: float | str) -> str:
    """The shortest text that says exactly this number: 10 for 10.0. A word as it is."""
    return value if isinstance(value, str) else repr(value).removesuffix(".0")


def all_values(generator: str, given: dict[str, Any]) -> dict[str, Any]:
    """All the generator's parameters: those given, in the type of their defaults, and the
    defaults.
    """
    return {
        name: type(default)(given.get(name, default))
        for name, default in parameters_of(generator).items()
    }


def own_values(generator: str, given: dict[str, Any]) -> dict[str, Any]:
    """`all_values` of the generator's own parameters."""
    own = own_parameters(generator)
    return {name: value for name, value in all_values(generator, given).items() if name in own}


def scale_of(generator: str, given: dict[str, Any]) -> str:
    """How the rows are to be scaled once they are made; none for a generator that scales them
    itself.
    """
    return (
        "none"
        if "scale" in own_parameters(generator)
        else str(all_values(generator, given)["scale"])
    )


def expected_values(generator: str, given: dict[str, Any]) -> int:
    """How many values the dataset will have, non-zeros if it is sparse: about as many, before it is
    made.
    """
    values = all_values(generator, given)
    return int(values["n_rows"] * values.get("mean_nonzeros", values["n_features"]))
