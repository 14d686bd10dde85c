"""All learners, and the registry of them by name. There is no plug-in discovery."""

from pathlib import Path

from koco_stream.errors import WrongInput, nearest
from koco_stream.learners.base import Learner
from koco_stream.learners.kernel.b_kons import BKONS
from koco_stream.learners.kernel.con_kons import CONKONS
from koco_stream.learners.kernel.dual_sgd import DualSGD
from koco_stream.learners.kernel.fogd import FOGD
from koco_stream.learners.kernel.kons import KONS
from koco_stream.learners.kernel.kors import KORS
from koco_stream.learners.kernel.nogd import NOGD
from koco_stream.learners.kernel.norma import NORMA
from koco_stream.learners.kernel.pros_n_kons import PROSNKONS
from koco_stream.learners.kernel.sketched_kons import SketchedKONS
from koco_stream.learners.linear.adagrad import AdaGrad
from koco_stream.learners.linear.fd_son import FDSON
from koco_stream.learners.linear.ogd import OGD
from koco_stream.learners.linear.oja_son import OjaSON
from koco_stream.learners.linear.ons import ONS
from koco_stream.learners.linear.rp_son import RPSON
from koco_stream.learners.saved import load_into
from koco_stream.learners.spec import Cost, Public, StreamSize

__all__ = [
    "BKONS",
    "CONKONS",
    "FDSON",
    "FOGD",
    "KONS",
    "KORS",
    "LEARNERS",
    "NOGD",
    "NORMA",
    "OGD",
    "ONS",
    "PROSNKONS",
    "RPSON",
    "AdaGrad",
    "Cost",
    "DualSGD",
    "Learner",
    "OjaSON",
    "Public",
    "SketchedKONS",
    "StreamSize",
    "learner_named",
    "load",
]

LEARNERS: dict[str, type[Learner]] = {
    learner.__name__: learner
    for learner in (
        *(OGD, AdaGrad, OjaSON, ONS, RPSON, FDSON),
        *(KORS, PROSNKONS, CONKONS, BKONS, KONS, SketchedKONS, NORMA, FOGD, NOGD, DualSGD),
    )
}


def learner_named(name: str) -> type[Learner]:
    """The class of the learner called `name`.

    An unknown name raises `WrongInput`, which suggests the nearest name.
    """
    if name not in LEARNERS:
        raise WrongInput(f"no learner is called {name!r}{nearest(name, list(LEARNERS))}")
    return LEARNERS[name]


def load(path: str | Path) -> Learner:
    """Load a learner saved with `Learner.save`.

    Parameters
    ----------
    path : str or Path
        The file.

    Returns
    -------
    Learner
        An instance of the library's class of that learner, even if a subclass was saved.

    Raises
    ------
    WrongInput
        The file is truncated, altered, of a newer format, or of another kind.
    """

    return load_into(path, LEARNERS, "which this version does not have; upgrade koco-stream")
