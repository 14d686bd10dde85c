"""The random numbers that the library documents, by an implementation in Python's integers, which
shares nothing with it.
"""

import math
from functools import cache

import numpy as np
from scipy.special import ndtri

WORD = 2**64 - 1
GOLDEN = 0x9E3779B97F4A7C15


def bits(seed, position):
    """SplitMix64 (Steele, Lea, Flood, 2014) at the counter `position` of the sequence of `seed`."""
    z = (seed * 0xD1342543DE82EF95 + (position + 1) * GOLDEN) & WORD
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & WORD
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & WORD
    return z ^ (z >> 31)


def _unit(word):
    return (word >> 11) / 2**53


def uniform(seed, position):
    """A number in [0, 1): the 53 upper bits."""
    return _unit(bits(seed, position))


def _ziggurat(layers, tail, area):
    edges = [area / math.exp(-tail * tail / 2), tail]
    while len(edges) < layers:
        edges.append(math.sqrt(-2 * math.log(area / edges[-1] + math.exp(-(edges[-1] ** 2) / 2))))
    return [*edges, 0.0]


EDGES = _ziggurat(256, 3.6541528853610088, 0.00492867323399)


def normal(seed, position):
    """A standard normal number by the ziggurat of Marsaglia and Tsang (2000) with 256 layers. Eight
    bits of a word are the layer, the next one the sign, the upper 53 the position in the layer; a
    word that is rejected is the seed of the next."""
    word = bits(seed, position)
    while True:
        layer, sign, x = word % 256, 1 - 2 * (word // 256 % 2), _unit(word)
        x *= EDGES[layer]
        if x < EDGES[layer + 1]:
            return sign * x
        word = bits(word, 0)
        if layer == 0:
            while True:
                a = -math.log(1 - _unit(word)) / EDGES[1]
                word = bits(word, 1)
                b = -math.log(1 - _unit(word))
                word = bits(word, 2)
                if 2 * b > a * a:
                    return sign * (EDGES[1] + a)
        low, high = (math.exp(-(EDGES[i] ** 2) / 2) for i in (layer, layer + 1))
        if low + _unit(word) * (high - low) < math.exp(-x * x / 2):
            return sign * x
        word = bits(word, 3)


@cache
def levels():
    """65,536 equally likely levels with the quantiles of the normal distribution, variance 1."""
    whole = np.rint(4096 * ndtri((np.arange(2**16) + 0.5) / 2**16))
    return whole / np.sqrt(np.mean(whole**2))


def level(seed, i, j):
    """Entry j of u_i, of bandwidth 1: sixteen bits of a word, the lowest first, choose the levels
    of two frequencies, of which the second is that of 53445 times these bits."""
    part = bits(seed, 2**32 * (i // 8) + j) >> 16 * (i // 2 % 4) & 0xFFFF
    return levels()[53445 * part % 2**16 if i % 2 else part]
