"""The compiler's type of `by_reference`'s tuples."""

from typing import Any

from llvmlite import ir
from numba.core import cgutils, types, typing
from numba.core.datamodel import models
from numba.core.imputils import impl_ret_borrowed
from numba.core.types.containers import BaseNamedTuple
from numba.core.typing.templates import AttributeTemplate
from numba.extending import infer_getattr, lower_getattr_generic, register_model

from koco_stream.numerics.compiler import Compiled, closure_hash

INT32 = ir.IntType(32)


class Reference(types.Type):
    """A reference to a named tuple of the type `kind`."""

    def __init__(self, kind: Any) -> None:
        self.kind = kind
        # Code that calls the tuple's methods is compiled again when they change.
        code = closure_hash(frozenset({kind.instance_class.__module__}))
        super().__init__(f"Reference({kind}, {code})")

    @property
    def key(self) -> Any:
        """The tuple's type, two of which may share name and arrays, and the code of its methods."""
        return self.kind, self.name

    def field(self, number: int) -> Any:
        """The type of a field's value; a tuple's is a reference."""
        kind = self.kind.types[number]
        return Reference(kind) if isinstance(kind, BaseNamedTuple) else kind


class Method(types.Callable, types.Opaque):
    """A compiled function that a named tuple's class has, called as `reference.name(…)`."""

    def __init__(self, reference: Reference, function: Any) -> None:
        self.reference, self.function = reference, function
        super().__init__(f"{reference}.{function.dispatcher.py_func.__name__}")

    def get_call_type(self, context: Any, args: Any, kws: Any) -> Any:
        """The signature for these arguments, for which the function is compiled."""
        call = self.function.get_call_type(context, (self.reference, *args), kws)
        return typing.signature(call.return_type, *call.args[1:], recvr=self.reference)

    def get_call_signatures(self) -> Any:
        """The signatures for which the function is compiled."""
        return self.function.get_call_signatures()

    def get_impl_key(self, signature: Any) -> Any:
        """The compiled function."""
        return self.function.get_impl_key(signature)


@register_model(Reference)
class ReferenceModel(models.PrimitiveModel):
    """A reference is a pointer."""

    def __init__(self, manager: Any, reference: Reference) -> None:
        pointer = manager.lookup(reference.kind).get_value_type().as_pointer()
        super().__init__(manager, reference, pointer)


@register_model(Method)
class MethodModel(models.PrimitiveModel):
    """The reference that the method is given."""

    def __init__(self, manager: Any, method: Method) -> None:
        super().__init__(manager, method, manager.lookup(method.reference).get_value_type())


@infer_getattr
class Fields(AttributeTemplate):
    """The types of `reference.name`."""

    key = Reference

    def generic_resolve(self, reference: Reference, name: str) -> Any:
        """The type of the field, or of the method."""
        if name in reference.kind.fields:
            return reference.field(reference.kind.fields.index(name))
        function = getattr(reference.kind.instance_class, name, None)
        if not isinstance(function, Compiled):
            return None
        return Method(reference, self.context.resolve_value_type(function))


@lower_getattr_generic(Reference)
def _read(context: Any, builder: Any, reference: Reference, pointer: Any, name: str) -> Any:
    if name not in reference.kind.fields:
        return pointer
    number = reference.kind.fields.index(name)
    kind = reference.field(number)
    address = builder.gep(pointer, [INT32(0), INT32(number)], inbounds=True)
    if isinstance(kind, Reference):
        return address
    value = _loaded(builder, address, address.type.pointee)
    return impl_ret_borrowed(context, builder, kind, value)


def _loaded(builder: Any, pointer: Any, kind: Any, *path: int) -> Any:
    """The value at `pointer`, from its numbers.

    They are declared unchanging, or each change of an array would reload them.
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


def given(typing_context: Any, value: Any) -> Any:
    """The type of `by_reference(value)`, and its instructions."""

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
