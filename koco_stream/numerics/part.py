"""How the compiler puts functions together: each is optimised once, with the short ones it calls.

Otherwise it would optimise a function again, and make machine code of it, for each of its callers,
and for each of theirs. Here a part has no machine code: what Python calls gets that of all parts.
"""

from typing import Any

from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import Compiler

# Characters of a function's instructions above which its callers call it. Shorter ones they may
# inline: calls of their steps would be a third of AdaGrad's round and a twelfth of NAG's.
LONG = 40_000


class Library(JITCodeLibrary):
    """The instructions of a function, and the long parts that it calls, each before its callers."""

    def __init__(self, state: Any) -> None:
        super().__init__(state.targetctx.codegen(), state.func_id.func_qualname)
        self._part, self._called = state.flags.no_cpython_wrapper, dict[Library, None]()
        self.enable_object_caching()

    @property
    def codegen(self) -> Any:
        """What is told where Python's objects are; a part has none."""
        return self if self._part else self._codegen

    def set_env(self, name: str, environment: Any) -> None:
        """What a part is told."""

    def add_linking_library(self, library: Any) -> None:
        """Note a function that this one calls."""
        self._called.update(getattr(library, "_called", {}))
        if library not in self._called:
            super().add_linking_library(library)

    def _optimize_functions(self, module: Any) -> None:
        """Nothing yet."""

    def _optimize_final_module(self) -> None:
        passes, builder = self._codegen._module_pass_manager()
        passes.run(self._final_module, builder)

    def _finalize_final_module(self) -> None:
        if self._part:
            if len(str(self._final_module)) > LONG:
                self._called[self] = None
            self._finalized = True
        else:
            for part in reversed(self._called):
                self._final_module.link_in(part._get_module_for_linking(), preserve=True)
            super()._finalize_final_module()


class PartCompiler(Compiler):
    """Compiles a function into a `Library`."""

    def define_pipelines(self) -> Any:
        """The compiler's own steps."""
        self.state.library = Library(self.state)
        return super().define_pipelines()
