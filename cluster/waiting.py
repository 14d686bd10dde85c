"""Waiting for workers, and when to give up."""

import sys
import time
from typing import Any

from distributed import Client

from koco_stream.errors import WrongInput

ANSWER_SECONDS = 20.0
SILENT_SECONDS = 10.0
WITHOUT_WORKERS = 60.0  # seconds: a lost worker comes back well before


class LostCluster(RuntimeError):
    """The scheduler does not answer any more, or has had no worker for long."""

    def __init__(self, why: str) -> None:
        super().__init__(f"{why}; start it and its workers again")


def check_hope(client: Client) -> None:
    """Raise `LostCluster` with the reason if who keeps up the number of workers has given up
    (`cluster.kept_jobs`).
    """
    lost = getattr(client.cluster, "lost", None)
    if lost:
        raise LostCluster(lost)


def say_left(client: Client, cohorts: int) -> None:
    """Say to who keeps up the number of workers (`cluster.kept_jobs`), if anybody does, how many
    cohorts are not done yet.
    """
    if hasattr(client.cluster, "left"):
        client.cluster.left = cohorts


def workers_of(client: Client) -> dict[str, dict[str, Any]]:
    """What the scheduler knows of its workers, by address. Raises `LostCluster` if it does not
    answer.
    """
    try:
        return dict(client.scheduler_info(n_workers=-1)["workers"])
    except (
        KeyError,
        OSError,
        TimeoutError,
    ):  # Dask gives an empty answer for a scheduler that has just gone
        raise LostCluster("the scheduler is gone") from None


def wait_for(client: Client, workers: int, seconds: float) -> bool:
    """Wait until there are so many workers, and say so if it takes long; whether they came. Raises
    `LostCluster` if they never will.
    """
    begun, told = time.monotonic(), False
    while (there := len(workers_of(client))) < workers:
        check_hope(client)
        waited = time.monotonic() - begun
        if waited > seconds:
            return False
        if waited > SILENT_SECONDS and not told:
            print(
                f"waiting for workers: {there} of the {workers} that it takes are there",
                file=sys.stderr,
                flush=True,
            )
            told = True
        time.sleep(0.1)
    return True


def wait_for_worker(client: Client) -> None:
    """Wait for the first worker. Raises `WrongInput` if none comes."""
    if not wait_for(client, 1, ANSWER_SECONDS):
        raise WrongInput(
            f"the scheduler at {client.scheduler.address} has no worker; start some with `dask"
            " worker`"
        )
