"""The one door to the compiler.

Every compiled function of the project goes through `jit`: no fastmath, no parallel loops, so that a
sum has one order and a number one value. What was compiled is kept in the cache folder (see
`koco_stream.io.cache`), in a folder named by the hash of this package's source, of numba's and of
Python's version: a changed helper can therefore never be answered from an old compilation, which
numba alone would not notice.
"""

import hashlib
import sys
from collections.abc import Callable
from functools import cache
from types import FunctionType
from typing import Any

import llvmlite
import numba
from numba.core import config

from koco_stream.io.cache import private_folder
from koco_stream.io.fingerprint import source_hash


@cache
def code_hash() -> str:
    """Hash of every source file of `koco_stream` and of the compiler's versions (16 hexadecimal
    digits).
    """
    text = f"{sys.version}|{numba.__version__}|{llvmlite.__version__}|{source_hash()}"
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def inlined(function: Callable[..., Any]) -> Callable[..., Any]:
    """`jit`, and always compiled into its callers: for short functions that are given many arrays,
    which a call would copy.
    """
    return jit(function, forceinline=True)


def jit(function: Callable[..., Any], forceinline: bool = False) -> Callable[..., Any]:
    """Compile `function` with the project's flags; with `NUMBA_DISABLE_JIT=1` it stays plain
    Python.
    """
    if config.DISABLE_JIT:
        return function
    # Without the runtime: compiled code allocates nothing, and counts no references to the arrays
    # it is given.
    compiled = numba.njit(nogil=True, error_model="numpy", _nrt=False, forceinline=forceinline)(
        function
    )
    previous = config.CACHE_DIR
    config.CACHE_DIR = str(private_folder("compiled", code_hash()))
    try:
        compiled.enable_caching()
    finally:
        config.CACHE_DIR = previous
    return compiled


def jit_with(function: Callable[..., Any], name: str, **names: Any) -> Callable[..., Any]:
    """Compile `function` with some of its global names bound to others, under a name of its own.

    This is how one generic loop serves every learner: numba treats a global as a constant (so the
    learner's step is compiled into the loop) and finds the result again in its cache, which it does
    not for closures.
    """
    assert isinstance(function, FunctionType)
    bound = FunctionType(
        function.__code__, {**function.__globals__, **names}, name, function.__defaults__
    )
    bound.__qualname__ = name
    bound.__module__ = function.__module__
    return jit(bound)
