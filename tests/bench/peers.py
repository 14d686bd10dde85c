"""The peer: Vowpal Wabbit's own driver.

Vowpal Wabbit learns inside its C++ driver from its binary cache. A measurement is the marginal
pass: the time of three passes less the time of one, halved, both on the same cache; so starting,
reading text, writing the cache and initialising weights are out. That all passes were made is
checked by the weighted example count. Its thread that reads the cache shares the core with the
learning.
"""

from pathlib import Path

import numpy as np
import scipy.sparse
from vowpalwabbit import Workspace

from tests.bench.data import Stream
from tests.bench.measure import seconds
from tests.bench.ours import ALPHAS

PASSES = 3
OJA = "--OjaNewton --sketch_size 10 --epoch_size 1"


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
        fixed = f"-c --passes {passes} --holdout_off --noconstant --quiet -b {self.bits}"
        return ["-d", str(self.text), *fixed.split(), *self.options.split(), *more]

    def grid(self, quick: bool) -> list[tuple[str, ...]]:
        """What is tried: as many as for ours, alpha and the sketch's rate."""
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
    """VW's sketched Newton as it comes, and the same without its normalisation of features."""
    folder.mkdir(parents=True, exist_ok=True)
    return [
        VW("VW OjaNewton m=10", OJA, stream, folder),
        VW("VW OjaNewton m=10, no normalising", f"{OJA} --normalize false", stream, folder),
    ]


def write_text(stream: Stream, path: Path) -> None:
    """The rows in VW's text format, features numbered from 0."""
    X = scipy.sparse.csr_array(stream.X)
    with path.open("w") as out:
        for t in range(stream.n):
            lo, hi = X.indptr[t], X.indptr[t + 1]
            row = zip(X.indices[lo:hi].tolist(), X.data[lo:hi].tolist(), strict=True)
            out.write(f"{stream.y[t]:g} |" + "".join(f" {j}:{v:.9g}" for j, v in row) + "\n")
