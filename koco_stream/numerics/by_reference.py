"""Tuples that compiled functions are given by reference.

A compiled function that is called with a named tuple gets six or more numbers for each array in it,
and copies them all again for each call that it makes: a learner's state has about a hundred. That
took up to half the time of a round. A tuple given by reference is one address, and its fields are
read where they are used: `s.w` is written as before.

Fields are read by name: such a tuple has no numbered entries, and cannot be taken apart.
"""

from typing import Any

from koco_stream.numerics.compiler import intrinsic


def _by_reference(typing_context: Any, value: Any) -> Any:
    from koco_stream.numerics.reference_type import given

    return given(typing_context, value)


# `by_reference(value)` puts a named tuple into memory, and is what functions called by the same
# function are given in its place. Other values, and those of code that is not compiled, stay.
by_reference = intrinsic(_by_reference, lambda value: value)
