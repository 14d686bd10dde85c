"""Tuples that compiled functions are given by reference.

A compiled function that is called with a named tuple gets six or more numbers for each array in it,
and copies them all again for each call that it makes: a learner's state has about a hundred. That
took up to half the time of a round. A tuple given by reference is one address, and its fields are
read where they are used: `s.w` is written as before.

Fields are read by name: such a tuple has no numbered entries, and cannot be taken apart.
"""

from typing import Any

from llvmlite import ir
from numba.core import cgutils, config, types
from numba.core.datamodel import models
from numba.core.imputils import impl_ret_borrowed
from numba.core.types.containers import BaseNamedTuple
from numba.core.typing.templates import AttributeTemplate
from numba.extending import infer_getattr, intrinsic, lower_getattr_generic, register_model

INT32 = ir.IntType(32)


class Reference(types.Type):
    """The type of a reference to a named tuple of the type `kind`."""

    def __init__(self, kind: Any) -> None:
        self.kind = kind
        super().__init__(f"Reference({kind})")

    @property
    def key(self) -> Any:
        """What distinguishes references: learners' states can have the same name and arrays."""
        return self.kind

    def field(self, number: int) -> Any:
        """The type of what is read from a field: of a tuple in the tuple, a reference."""
        kind = self.kind.types[number]
        return Reference(kind) if isinstance(kind, BaseNamedTuple) else kind


@register_model(Reference)
class ReferenceModel(models.PrimitiveModel):
    """A reference is a pointer."""

    def __init__(self, manager: Any, reference: Reference) -> None:
        pointer = manager.lookup(reference.kind).get_value_type().as_pointer()
        super().__init__(manager, reference, pointer)


@infer_getattr
class Fields(AttributeTemplate):
    """The types of `reference.name`."""

    key = Reference

    def generic_resolve(self, reference: Reference, name: str) -> Any:
        """The type of the field, None if there is none of this name."""
        fields = reference.kind.fields
        return reference.field(fields.index(name)) if name in fields else None


@lower_getattr_generic(Reference)
def _read(context: Any, builder: Any, reference: Reference, pointer: Any, name: str) -> Any:
    """The instructions of `reference.name`."""
    number = reference.kind.fields.index(name)
    kind = reference.field(number)
    address = builder.gep(pointer, [INT32(0), INT32(number)], inbounds=True)
    if isinstance(kind, Reference):
        return address
    value = _loaded(builder, address, address.type.pointee)
    return impl_ret_borrowed(context, builder, kind, value)


def _loaded(builder: Any, pointer: Any, kind: Any, *path: int) -> Any:
    """The value at `pointer`, put together from its numbers, of which unused ones are not read.

    The compiler is told that they do not change, so that it reads them once, and not again after
    each change of an array, which could be anywhere in memory.
    """
    if isinstance(kind, ir.LiteralStructType | ir.ArrayType):
        value = ir.Constant(kind, ir.Undefined)
        members = (
            kind.elements if isinstance(kind, ir.LiteralStructType) else [kind.element] * len(kind)
        )
        for k, member in enumerate(members):
            value = builder.insert_value(value, _loaded(builder, pointer, member, *path, k), k)
        return value
    number = builder.load(builder.gep(pointer, [INT32(0), *map(INT32, path)], inbounds=True))
    number.set_metadata("invariant.load", builder.module.add_metadata([]))
    return number


@intrinsic
def _by_reference(typing_context: Any, value: Any) -> Any:
    def emit(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        pointer = cgutils.alloca_once_value(builder, args[0])
        # No instruction, but the compiler cannot see that the pointer stays the same: so it does
        # not read, where it inlines a function, what "does not change" before it was written.
        unseen = ir.FunctionType(pointer.type, [pointer.type])
        return builder.asm(unseen, "", "=r,0,~{memory}", [pointer], side_effect=True)

    def as_it_is(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return impl_ret_borrowed(context, builder, value, args[0])

    if isinstance(value, BaseNamedTuple):
        return Reference(value)(value), emit
    return value(value), as_it_is


# `by_reference(value)` puts a named tuple into memory, and is what functions called by the same
# function are given in its place. Other values, and those of code that is not compiled, stay.
by_reference = (lambda value: value) if config.DISABLE_JIT else _by_reference
