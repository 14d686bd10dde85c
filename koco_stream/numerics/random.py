"""Counter-based random numbers: each is a function of a seed and a position.

The random numbers of any round can be recomputed independently of earlier ones. SplitMix64 (Steele,
Lea, Flood, 2014) of a counter gives 64 bits; normally distributed numbers come from them by the
ziggurat method of Marsaglia and Tsang (2000) with 256 layers.
"""

import math
from typing import Any

import numpy as np

from koco_stream.numerics.compiler import jit
from koco_stream.types import Array

LAYERS = 256
# The end of the ziggurat's last layer, and the area of each layer, for 256 layers
TAIL = 3.6541528853610088
AREA = 0.00492867323399
GOLDEN = np.uint64(0x9E3779B97F4A7C15)
STREAM = np.uint64(0xD1342543DE82EF95)
ROW = 32  # the numbers of a row are 2³² positions apart
SIGN_AND_LAYER = np.uint64(511)  # the bits of a word that say both


def _layers() -> tuple[Array, Array]:
    """The ziggurat's layers: their right edges x (257,), widest first, and exp(−x²/2) there."""
    x = np.empty(LAYERS + 1)
    x[0] = AREA / math.exp(-TAIL * TAIL / 2)
    x[1] = TAIL
    for i in range(2, LAYERS):
        x[i] = math.sqrt(-2.0 * math.log(AREA / x[i - 1] + math.exp(-(x[i - 1] ** 2) / 2)))
    x[LAYERS] = 0.0
    return x, np.exp(-(x**2) / 2)


X, DENSITY = _layers()
# By sign and layer: the signed right edge, for a word's 53 bits as they are, and the next edge. The
# power of two changes no rounding.
EDGES = np.stack([np.append(X[:-1], -X[:-1]) * 2.0**-53, np.tile(X[1:], 2)], axis=1)


@jit
def bits(seed: Any, position: Any) -> Any:
    """64 random bits for a position in the sequence of a seed."""
    z = np.uint64(seed) * STREAM + (np.uint64(position) + np.uint64(1)) * GOLDEN
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))


@jit
def unit(word: Any) -> float:
    """The top 53 bits of a 64-bit word as a number in [0, 1)."""
    return np.float64(np.int64(word >> np.uint64(11))) * (1.0 / 9007199254740992.0)


@jit
def uniform(seed: Any, position: Any) -> float:
    """A uniform random number in [0, 1) for a position in the sequence of a seed."""
    return unit(bits(seed, position))


@jit
def _rarely(word: Any) -> float:
    """The slow path of `normal`, taken in one draw of seventy: the layers' edges and the tail."""
    while True:
        layer = np.int64(word & np.uint64(255))
        sign = 1.0 - 2.0 * np.float64(np.int64((word >> np.uint64(8)) & np.uint64(1)))
        x = unit(word) * X[layer]
        if x < X[layer + 1]:
            return sign * x
        word = bits(word, np.uint64(0))
        if layer == 0:
            while True:  # beyond the last layer: Marsaglia's tail
                a = -math.log(1.0 - unit(word)) / TAIL
                word = bits(word, np.uint64(1))
                b = -math.log(1.0 - unit(word))
                word = bits(word, np.uint64(2))
                if 2.0 * b > a * a:
                    return sign * (TAIL + a)
        if DENSITY[layer] + unit(word) * (DENSITY[layer + 1] - DENSITY[layer]) < math.exp(
            -x * x / 2.0
        ):
            return sign * x
        word = bits(word, np.uint64(3))


@jit
def normal(seed: Any, position: Any) -> float:
    """A standard normal random number for a position in the sequence of a seed.

    After a rejection it uses further bits of the same position, so positions are independent.
    """
    word = bits(seed, position)
    layer = np.int64(word & np.uint64(255))
    # The sign is computed without a branch, which the processor could not predict.
    sign = 1.0 - 2.0 * np.float64(np.int64((word >> np.uint64(8)) & np.uint64(1)))
    x = unit(word) * X[layer]
    return sign * x if x < X[layer + 1] else _rarely(word)


@jit
def normals(seed: Any, position: int, n: int, scale: float, out: Array, rare: Array) -> None:
    """Compute out[i] ← scale·normal(seed, position + 2³²·i) for i < n.

    It has no branches but for one number in seventy; their places are put in `rare` (n,).
    """
    first = np.uint64(seed) * STREAM + (np.uint64(position) + np.uint64(1)) * GOLDEN
    for i in range(n):  # several numbers at once, since nothing is looked up yet
        z = first + np.uint64(i) * (GOLDEN << np.uint64(ROW))
        z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        word = z ^ (z >> np.uint64(31))
        rare[i] = np.int64(word & SIGN_AND_LAYER)
        out[i] = np.float64(np.int64(word >> np.uint64(11)))
    left = 0
    for i in range(n):
        kind = rare[i]
        x = out[i] * EDGES[kind, 0]
        out[i] = scale * x
        rare[left] = i
        left += abs(x) >= EDGES[kind, 1]
    for k in range(left):
        i = rare[k]
        out[i] = scale * normal(seed, position + (i << ROW))
