"""Feature hashing: any number of features to 2^bits, each with a sign, as in Weinberger et al.,
Feature Hashing for Large Scale Multitask Learning (2009). The features are known by number, so the
number is what is hashed.
"""

import numpy as np

from koco_stream.errors import WrongInput
from koco_stream.types import Array

MOST_BITS = 30  # feature numbers are int32, and the top bit of the hash is the sign's


def hashed(indices: Array, values: Array, indptr: Array, bits: int) -> tuple[Array, Array, Array]:
    """Canonical CSR rows with their features hashed: (indptr (n + 1,) int64, indices int32 below
    2^bits, values float64), canonical again.

    Feature j with h = murmurhash3_32(j), of seed 0, goes to place h mod 2^bits with its sign turned
    if the top bit of h is set. Values that meet in a row are added one by one, in the order of the
    features they came from; what cancels is dropped. A row's numbers depend on nothing but the row.
    Raises `WrongInput` unless 1 ≤ bits ≤ 30.
    """
    from sklearn.utils import murmurhash3_32

    if not 1 <= bits <= MOST_BITS:
        raise WrongInput(
            f"features can be hashed to 2^1 to 2^{MOST_BITS}, not to 2^{bits}; give another number"
            " of bits"
        )
    n = indptr.size - 1
    code = murmurhash3_32(np.ascontiguousarray(indices, np.int32), positive=True)
    signed = np.where(code >> 31, -1.0, 1.0) * values
    row = np.repeat(np.arange(n, dtype=np.int64), np.diff(indptr))
    key = row << bits | (code & (2**bits - 1)).astype(np.int64)
    order = np.argsort(key, kind="stable")
    key = key[order]
    new = np.diff(key, prepend=-1) > 0
    key = key[new]
    total = np.bincount(np.cumsum(new) - 1, weights=signed[order]).astype(
        np.float64
    )  # adds from left to right; reduceat would add in pairs
    kept = total != 0.0
    places = (key[kept] & (2**bits - 1)).astype(np.int32)
    sizes = np.bincount(key[kept] >> bits, minlength=n)
    return np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64), places, total[kept]
