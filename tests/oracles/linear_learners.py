"""The literal reference of every linear learner, by its name and arguments, and how far from it a
learner may be.

A reference is run in long double, and several times in double. If these agree to 1e-9 of the clip,
so must the learner; where they do not, the stream is badly conditioned, and the learner's error may
be ten times what the worst reference in double has.
"""

from importlib import import_module
from pathlib import Path
from typing import NamedTuple

import numpy as np

from koco_stream.learners import LEARNERS
from tests.helpers.linear_streams import projections
from tests.oracles import first_order
from tests.oracles.losses import curvatures, slopes
from tests.oracles.sketched_newton import (
    FrequentDirections,
    FullMatrix,
    Oja,
    RandomProjection,
    SketchedNewton,
)

SMALL = 1e-9  # of the clip: what rounding may do to a prediction on a well-conditioned stream
MULTIPLE = 10  # of the error of references in double, on other streams
# from the round on where the error of a reference in double is this share of uᵀx, or of the clip,
# nothing is compared
LOST = 1e-2
# The modules in this folder that are called as a linear learner's file: they have the learner's
# text, a class of its name, and the options that it is run with, `CELLS`.
BY_FILE = {
    name: import_module(f"tests.oracles.{file}")
    for name, learner in LEARNERS.items()
    for room, file in [learner.__module__.rsplit(".", 2)[1:]]
    if room == "linear" and Path(__file__).with_name(f"{file}.py").exists()
}
FIRST_ORDER = {name: getattr(first_order, name) for name in LEARNERS if hasattr(first_order, name)}
FIRST_ORDER |= {name: getattr(module, name) for name, module in BY_FILE.items()}
WITH_EIGENVECTORS = ("RFDSON", "SAdaGrad", "AdaFD")


def options_of(name, *drawn):
    """A learner's arguments: its defaults, and of `drawn` those that it has."""
    own = {"seed": 0, **LEARNERS[name].defaults()}
    for more in drawn:
        own |= {k: v for k, v in more.items() if k in own}
    return own


class Reference(NamedTuple):
    """A learner's reference on given rows: `run` makes it anew. `options` are complete."""

    name: str
    options: dict
    X: np.ndarray
    y: np.ndarray

    def rows(self):
        """X, with the intercept's column if there is one."""
        return np.hstack([self.X, np.ones((len(self.X), int(self.options["fit_intercept"])))])

    def run(self, dtype=float, order=slice(None), noise=None):
        """The text after all rows, with the features in this order. `noise`: as in
        `SketchedNewton`.

        Products beyond the bound on predictions are looked at only of a matrix's learners.
        """
        o = {"projection": "prediction", **self.options, "noise": noise}
        o["slope"] = slopes[o["loss"]]
        if self.name in FIRST_ORDER:
            text = FIRST_ORDER[self.name](**o).run(self.rows()[:, order], self.y, dtype)
            text.products = text.predictions
            return text
        if "curvature" in o:
            o["curvature"] = o["curvature"] or curvatures[o["loss"]](o["clip"])
        if self.name == "AdaFD":
            o["alpha"] = o["delta"]
        sketch = self.sketch(len(self.X), order)
        return SketchedNewton(sketch=sketch, **o).run(self.rows()[:, order], self.y, dtype)

    def sketch(self, n, order):
        """A new sketch of such a learner, for n rows and the features in this order."""
        o, m = self.options, self.options.get("sketch_size")
        match self.name:
            case "ONS":
                return FullMatrix()
            case "OjaSON":
                if o["sketch_start"] == "gradients":
                    return Oja(m, o["sketch_rate"])
                none = np.zeros((0, self.X.shape[1]))
                V_0 = LEARNERS["OjaSON"](**o).partial_fit(none, np.zeros(0)).sketch_
                # without the rows that d leaves no room for
                return Oja(m, o["sketch_rate"], V_0[np.any(V_0 != 0, axis=1)][:, order])
            case "RPSON":
                return RandomProjection(projections(m, o["seed"], n))
        length = m if self.name == "FDSON" else min(-(-2 * m // 3), 14)
        return FrequentDirections(self.name, m, length)

    def in_double(self):
        """Runs in double, of which one may be right by luck: with the features in several orders,
        and with the noise that rounding makes.
        """
        d = self.rows().shape[1]
        backward, mixed = slice(None, None, -1), np.random.default_rng(0).permutation(d)
        for order in (slice(None), backward, mixed):
            run = self.run(order=order)
            run.w[order] = run.w.copy()  # in the order of the features
            yield run
        if self.name not in (*FIRST_ORDER, *WITH_EIGENVECTORS):
            yield from (self.run(noise=np.random.default_rng(seed)) for seed in range(2))


def assert_agrees(reference, predictions, model=None, small=SMALL):
    """The predictions are those of the reference in long double, as far as references in double say
    that they can be; so are the weights and the sketch of `model`. NaN stands for the rounds after
    a divergence. Returns the number of rounds that were compared at `small`.

    What double arithmetic may do is measured on uᵀx, since the bound on predictions hides what is
    beyond it.
    """
    clip = reference.options["clip"]
    with np.errstate(all="ignore"):
        exact, doubles = reference.run(np.longdouble), [*reference.in_double()]
        errors = np.max([np.abs(run.products - exact.products) for run in doubles], axis=0)
        errors = np.where(np.isfinite(errors), errors, np.inf).astype(float)
        sizes = np.maximum(clip, np.abs(exact.products)).astype(float)
        so_far = np.maximum.accumulate(errors / sizes)
        off = np.abs(predictions - exact.predictions) / clip
    allowed = np.maximum(small, MULTIPLE * np.maximum(errors / clip, so_far))
    known = ~np.isnan(predictions)
    wrong = np.flatnonzero(~(off <= allowed) & (so_far < LOST) & known)
    assert wrong.size == 0, (
        f"row {wrong[0]}: {predictions[wrong[0]]!r}, reference {exact.predictions[wrong[0]]!r};"
        f" error {float(off[wrong[0]]):.1e} of the clip, allowed {allowed[wrong[0]]:.1e}"
    )
    if model is not None and known.all() and so_far[-1] < LOST:
        w = exact.w.astype(float)
        lost = max(np.abs(run.w - w).max() for run in doubles)
        near = max(10 * SMALL * max(clip, np.abs(w).max()), MULTIPLE * lost)
        np.testing.assert_allclose(model.coef_, w, rtol=0, atol=near)
        if so_far[-1] < SMALL and reference.name not in (*FIRST_ORDER, "ONS"):
            assert_same_sketch(reference.name, model, exact.sketch)
    return int(np.sum((allowed == small) & known))


def assert_same_sketch(name, model, sketch):
    """The learner's sketch is the reference's, rows up to their sign where only that is defined."""
    near, S, found = {"rtol": 1e-8, "atol": 1e-8}, sketch.S.astype(float), model.sketch_
    if name == "OjaSON":
        filled = len(sketch.V)
        np.testing.assert_allclose(found[:filled], sketch.V.astype(float), **near)
        assert not found[filled:].any()
        np.testing.assert_allclose(
            model.eigenvalues_[:filled], sketch.eigenvalues.astype(float), **near
        )
        return
    if name == "RPSON":
        np.testing.assert_allclose(found, S, **near)
        return
    if name == "FDSON":
        np.testing.assert_allclose(model.buffer_, sketch.buffer.astype(float), **near)
        found = np.vstack([found, model.buffer_])
    size = max(np.abs(S.T @ S).max(), *map(float, sketch.rhos), 1.0)
    near = {"rtol": 0, "atol": 1e-8 * size}
    np.testing.assert_allclose(found.T @ found, S.T @ S, **near)
    if name == "FDSON":
        return
    assert int(model._state.diagnostics.shrinks) == len(sketch.rhos)
    assert (np.diff(model.eigenvalues_) <= 0).all()
    np.testing.assert_allclose(found @ found.T, np.diag(model.eigenvalues_), **near)
    if name != "AdaFD":
        np.testing.assert_allclose(model.alpha_, float(sketch.alpha), **near)
