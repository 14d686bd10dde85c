"""Arrays that are mostly zero, as the numbers that are not and a bit for each that says where.

A learner's state has numbers for every feature, and after the first rows most features have not
been seen. Zero means that all bytes are: −0.0 and all NaNs are restored to the bit.
"""

import math
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from koco_stream.types import Array

WHERE = "|where"  # ends the names of the arrays that say where
SMALLEST = 4096  # bytes; smaller arrays are left as they are
FULLEST = 0.5  # the largest share of numbers that are not zero in an array that is packed


def packed(arrays: Mapping[str, Array]) -> tuple[dict[str, Array], dict[str, Any]]:
    """The arrays with those that are mostly zero packed, and what `Unpacked` must know of these.

    The latter can be written as JSON. Other arrays are the same objects.
    """
    kept, about = dict[str, Array](), dict[str, Any]()
    for name, array in arrays.items():
        if array.nbytes >= SMALLEST:
            flat = np.asarray(array, order="C").reshape(-1).view(_unit(array.nbytes))
            where = flat != 0
            if np.count_nonzero(where) <= FULLEST * flat.size:
                kept[name], kept[name + WHERE] = flat[where], np.packbits(where)
                about[name] = [array.dtype.str, list(array.shape)]
                continue
        kept[name] = array
    return kept, about


class Unpacked(Mapping[str, Array]):
    """The arrays that were packed, by name; each is restored when it is asked for.

    Parameters
    ----------
    kept, about : dict
        What `packed` returned.
    shared : dict of str to str, optional
        More names, of the array that has another.
    """

    def __init__(
        self, kept: dict[str, Array], about: dict[str, Any], shared: dict[str, str] | None = None
    ) -> None:
        self.kept, self.about, self.shared = kept, about, shared or {}
        names = [name for name in kept if name.removesuffix(WHERE) not in about]
        self.names = dict.fromkeys([*names, *about, *self.shared])

    def __getitem__(self, name: str) -> Array:
        name = self.shared.get(name, name)
        if name not in self.about:
            return self.kept[name]
        dtype, shape = np.dtype(self.about[name][0]), self.about[name][1]
        n_bytes = math.prod(shape) * dtype.itemsize
        array = np.zeros(n_bytes, np.uint8)
        flat = array.view(_unit(n_bytes))
        where = np.unpackbits(self.kept[name + WHERE], count=flat.size).view(bool)
        flat[where] = self.kept[name]
        return array.view(dtype).reshape(shape)

    def __contains__(self, name: object) -> bool:
        return name in self.names  # without restoring it

    def __iter__(self) -> Iterator[str]:
        return iter(self.names)

    def __len__(self) -> int:
        return len(self.names)


def _unit(n_bytes: int) -> np.dtype[Any]:
    """The largest integers that so many bytes consist of."""
    return np.dtype(f"u{math.gcd(n_bytes, 8)}")
