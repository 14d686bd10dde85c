"""Tables 1 and 2 of the PROS-N-KONS paper (Calandriello, Lazaric, Valko, NIPS 2017), as printed."""

from functools import cache
from pathlib import Path
from typing import NamedTuple

from pyarrow.csv import read_csv


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
PRINTED = Path(__file__).with_name("poster_published.csv")
ROUNDS = {
    "parkinsons": 5_875,
    "cpusmall": 8_192,
    "cadata": 20_640,
    "casp": 45_730,
    "ijcnn1": 141_691,
    "cod-rna": 271_617,
}


@cache
def published_tables() -> dict[tuple[str, float], dict[str, Published]]:
    """The rows of both tables: learner by learner, for each dataset and α."""
    tables: dict[tuple[str, float], dict[str, Published]] = {}
    for row in read_csv(PRINTED).to_pylist():
        of_whom = row.pop("dataset"), row.pop("alpha")
        learner = row.pop("learner")
        tables.setdefault(of_whom, {})[learner] = Published(**row)
    return tables
