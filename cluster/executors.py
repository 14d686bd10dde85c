"""Executors: they take cohorts and give receipts. `run_serially` is the specification; the others must leave the same tables."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import islice

from distributed import Client, as_completed

from koco_stream.run import Receipt, run_cohort
from koco_stream.runs import Cohort
from koco_stream.stream import BLOCK_ROWS

OnReceipt = Callable[[Receipt], None]


def run_serially(store: str, sweep: str, cohorts: Sequence[Cohort], on_receipt: OnReceipt, block_rows: int = BLOCK_ROWS) -> None:
    """One cohort after the other, in this process."""
    for cohort in cohorts:
        on_receipt(run_cohort(store, sweep, cohort, block_rows))


def run_on_dask(
    client: Client, store: str, sweep: str, cohorts: Sequence[Cohort], on_receipt: OnReceipt, block_rows: int = BLOCK_ROWS
) -> None:
    """Cohorts as Dask futures, keyed by their content, a bounded number in flight. Only `run_cohort` and names cross the wire."""
    waiting: Iterator[Cohort] = iter(cohorts)
    in_flight = 2 * max(1, sum(client.nthreads().values()))

    def submit(cohort: Cohort) -> object:
        return client.submit(run_cohort, store, sweep, cohort, block_rows, key=f"cohort-{cohort.cohort_id}", pure=False)

    arriving = as_completed([submit(cohort) for cohort in islice(waiting, in_flight)], loop=client.loop)
    for future in arriving:
        on_receipt(future.result())
        future.release()
        for cohort in islice(waiting, 1):
            arriving.add(submit(cohort))
