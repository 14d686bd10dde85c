"""Views of arrays in compiled code.

`v = named_rows(Vectors, a, shape)` names small vectors that lie in one array, a row each. It costs
nothing, and the compiler knows that they do not overlap.
"""

from typing import Any

from koco_stream.numerics.compiler import Later, intrinsic

arrays, types = Later("numba.np.arrayobj"), Later("numba.core.types")
ir = Later("llvmlite.ir")


def _named_rows(typing_context: Any, kind: Any, a: Any, shape: Any) -> Any:
    rows = types.NamedUniTuple(
        types.Array(a.dtype, 1, "C"), len(kind.instance_class._fields), kind.instance_class
    )

    def emit(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        start = context.make_array(a)(context, builder, args[1]).data
        width, views, INT64 = len(signature.args[2]), [], ir.IntType(64)
        for number in range(rows.count):
            view = context.make_array(rows.dtype)(context, builder)
            data = builder.gep(start, [INT64(number * width)])
            arrays.populate_array(view, data, [INT64(width)], [INT64(8)], INT64(8), None)
            views.append(view._getvalue())
        return context.make_tuple(builder, rows, views)

    return rows(kind, a, shape), emit


# Row k of `a` (k, W) is field k of the named tuple `kind`; W is the length of `shape`.
named_rows = intrinsic(_named_rows, lambda kind, a, shape: kind(*a))


def _read_only(typing_context: Any, array: Any) -> Any:
    def emit(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return args[0]

    return types.Array(array.dtype, array.ndim, array.layout, readonly=True)(array), emit


# The same array, of the type that a row's values have, so that nothing is compiled twice.
read_only = intrinsic(_read_only, lambda array: array)
