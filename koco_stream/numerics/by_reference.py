"""Tuples that compiled functions are given by reference: one address, of which `s.w` reads a field.

By value numba passes six or more numbers for each array, in each call, which took up to half the
time of a round. Such a tuple has no numbered entries and cannot be unpacked.
"""

from typing import Any

from koco_stream.numerics.compiler import intrinsic


def _by_reference(typing_context: Any, value: Any) -> Any:
    from koco_stream.numerics.reference_type import given

    return given(typing_context, value)


# `by_reference(value)` puts a named tuple into memory, and is what functions called by the same
# function are given in its place. Other values, and those of code that is not compiled, stay.
by_reference = intrinsic(_by_reference, lambda value: value)
