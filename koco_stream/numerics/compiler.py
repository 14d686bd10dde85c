"""The interface to the compiler numba, used by all compiled functions.

Every compiled function of the project goes through `jit`, without fastmath and parallel loops, so
that sums have a fixed order and results are reproducible. Compiled code is cached in the cache
folder (see `koco_stream.io.cache`), in a subfolder named by a hash of this package's source and of
the versions of numba and Python. Outdated code is therefore never reused after a change to a helper
function, which numba's own cache would not detect. Code of a user's file is in a subfolder of that,
named by a hash of the file and of what it imports beside it.
"""

import hashlib
import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path
from types import FunctionType
from typing import Any

import llvmlite
import numba
from numba.core import config

from koco_stream.io.cache import private_folder
from koco_stream.io.fingerprint import source_hash
from koco_stream.io.source_files import hash_of, source_files


@cache
def code_hash() -> str:
    """A hash (16 hexadecimal digits) of `koco_stream`'s source and of the compiler's versions."""
    text = f"{sys.version}|{numba.__version__}|{llvmlite.__version__}|{source_hash()}"
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def inlined(function: Callable[..., Any]) -> Callable[..., Any]:
    """Inline `function` into its compiled callers, before their types are inferred.

    For short functions with many array arguments, which a call would copy. It is not compiled by
    itself, which saves most of the time that a learner takes to compile.
    """
    return jit(function, inline="always")


def jit(
    function: Callable[..., Any], inline: str = "never", of: Callable[..., Any] | None = None
) -> Callable[..., Any]:
    """Compile `function` with the project's flags.

    `of` is the function by whose source it is cached, `function` itself if None. With
    `NUMBA_DISABLE_JIT=1` it stays a Python function.
    """
    if config.DISABLE_JIT:
        return function
    # Compiled without numba's runtime: the code allocates nothing, and does not count references
    # to its array arguments; and without an entry for C, which nothing calls.
    options = {"nogil": True, "error_model": "numpy", "_nrt": False, "no_cfunc_wrapper": True}
    compiled = numba.njit(inline=inline, **options)(function)
    source = of or function
    if is_ours(source):
        folders: tuple[str, ...] = ()
    elif Path(source.__code__.co_filename).is_file():
        folders = (hash_of(source_files(Path(source.__code__.co_filename))),)
    else:
        return compiled  # typed in a notebook: compiled anew in each process
    previous = config.CACHE_DIR
    config.CACHE_DIR = str(private_folder("compiled", code_hash(), *folders))
    try:
        compiled.enable_caching()
    finally:
        config.CACHE_DIR = previous
    return compiled


def is_ours(function: Callable[..., Any]) -> bool:
    """Whether a function is of this package, and not of a user's file."""
    return function.__module__.partition(".")[0] == __name__.partition(".")[0]


def jit_with(
    function: Callable[..., Any], name: str, inline: Any = "never", **names: Any
) -> Callable[..., Any]:
    """Compile a copy of `function` with some of its global names bound to other functions.

    One generic loop thus serves every learner. numba treats a global as a constant, so the
    learner's step is compiled into the loop, and it caches the result under `name`, which it does
    not do for closures. `inline` is that of `jit`.
    """
    assert isinstance(function, FunctionType)
    bound = FunctionType(
        function.__code__, {**function.__globals__, **names}, name, function.__defaults__
    )
    bound.__qualname__ = name
    bound.__module__ = function.__module__
    sources = [getattr(bound_to, "py_func", bound_to) for bound_to in names.values()]
    return jit(bound, inline, of=next((one for one in sources if not is_ours(one)), None))
