"""The peers: Vowpal Wabbit's own driver, River, scikit-learn.

Vowpal Wabbit learns inside its C++ driver from its binary cache. A measurement is the marginal
pass: the time of three passes less the time of one, halved, both on the same cache; so starting,
reading text, writing the cache and initialising weights are out. That all passes were made is
checked by the weighted example count. Its thread that reads the cache shares the core with the
learning.
"""

from pathlib import Path

import numpy as np
import scipy.sparse
from river import linear_model, optim
from sklearn.linear_model import SGDRegressor
from vowpalwabbit import Workspace

from tests.bench.data import Stream, first
from tests.bench.measure import seconds
from tests.bench.ours import ALPHAS, STEPS

PASSES = 3


class VW:
    """Vowpal Wabbit with some options on one stream, whose text and cache lie in `folder`."""

    def __init__(self, name: str, options: str, stream: Stream, folder: Path) -> None:
        self.name, self.options, self.stream = name, options, stream
        self.text = folder / "rows.vw"
        self.bits = max(int(np.ceil(np.log2(stream.d))), 4)
        if not self.text.exists():
            write_text(stream, self.text)
            Workspace(arg_list=[*self.arguments(1), "-k"]).finish()  # writes the cache

    def arguments(self, passes: int, *more: str) -> list[str]:
        """The command line."""
        fixed = [
            "-d",
            str(self.text),
            "-c",
            "--passes",
            str(passes),
            "--holdout_off",
            "--noconstant",
            "--quiet",
            "-b",
            str(self.bits),
        ]
        return [*fixed, *self.options.split(), *more]

    def grid(self, quick: bool) -> list[tuple[str, ...]]:
        """What is tried: as many as for ours, alpha and the sketch's rate, or the learning rate."""
        if "--OjaNewton" not in self.options:
            return [("-l", f"{step:g}") for step in STEPS[:: 3 if quick else 1]]
        alphas = ALPHAS[2::2] if quick else ALPHAS
        return [
            ("--alpha_inverse", f"{1 / a:g}", "--learning_rate_cnt", rate)
            for rate in ("2", "64")
            for a in alphas
        ]

    def predictions(self, *tuned: str) -> np.ndarray:
        """Progressive predictions of the first pass; NaN if VW gave up."""
        out = self.text.with_suffix(".predictions")
        try:
            Workspace(arg_list=self.arguments(1, *tuned, "-p", str(out))).finish()
            found = np.loadtxt(out, ndmin=1)
        except (RuntimeError, ValueError):
            found = np.zeros(0)
        return found if found.size == self.stream.n else np.full(self.stream.n, np.nan)

    def passes_seconds(self, passes: int, *tuned: str) -> float:
        """The time of a whole call with that many passes. Raises `RuntimeError` if they did not all
        be made.
        """
        made: list[Workspace] = []
        taken = seconds(lambda: made.append(Workspace(arg_list=self.arguments(passes, *tuned))))
        seen = made[0].get_weighted_examples()
        made[0].finish()
        if seen != passes * self.stream.n:
            raise RuntimeError(
                f"{self.name}: {seen:g} examples seen, and {passes} passes over {self.stream.n}"
                " rows were asked for"
            )
        return taken

    def marginal_us(self, *tuned: str) -> float:
        """µs an example of one more pass."""
        one, three = self.passes_seconds(1, *tuned), self.passes_seconds(PASSES, *tuned)
        return 1e6 * (three - one) / (PASSES - 1) / self.stream.n


def vowpal_wabbits(stream: Stream, folder: Path) -> list[VW]:
    """VW's sketched Newton as it comes, the same without its normalisation of features, and
    AdaGrad.
    """
    folder.mkdir(parents=True, exist_ok=True)
    oja = "--OjaNewton --sketch_size 10 --epoch_size 1"
    return [
        VW("VW OjaNewton m=10", oja, stream, folder),
        VW("VW OjaNewton m=10, no normalising", f"{oja} --normalize false", stream, folder),
        VW("VW AdaGrad", "--adaptive", stream, folder),
    ]


def write_text(stream: Stream, path: Path) -> None:
    """The rows in VW's text format, features numbered from 0."""
    X = scipy.sparse.csr_array(stream.X)
    with path.open("w") as out:
        for t in range(stream.n):
            lo, hi = X.indptr[t], X.indptr[t + 1]
            row = zip(X.indices[lo:hi].tolist(), X.data[lo:hi].tolist(), strict=True)
            out.write(f"{stream.y[t]:g} |" + "".join(f" {j}:{v:.9g}" for j, v in row) + "\n")


class River:
    """River's linear regression with AdaGrad, over a list of dicts made beforehand."""

    name = "River AdaGrad"

    def __init__(self, stream: Stream, n: int) -> None:
        self.stream = first(stream, n)
        X = scipy.sparse.csr_array(self.stream.X)
        cuts = zip(X.indptr[:-1], X.indptr[1:], strict=True)
        self.rows = [
            dict(zip(X.indices[lo:hi].tolist(), X.data[lo:hi].tolist(), strict=True))
            for lo, hi in cuts
        ]
        self.labels = self.stream.y.tolist()

    def predictions(self, step: float) -> np.ndarray:
        """Progressive predictions, held within [−1, 1] afterwards."""
        model = linear_model.LinearRegression(optimizer=optim.AdaGrad(step), intercept_lr=0.0)
        out = []
        for x, y in zip(self.rows, self.labels, strict=True):
            out.append(model.predict_one(x))
            model.learn_one(x, y)
        return np.clip(out, -1, 1)

    def us(self, step: float) -> float:
        """µs a round: predict, learn."""
        return 1e6 / self.stream.n * seconds(lambda: self.predictions(step))


class ScikitLearn:
    """scikit-learn's SGDRegressor."""

    name = "scikit-learn SGD, row by row"

    def __init__(self, stream: Stream, n: int) -> None:
        self.whole, self.stream = stream, first(stream, n)
        self.rows = [self.stream.X[t : t + 1] for t in range(self.stream.n)]

    def model(self, step: float) -> SGDRegressor:
        """A new one, without penalty or intercept, with a constant step."""
        return SGDRegressor(
            penalty=None, fit_intercept=False, learning_rate="constant", eta0=step, shuffle=False
        )

    def predictions(self, step: float) -> np.ndarray:
        """Progressive predictions row by row, held within [−1, 1] afterwards."""
        model = self.model(step)
        out = np.zeros(self.stream.n)
        for t, x in enumerate(self.rows):
            out[t] = model.predict(x)[0] if t else 0.0
            model.partial_fit(x, self.stream.y[t : t + 1])
        return np.clip(out, -1, 1)

    def us(self, step: float) -> float:
        """µs a round: predict, partial_fit."""
        return 1e6 / self.stream.n * seconds(lambda: self.predictions(step))

    def whole_us(self, step: float) -> float:
        """µs a row of one partial_fit over the whole stream: no predictions."""
        model = self.model(step)
        return 1e6 / self.whole.n * seconds(lambda: model.partial_fit(self.whole.X, self.whole.y))
