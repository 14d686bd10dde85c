"""Counter-based random numbers: each is a function of a seed and a position.

SplitMix64 (Steele, Lea, Flood, 2014) gives 64 bits, and the ziggurat of Marsaglia and Tsang (2000)
normal numbers. Where a round needs thousands, sixteen bits choose one of 65,536 pairs of levels, in
a quarter of the time. For |t| ≤ 12 a level's characteristic function is within 2·10⁻⁵ of
exp(−t²/2). That of a pair is within 2·10⁻⁴ for |s|, |t| ≤ 6, and within half a percent beyond.
"""

import math
from functools import cache
from statistics import NormalDist
from typing import Any

import numpy as np

from koco_stream.numerics.compiler import inlined, jit
from koco_stream.types import Array

LAYERS = 256
# The end of the ziggurat's last layer, and the area of each layer, for 256 layers
TAIL = 3.6541528853610088
AREA = 0.00492867323399
GOLDEN = np.uint64(0x9E3779B97F4A7C15)
STREAM = np.uint64(0xD1342543DE82EF95)
ROW = 32  # the words of a row are 2³² positions apart
PAIRS = 1 << 16
LATTICE = 53445  # one of the best of 3,000 odd numbers, by the pairs' joint characteristic function
UNIT = 4096.0  # about the level of 1
LEVELS_OF_A_WORD = 8
AT_ONCE = 16  # `words` is a multiple of so many, which are computed side by side


def _layers() -> tuple[Array, Array]:
    x = np.empty(LAYERS + 1)
    x[0] = AREA / math.exp(-TAIL * TAIL / 2)
    x[1] = TAIL
    for i in range(2, LAYERS):
        x[i] = math.sqrt(-2.0 * math.log(AREA / x[i - 1] + math.exp(-(x[i - 1] ** 2) / 2)))
    x[LAYERS] = 0.0
    return x, np.exp(-(x**2) / 2)


X, DENSITY = _layers()


@jit
def bits(seed: Any, position: Any) -> Any:
    """64 random bits."""
    z = np.uint64(seed) * STREAM + (np.uint64(position) + np.uint64(1)) * GOLDEN
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))


@jit
def unit(word: Any) -> float:
    """The top 53 bits of a word as a number in [0, 1)."""
    return np.float64(np.int64(word >> np.uint64(11))) * (1.0 / 9007199254740992.0)


@jit
def uniform(seed: Any, position: Any) -> float:
    """A uniform random number in [0, 1)."""
    return unit(bits(seed, position))


@jit
def _rarely(word: Any) -> float:
    """The slow path of `normal`, in one draw of seventy."""
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
    """A standard normal random number."""
    word = bits(seed, position)
    layer = np.int64(word & np.uint64(255))
    # The sign is computed without a branch, which the processor could not predict.
    sign = 1.0 - 2.0 * np.float64(np.int64((word >> np.uint64(8)) & np.uint64(1)))
    x = unit(word) * X[layer]
    return sign * x if x < X[layer + 1] else _rarely(word)


@cache
def level_pairs() -> tuple[Array, float]:
    """The pairs of levels (65536,) uint32, and the levels' root mean square.

    Level k is 4096 times the normal quantile (k + 1/2)/65536, rounded. Pair k is (level k, level
    53445·k mod 65536), the first in its lower half.
    """
    quantile = NormalDist().inv_cdf
    below = [round(UNIT * quantile((k + 0.5) / PAIRS)) for k in range(PAIRS // 2)]
    levels = np.array(below + [-level for level in reversed(below)], np.int16)
    other = levels[LATTICE * np.arange(PAIRS) % PAIRS]
    rms = math.sqrt(np.mean(levels.astype(np.float64) ** 2))
    return np.stack([levels, other], axis=1).view(np.uint32).reshape(PAIRS), rms


@inlined
def draw_levels(seed: Any, position: int, pairs: Array, words: Array, out: Array) -> None:
    """Draw levels into out (n,), n even; `words` is scratch for at least n/8 words.

    Part i mod 4, the lowest first, of the word at position + 2³²·⌊i/4⌋ chooses pair i.
    """
    first = np.uint64(seed) * STREAM + (np.uint64(position) + np.uint64(1)) * GOLDEN
    for i in range(words.size):
        z = first + np.uint64(i) * (GOLDEN << np.uint64(ROW))
        z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        words[i] = z ^ (z >> np.uint64(31))
    parts, drawn = words.view(np.uint16), out.view(np.uint32)
    for i in range(drawn.size):
        drawn[i] = pairs[np.uint64(parts[i])]
