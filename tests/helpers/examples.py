"""An example of the parameters of every learner: what makes a small one, or its defaults.

Sketches have such sizes that with or without `diagonal` a line of a learner's table has the same
width: it is part of a type, and a learner is compiled for each.
"""

import inspect

import numpy as np

from koco_stream.learners import LEARNERS

EXAMPLES = {name: {} for name in LEARNERS} | {
    "Mixture": {
        "members": [
            {"name": "OjaSON", "sketch_size": 3, "alpha": [0.5, 5.0]},
            {"name": "KONS", "bandwidth": 2.0},
            {"name": "AdaGrad"},
        ]
    },
    "OGD": {"step_size": 0.3},
    "AdaGrad": {"step_size": 0.3},
    "NAG": {"step_size": 0.3},
    "FTRLProximal": {"step_size": 0.3, "l1": 0.1},
    "OjaSON": {"sketch_size": 3, "alpha": 0.5, "sketch_rate": 8.0},
    "ONS": {"alpha": 0.5},
    "RPSON": {"sketch_size": 2, "alpha": 0.5},
    "FDSON": {"sketch_size": 2, "alpha": 0.5},
    "RFDSON": {"sketch_size": 3, "alpha": 0.0},
    "SAdaGrad": {"sketch_size": 3, "step_size": 0.3},
    "AdaFD": {"sketch_size": 3, "step_size": 0.3},
    "KONS": {"alpha": 0.5, "bandwidth": 2.0},
    "SketchedKONS": {"alpha": 0.5, "bandwidth": 2.0, "sampling_floor": 0.2},
    "KAWV": {"alpha": 0.5, "bandwidth": 2.0},
    "PKAWV": {"alpha": 0.5, "bandwidth": 2.0},
    "NONSALD": {"alpha": 0.5, "bandwidth": 2.0},
    "NORMA": {"step_size": 0.2, "bandwidth": 2.0, "budget": 30},
    "KORS": {"bandwidth": 2.0},
    "PROSNKONS": {"alpha": 0.5, "bandwidth": 2.0},
    "CONKONS": {"alpha": 0.5, "bandwidth": 2.0},
    "BKONS": {"alpha": 0.5, "bandwidth": 2.0, "max_dictionary": 7},
    "FOGD": {"step_size": 0.3, "n_frequencies": 21, "bandwidth": 2.0},
    "NOGD": {"step_size": 0.3, "budget": 20, "rank": 7, "bandwidth": 2.0},
    "DualSGD": {"regularisation": 0.1, "budget": 20, "n_frequencies": 21, "bandwidth": 2.0},
}


def width_of(name, given):
    """The width of a line of the learner's table, which is part of a type; 0 if it has none."""
    public = LEARNERS[name].complete({q: v for q, v in given.items() if q != "seed"})
    return len(getattr(LEARNERS[name].to_params(public), "shape", ()))


def sizes_of(name, given):
    """The sketch sizes up to 6 with which a learner with these arguments is not compiled anew."""
    width = width_of(name, EXAMPLES[name])
    return [m for m in range(1, 7) if width_of(name, {**given, "sketch_size": m}) == width]


def make(name, **more):
    return LEARNERS[name](**{**EXAMPLES[name], **more})


def public(model):
    """Every public attribute, read."""
    return {
        name: np.asarray(getattr(model, name)).tobytes()
        for name, value in inspect.getmembers(type(model))
        if isinstance(value, property) and name.endswith("_") and not name.startswith("_")
    }


# Texts that a spreadsheet takes for formulas.
FORMULAS = ("=1+1", "+1+1", "-1+1", "@SUM(1)", '=HYPERLINK("http://a")')
