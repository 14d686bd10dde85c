"""The interface to the compiler numba: every compiled function of the project goes through `jit`.

There is no fastmath and no parallel loop, so every sum has a fixed order. The cache's key covers a
function's file, all that it imports, and the versions of numba and Python.
"""

import os
import re
import sys
from collections.abc import Callable
from functools import cache
from importlib.metadata import version
from pathlib import Path
from types import FunctionType
from typing import Any

from koco_stream.io.cache import private_folder
from koco_stream.io.files import text_hash
from koco_stream.io.fingerprint import PACKAGE, source_hash
from koco_stream.io.source_files import hash_of, source_files

UNCOMPILED = os.environ.get("NUMBA_DISABLE_JIT", "0") not in ("", "0")
# An import of a module of ours, but for what reads and writes files: nothing is compiled there.
IMPORT = re.compile(r"^ *from (koco_stream(?!\.io\b)[\w.]*) import (\([^)]*\)|.*)", re.MULTILINE)


def versioned(text: str) -> str:
    """A hash (16 hexadecimal digits) of a text and the compiler's versions."""
    return text_hash(f"{sys.version}|{version('numba')}|{version('llvmlite')}|{text}")[:16]


@cache
def code_hash() -> str:
    """A hash of `koco_stream`'s source and the compiler's versions."""
    return versioned(source_hash())


def file_of(module: str) -> Path | None:
    """The file of a module of ours."""
    path = PACKAGE.parent.joinpath(*module.split("."))
    file = path / "__init__.py" if path.is_dir() else path.with_suffix(".py")
    return file if file.is_file() else None


def imports_of(text: str) -> frozenset[str]:
    """The modules of ours that a source imports; a package only for a name of its own file."""
    imports = set[str]()
    for base, names in IMPORT.findall(text):
        for name in (words.split()[0] for words in names.strip("()").split(",") if words.strip()):
            imports.add(f"{base}.{name}" if file_of(f"{base}.{name}") else base)
    return frozenset(imports)


@cache
def text_and_imports(module: str) -> tuple[str, frozenset[str]]:
    """A module's text and its imports of ours."""
    file = file_of(module)
    text = file.read_text(encoding="utf-8") if file else ""
    return text, imports_of(text)


@cache
def closure_hash(modules: frozenset[str]) -> str:
    """A hash of these modules, all of ours that they import, and the versions."""
    texts, waiting = dict[str, str](), set(modules)
    while waiting:
        module = waiting.pop()
        texts[module], imports = text_and_imports(module)
        waiting |= imports - texts.keys()
    return versioned("".join(f"{module}\0{texts[module]}\0" for module in sorted(texts)))


class Compiled:
    """A numba function that `make` creates when it is first called, and a part for compiled callers
    when one of them is.
    """

    def __init__(
        self,
        function: Callable[..., Any],
        make: Callable[[bool], Any],
        bound: tuple[Callable[..., Any], ...] = (),
        **options: Any,
    ) -> None:
        self.py_func, self._make, self.targetoptions = function, make, options
        self.bound = bound
        self._made = dict[bool, Any]()
        self.__doc__, self.__name__ = function.__doc__, function.__name__
        self.__module__ = function.__module__

    def made(self, part: bool = False) -> Any:
        """The compiled function."""
        if part not in self._made:
            from numba.core.compiler_lock import global_compiler_lock

            with global_compiler_lock:
                self._made[part] = self._made.get(part) or self._make(part)
        return self._made[part]

    @property
    def _numba_type_(self) -> Any:
        from numba.core.registry import cpu_target

        made = self.made(part=True)
        cpu_target.typing_context.refresh()
        return cpu_target.typing_context.resolve_value_type(made)

    def __call__(self, *arguments: Any) -> Any:
        """Call the compiled function."""
        return self.made()(*arguments)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):  # Python's own, which a function has not
            raise AttributeError(name)
        return getattr(self.made(), name)


def intrinsic(typed: Callable[..., Any], literal: Callable[..., Any]) -> Any:
    """A function whose instructions `typed` emits; its `py_func`, and uncompiled, `literal`."""

    def make(part: bool) -> Any:
        from numba.extending import intrinsic

        return intrinsic(typed)

    return literal if UNCOMPILED else Compiled(literal, make)


def inlined(function: Callable[..., Any]) -> Callable[..., Any]:
    """Inline `function` into its compiled callers, before their types are inferred.

    A call would copy its array arguments, and inlining saves most of a learner's compile time.
    """
    return jit(function, inline="always")


def jit(
    function: Callable[..., Any], inline: str = "never", bound: tuple[Callable[..., Any], ...] = ()
) -> Callable[..., Any]:
    """Compile `function`; the cache's key covers what is `bound` to its names, and to theirs."""
    if UNCOMPILED:
        return function
    bound = (*bound, *(more for one in bound for more in getattr(one, "bound", ())))
    return Compiled(
        function, lambda part: _dispatcher(function, inline, bound, part), bound, inline=inline
    )


def _dispatcher(
    function: Callable[..., Any], inline: str, bound: tuple[Any, ...], part: bool
) -> Any:
    import numba
    from numba.core import config

    from koco_stream.numerics.part import PartCompiler

    # Compiled without numba's runtime: the code allocates nothing, and does not count references
    # to its array arguments; and without an entry for C, which nothing calls.
    options = {"nogil": True, "error_model": "numpy", "_nrt": False, "no_cfunc_wrapper": True}
    compiled = numba.njit(
        inline=inline, pipeline_class=PartCompiler, no_cpython_wrapper=part, **options
    )(function)
    sources = [getattr(one, "py_func", one) for one in (function, *bound)]
    users = {Path(one.__code__.co_filename) for one in sources if not is_ours(one)}
    if part or not all(path.is_file() for path in users):
        return compiled  # in its callers' files, or typed in a notebook and compiled anew
    theirs = [source_files(path) for path in sorted(users)]
    texts = [text for files in theirs for text in files.values()]
    ours = frozenset(one.__module__ for one in sources if is_ours(one))
    library = closure_hash(ours.union(*map(imports_of, texts)))
    if any(re.search(r"^ *import koco_stream", text, re.MULTILINE) for text in texts):
        library = code_hash()  # any of ours may be called
    folders = (library, *map(hash_of, theirs))
    previous = config.CACHE_DIR
    config.CACHE_DIR = str(private_folder("compiled", *folders))
    try:
        compiled.enable_caching()
    finally:
        config.CACHE_DIR = previous
    return compiled


def is_ours(function: Callable[..., Any]) -> bool:
    """Whether a function is of this package."""
    return function.__module__.partition(".")[0] == __name__.partition(".")[0]


def jit_with(
    function: Callable[..., Any], name: str, inline: Any = "never", **names: Any
) -> Callable[..., Any]:
    """Compile a copy of `function` with some of its global names bound to other functions.

    To numba a global is a constant, so one generic loop serves every learner, and `name` lets numba
    cache it, unlike a closure.
    """
    assert isinstance(function, FunctionType)
    copy = FunctionType(
        function.__code__, {**function.__globals__, **names}, name, function.__defaults__
    )
    copy.__qualname__ = name
    return jit(copy, inline, tuple(names.values()))
