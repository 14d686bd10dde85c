"""Tables 1 and 2 of the PROS-N-KONS paper (Calandriello, Lazaric, Valko, NIPS 2017), as printed."""

from typing import NamedTuple


class Published(NamedTuple):
    """A row of Table 1 or 2: mean and standard deviation, dictionary size (#SV) and seconds.

    The mean is of the loss for regression, and of the error rate for classification. Values that
    the paper does not give are None.
    """

    mean: float
    std: float
    size: float | None = None
    seconds: float | None = None


# As printed, but Table 2's percentages as fractions (docs/errata.md, T1). #SV of FOGD and NOGD are
# left out, because they are budgets and not results (T3).
ROUNDS = {
    "parkinsons": 5_875,
    "cpusmall": 8_192,
    "cadata": 20_640,
    "casp": 45_730,
    "ijcnn1": 141_691,
    "cod-rna": 271_617,
}
TABLES: dict[tuple[str, float], dict[str, Published]] = {
    ("parkinsons", 1.0): {
        "PROSNKONS": Published(0.05798, 0.00136, 18, 5.16),
        "CONKONS": Published(0.05696, 0.00129, 18, 5.21),
        "BKONS": Published(0.05795, 0.00172, 18, 5.35),
        "Batch": Published(0.04535, 0.00002),
        "FOGD": Published(0.04909, 0.00020),
        "NOGD": Published(0.04896, 0.00068),
    },
    ("cpusmall", 1.0): {
        "PROSNKONS": Published(0.02494, 0.00141, 20, 7.28),
        "CONKONS": Published(0.02269, 0.00164, 20, 7.40),
        "BKONS": Published(0.02496, 0.00177, 20, 7.37),
        "Batch": Published(0.01090, 0.00082),
        "FOGD": Published(0.02577, 0.00050),
        "NOGD": Published(0.02559, 0.00024),
    },
    ("cadata", 1.0): {
        "PROSNKONS": Published(0.03095, 0.00110, 20, 18.59),
        "CONKONS": Published(0.02850, 0.00174, 19, 18.45),
        "BKONS": Published(0.03095, 0.00118, 19, 18.65),
        "Batch": Published(0.02202, 0.00002),
        "FOGD": Published(0.04097, 0.00015),
        "NOGD": Published(0.03983, 0.00018),
    },
    ("casp", 1.0): {
        "PROSNKONS": Published(0.06773, 0.00105, 21, 40.73),
        "CONKONS": Published(0.06832, 0.00315, 20, 40.91),
        "BKONS": Published(0.06775, 0.00067, 21, 41.13),
        "Batch": Published(0.06100, 0.00003),
        "FOGD": Published(0.08021, 0.00031),
        "NOGD": Published(0.07844, 0.00008),
    },
    ("ijcnn1", 1.0): {
        "PROSNKONS": Published(0.0970, 0.0001, 100, 211.91),
        "CONKONS": Published(0.0964, 0.0001, 101, 215.71),
        "BKONS": Published(0.0970, 0.0001, 98, 206.53),
        "Batch": Published(0.0833, 0.0003),
        "FOGD": Published(0.0906, 0.0005),
        "NOGD": Published(0.0955, 0.0001),
        "DualSGD": Published(0.0835, 0.0020),
    },
    ("cod-rna", 1.0): {
        "PROSNKONS": Published(0.1395, 0.0119, 38, 270.81),
        "CONKONS": Published(0.1899, 0.0947, 38, 271.85),
        "BKONS": Published(0.1399, 0.0116, 38, 274.94),
        "Batch": Published(0.03781, 0.0001),
        "FOGD": Published(0.1030, 0.0010),
        "NOGD": Published(0.1380, 0.0210),
        "DualSGD": Published(0.0483, 0.0021),
    },
    ("ijcnn1", 0.01): {
        "PROSNKONS": Published(0.1073, 0.0012, 436, 1003.82),
        "CONKONS": Published(0.0623, 0.0018, 432, 987.33),
        "BKONS": Published(0.0485, 0.0008, 100, 147.22),
        "Batch": Published(0.0561, 0.0001),
    },
    ("cod-rna", 0.01): {
        "PROSNKONS": Published(0.0491, 0.0004, 111, 459.28),
        "CONKONS": Published(0.0581, 0.0196, 111, 458.90),
        "BKONS": Published(0.0457, 0.0005, 100, 333.57),
        "Batch": Published(0.0361, 0.0001),
    },
}
