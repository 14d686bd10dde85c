"""The application: the koco command, datasets and sweeps from Python, and Prefect's flows.

>>> import flows
>>> flows.prepare("mine", frame, target="y")  # doctest: +SKIP
>>> result = flows.sweep("ill-conditioned", store="store")  # doctest: +SKIP
>>> from flows import sweep_flow  # Prefect's own object  # doctest: +SKIP
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from koco_stream.extras import remedy

if TYPE_CHECKING:
    from flows.from_python import SweepResult, prepare, results, sweep
    from flows.prefect_flows import nightly_flow, prepare_flow, report_flow, sweep_flow

__all__ = [
    "SweepResult",
    "nightly_flow",
    "prepare",
    "prepare_flow",
    "report_flow",
    "results",
    "sweep",
    "sweep_flow",
]


def __getattr__(name: str) -> Any:
    # loaded when first used: importing one module of the application imports no other
    if name not in __all__:
        raise AttributeError(f"module 'flows' has no attribute {name!r}")
    try:
        if name.endswith("_flow"):
            from flows.runtime.prefect_server import configure_prefect

            configure_prefect()
            return getattr(import_module("flows.prefect_flows"), name)
        return getattr(import_module("flows.from_python"), name)
    except ModuleNotFoundError as error:
        raise ImportError(remedy(error) or str(error)) from error
