"""The Prefect flow that downloads and prepares datasets."""

from typing import Any

from prefect import flow
from prefect.states import State
from prefect.tasks import exponential_backoff

from cluster.machine import cores
from flows.prepare.preparation import prepare_named
from flows.runtime.console import say
from flows.runtime.recording import as_task
from koco_stream.errors import StoreUnavailable, WrongInput
from koco_stream.streams.manifest import load_manifest, prepared_names
from storage.catalogue.fetch import Unreachable
from storage.store import open_store


def may_pass(task: Any, run: Any, state: State[Any]) -> bool:
    """Whether a task failed because a server did not answer, so that Prefect retries it."""
    error = state.result(raise_on_failure=False)
    cause = error.__cause__ or error.__context__ if isinstance(error, WrongInput) else error
    if isinstance(cause, StoreUnavailable | Unreachable | ConnectionError):
        say(f"{cause}; trying again later")
        return True
    return False


# options of a task that is tried again when a server did not answer
RETRIED = {
    "retries": 4,
    "retry_delay_seconds": exponential_backoff(30),  # 30, 60, 120, 240 seconds
    "retry_condition_fn": may_pass,
}


@flow(name="prepare", flow_run_name="{datasets}", validate_parameters=False)
def prepare_flow(datasets: list[str], store: str = "store") -> list[str]:
    """Prepare catalogue datasets that the store lacks; returns the hashes of all named datasets.

    Raises `WrongInput` as `koco prepare` does.
    """
    open_store(store)
    prepared = set(prepared_names(store))
    one = as_task("prepare", prepare_named, **RETRIED)
    found = [
        load_manifest(store, name) if name in prepared else one(store, name, (), {}, cores())
        for name in datasets
    ]
    return [manifest.dataset_hash for manifest in found]
