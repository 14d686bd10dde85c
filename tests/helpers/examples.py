"""An example of the parameters of every learner: what makes a small one, or its defaults."""

from koco_stream.learners import LEARNERS

EXAMPLES = {name: {} for name in LEARNERS} | {
    "OGD": {"step_size": 0.3},
    "AdaGrad": {"step_size": 0.3},
    "NAG": {"step_size": 0.3},
    "FTRLProximal": {"step_size": 0.3, "l1": 0.1},
    "OjaSON": {"sketch_size": 3, "alpha": 0.5, "sketch_rate": 8.0},
    "ONS": {"alpha": 0.5},
    "RPSON": {"sketch_size": 3, "alpha": 0.5},
    "FDSON": {"sketch_size": 3, "alpha": 0.5},
    "RFDSON": {"sketch_size": 3},
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


def make(name, **more):
    return LEARNERS[name](**{**EXAMPLES[name], **more})


# Texts that a spreadsheet takes for formulas.
FORMULAS = ("=1+1", "+1+1", "-1+1", "@SUM(1)", '=HYPERLINK("http://a")')
