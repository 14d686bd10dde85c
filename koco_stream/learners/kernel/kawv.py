"""KAWV: kernel ridge regression over all past rows.

Jézéquel, Gaillard, Rudi: Efficient online learning with kernels for adversarial large scale
problems (NeurIPS 2019). In round t the prediction is f(x_t) of the f with the least Σ_{s<t} (f(x_s)
− y_s)² + f(x_t)² + α‖f‖²: ŷ = k_tᵀ(K_t + αI)⁻¹(y_1, …, y_{t−1}, 0), with K_t over the rows up to
x_t. Labels like V1 refer to docs/errata.md.

With LLᵀ = K + αI over the rows before x_t, Lv = k and Ls = y, this is ŷ = vᵀs·α/(α + q) with q =
k(x_t, x_t) − ‖v‖² (V2). The state is that of KONS, with D = I and all rows in the sketch: see
koco_stream.learners.kernel.kons. A row adds a row to L, and a number to s.
"""

from koco_stream.learners.kernel import sketch
from koco_stream.learners.kernel.base import LEAST, count_doubt, held, note_step
from koco_stream.learners.kernel.kons import KernelNewtonStep, Params, State
from koco_stream.learners.kernel.sketch import S, V
from koco_stream.learners.spec import ALPHA, KERNEL_SHAPE, SHARED
from koco_stream.numerics.compiler import inlined
from koco_stream.numerics.instructions.point_panels import panel_dot
from koco_stream.types import Array

MOST_CLIPS = 2e9  # as `losses.MOST_CLIPS`; what is learnt does not depend on predictions


@inlined
def inspect(params: Params, s: State, tile: Array, r: int, k_tt: float) -> tuple[float, float]:
    """vᵀs and q for row r of the tile. Leaves v in the sketch's scratch."""
    q = sketch.solve(s.sketch, tile, r, k_tt)
    return panel_dot(s.sketch.a[V], 0, s.sketch.a[S], 0, int(s.sketch.n[()])), q


@inlined
def forward(params: Params, s: State, tile: Array, r: int, first: int, k_tt: float) -> float:
    f, q = inspect(params, s, tile, r, k_tt)
    return f * (params.alpha / (params.alpha + max(q, 0.0)))


@inlined
def step(params: Params, s: State, tile: Array, r: int, first: int, k_tt: float, y: float) -> float:
    t = s.t[()] + 1
    s.t[()] = t
    s.included[()] = False
    if k_tt == 0.0:
        return 0.0  # φ = 0: the row has no effect
    f, q = inspect(params, s, tile, r, k_tt)
    y_hat = f * (params.alpha / (params.alpha + max(q, 0.0)))
    if not q > LEAST * k_tt:
        s.doubtful_rounds[()] += 1
        return held(y_hat + 0.0 * q, params.clip)
    count_doubt(s, k_tt, y_hat, params.clip, most=MOST_CLIPS)
    note_step(s, y - f, params.alpha / (params.alpha + q), 0.0, k_tt, params.alpha)
    s.included[()] = True
    n = int(s.sketch.n[()])
    pivot = sketch.add_point(s.sketch, t, 1.0, params.alpha, q)
    s.sketch.a[S, n] = (y - f) / pivot
    s.dictionary_size[()] = n + 1
    return held(y_hat, params.clip)


class KAWV(KernelNewtonStep):
    """The exact kernel ridge forecaster, in O(t² + ts) a round and O(t²) memory.

    It learns by least squares with ridge α from all rows so far, and adds this round's row with the
    label 0 before it predicts.

    Notes
    -----
    Kernel-AWV of Jézéquel, Gaillard, Rudi (NeurIPS 2019).
    """

    parameters = (*SHARED, ALPHA, *KERNEL_SHAPE)
    step, forward = staticmethod(step), staticmethod(forward)

    def __init__(
        self,
        alpha: float = 1.0,
        *,
        kernel: str = "gaussian",
        bandwidth: float = 1.0,
        degree: int = 2,
        loss: str = "squared",
        clip: float = 1.0,
        fit_intercept: bool = False,
        seed: int = 0,
    ) -> None:
        self._keep(locals())
