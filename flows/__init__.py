"""The application: the koco command (`cli`, `commands`), sweeps from Python (`from_python`), and
one package for each of its tasks.

`runtime` has what they share.

>>> import flows
>>> result = flows.sweep("ill-conditioned", store="store")  # doctest: +SKIP
>>> print(result)  # doctest: +SKIP
>>> from flows import sweep_flow  # Prefect's own object  # doctest: +SKIP
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from koco_stream.extras import remedy

if TYPE_CHECKING:
    from flows.from_python import SweepResult, results, sweep
    from flows.prefect_flows import nightly_flow, prepare_flow, report_flow, sweep_flow

# modules of the names: functions to call, and Prefect's flows
MODULES = {
    **dict.fromkeys(("SweepResult", "results", "sweep"), "flows.from_python"),
    **dict.fromkeys(
        ("nightly_flow", "prepare_flow", "report_flow", "sweep_flow"), "flows.prefect_flows"
    ),
}
__all__ = [
    "SweepResult",
    "nightly_flow",
    "prepare_flow",
    "report_flow",
    "results",
    "sweep",
    "sweep_flow",
]


def __getattr__(name: str) -> Any:
    # loaded when first used: importing one module of the application imports no other
    if name not in MODULES:
        raise AttributeError(f"module 'flows' has no attribute {name!r}")
    try:
        if name.endswith("_flow"):
            from flows.runtime.prefect_server import configure_prefect

            configure_prefect()
        return getattr(import_module(MODULES[name]), name)
    except ModuleNotFoundError as error:
        raise ImportError(remedy(error) or str(error)) from error
