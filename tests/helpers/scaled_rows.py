"""Small streams of many kinds, to be multiplied by scales of any size."""

import numpy as np

from koco_stream.learners.record import doubtful_rounds

N, D = 25, 6
SMALL, RIGHT, MULTIPLE = 1e-7, 1e-6, 10  # of the clip
SCALES, ALPHAS = (1e-8, 1e-4, 1.0, 1e2, 1e4, 1e8), (1e-6, 1e-2, 1.0, 1e6)
KINDS = [
    *("dense", "sparse", "repeated", "collinear", "offset", "graded", "doubled", "constant"),
    *("zeros", "one", "few"),
]


def rows(kind):
    """Rows (n, d) and labels (n,) of a kind."""
    draw = np.random.default_rng(len(kind))
    X = draw.standard_normal((N, D))
    y = np.where(draw.random(N) < 0.3, draw.uniform(-1, 1, N), draw.choice([-1.0, 1.0], N))
    kinds = {
        "dense": X,
        "sparse": X * (draw.random((N, D)) < 0.4),
        "repeated": X[draw.integers(0, 5, N)],
        "collinear": draw.standard_normal((N, 1)) * X[0] + 1e-6 * X,
        "offset": X + 1e4,
        "graded": X * 10.0 ** np.linspace(-4, 4, D),
        "doubled": X[:, np.arange(D) // 2],
        "constant": np.hstack([np.ones((N, 2)), X[:, 2:]]),
        "zeros": X * (np.arange(N) % 3 > 0)[:, np.newaxis],
        "one": X[:, :1],
        "few": X[:2],
    }
    return kinds[kind], y[: len(kinds[kind])]


def assert_right_or_said(learnt):
    """`learnt(number, X, y, alpha)` gives the model after the rows of a kind, its predictions, its
    literal text in long double, those in double, as functions, and the power of a row's length that
    its steps grow with. The predictions are as good as the texts in double, or rounds are doubtful;
    few are that without need, and none where scales are moderate.
    """
    right = doubted = 0
    for number, kind in enumerate(KINDS):
        X, y = rows(kind)
        for scale in SCALES:
            for alpha in ALPHAS[number % 2 :: 2]:
                model, found, exact, doubles, power = learnt(number, X * scale, y, alpha)
                with np.errstate(all="ignore"):
                    expected = exact()
                    worst = max(
                        np.nan_to_num(abs(one() - expected), nan=np.inf).max() for one in doubles
                    )
                off, doubtful = abs(found - expected).max(), doubtful_rounds([model._state])
                context = kind, scale, alpha, off, worst
                if not off <= max(MULTIPLE * worst, SMALL):
                    assert doubtful > 0, context
                moderate = 1e-4 <= scale**power <= 1e4 and 1e-2 <= alpha <= 1e2
                if moderate and kind not in ("offset", "graded"):
                    assert doubtful == 0, context
                right += off <= RIGHT
                doubted += off <= RIGHT and doubtful > 0
    assert doubted <= 0.1 * right
