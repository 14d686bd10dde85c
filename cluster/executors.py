"""Executors: they take cohorts and give receipts.

`run_serially` is the specification; the others must leave the same tables.
"""

import queue
import sys
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import replace

from distributed import CancelledError, Client, Future
from distributed.comm import CommClosedError
from distributed.scheduler import KilledWorker

from cluster.workers import WITHOUT_WORKERS, LostCluster, check_hope, inspect, say_left, table
from koco_stream.engine.cohort import Receipt, fail_cohort, run_cohort
from koco_stream.engine.preemption import Preempted
from koco_stream.errors import WrongInput
from koco_stream.io.fingerprint import VersionMismatch, versions
from koco_stream.runs.run import Cohort

OnReceipt = Callable[[Receipt], None]
Ended = Receipt | BaseException
POLL_SECONDS = 1.0  # between two looks at the scheduler and its workers
SUSPECT = "suspect-"  # begins the keys of single runs that are run with nothing beside them
LOST = (
    "its worker died each time it was run, the last times with nothing beside it; it may need more"
    " memory than a worker has"
)


class Refused(dict[str, WrongInput]):
    """Datasets, by their hash, that were found missing, damaged or changed while the sweep ran, and
    why. Their cohorts are left out, the others run.
    """

    def tell(self) -> None:
        """Raise `WrongInput` with all reasons, if there are any."""
        if self:
            raise WrongInput(
                "; ".join(map(str, self.values()))
                + "; the runs on other datasets are done and kept"
            )


def run_serially(
    store: str,
    sweep: str,
    cohorts: Sequence[Cohort],
    on_receipt: OnReceipt,
    block_rows: int | None = None,
) -> None:
    """One cohort after the other, in this process.

    Parameters
    ----------
    store
        Where the datasets are, and the results go.
    sweep
        The sweep's name.
    cohorts
        What is to be run.
    on_receipt
        Is called with the receipt of each cohort.
    block_rows
        How many rows are read at once, if that is not to be chosen by the engine.

    Raises
    ------
    WrongInput
        At the end, for datasets that were found damaged.
    OSError
        At once, if the disk fails or is full.
    """
    refused = Refused()
    for cohort in cohorts:
        if cohort.stream.dataset_hash in refused:
            continue
        try:
            receipt = run_cohort(store, sweep, cohort, block_rows)
        except WrongInput as error:
            refused[cohort.stream.dataset_hash] = error
        else:
            on_receipt(receipt)
    refused.tell()


def run_on_dask(
    client: Client,
    store: str,
    sweep: str,
    cohorts: Sequence[Cohort],
    on_receipt: OnReceipt,
    block_rows: int | None = None,
    patience: float = WITHOUT_WORKERS,
) -> None:
    """Cohorts as Dask futures, keyed by their content, a bounded number in flight.

    Only functions of `koco_stream.engine.cohort` and names cross the wire. A worker that is
    preempted saves what it is at, and another goes on from there (`koco_stream.engine.preemption`).

    A worker that is lost is not a run's fault: Dask gives its cohort to another. A cohort that has
    cost more workers than the scheduler allows (`cluster.settings`: two) is cut in two. Single runs
    left by that wait until all else is done and are then run one at a time, with nothing beside
    them; one that loses its workers even so is a row with the status failed.

    Parameters and errors are those of `run_serially`, and:

    Parameters
    ----------
    client
        Of the cluster.
    patience
        Seconds for which the sweep goes on with no worker.

    Raises
    ------
    LostCluster
        If the scheduler has gone, or there has been no worker for so long.
    """
    DaskExecutor(client, store, sweep, on_receipt, block_rows, patience).run(cohorts)


class DaskExecutor:
    """One sweep on one client: which cohorts wait, which are under way. See `run_on_dask`."""

    def __init__(
        self,
        client: Client,
        store: str,
        sweep: str,
        on_receipt: OnReceipt,
        block_rows: int | None,
        patience: float,
    ) -> None:
        self.client, self.on_receipt, self.patience = client, on_receipt, patience
        self.store, self.sweep, self.block_rows = store, sweep, block_rows
        self.waiting: deque[Cohort] = deque()
        self.suspects: deque[Cohort] = deque()
        self.under_way: dict[str, tuple[Cohort, Future]] = {}
        self.ended: queue.SimpleQueue[tuple[str, Ended]] = queue.SimpleQueue()
        self.refused = Refused()
        self.submissions = 0
        self.known: set[str] = set()  # workers
        self.tried_again: set[str] = set()  # cohorts whose dataset could not be read
        self.threads, self.polled, self.last_seen = 1, 0.0, time.monotonic()

    def run(self, cohorts: Sequence[Cohort]) -> None:
        """Run all of them."""
        self.waiting.extend(cohorts)
        try:
            while self.waiting or self.under_way or self.suspects:
                self._poll()
                self._submit()
                try:
                    key, ended = self.ended.get(timeout=POLL_SECONDS)
                except queue.Empty:
                    continue
                self._receive(key, ended)
        finally:
            for _, future in self.under_way.values():
                future.cancel()
        self.refused.tell()

    def _poll(self) -> None:
        """See now and then how many threads there are.

        Raises `LostCluster` if the scheduler is gone, or all workers for long.
        """
        now = time.monotonic()
        if now - self.polled < POLL_SECONDS:
            return
        self.polled = now
        if self.client.status != "running":
            raise LostCluster("the scheduler is gone")
        check_hope(self.client)
        say_left(self.client, len(self.waiting) + len(self.under_way) + len(self.suspects))
        try:
            workers = self.client.nthreads()
            self._inspect(set(workers))
        except (OSError, TimeoutError) as error:
            raise LostCluster(f"the scheduler does not answer: {error}") from error
        self.threads = sum(workers.values())
        if self.threads:
            self.last_seen = now
        elif now - self.last_seen > self.patience:
            raise LostCluster(f"there has been no worker for {self.patience:.0f} s")

    def _inspect(self, workers: set[str]) -> None:
        """Send away workers that have joined and cannot be used: `preflight` saw only those that
        were there.
        """
        joined, self.known = workers - self.known, workers
        wrong = inspect(self.client, self.store, sorted(joined))[0] if joined else {}
        if wrong:
            said = "workers that have joined cannot be used, and are sent away:"
            print(f"{said}\n{table(wrong)}", file=sys.stderr, flush=True)
            addresses = [worker.partition(" ")[0] for worker in wrong]
            self.client.retire_workers(addresses, close_workers=True)

    def _submit(self) -> None:
        """Keep two cohorts a thread under way; suspects one at a time, when nothing else is
        left.
        """
        while self.waiting and len(self.under_way) < 2 * max(self.threads, 1):
            cohort = self.waiting.popleft()
            if cohort.stream.dataset_hash not in self.refused:
                self._send(cohort, f"cohort-{cohort.cohort_id}")
        if self.suspects and not self.under_way:
            cohort = self.suspects.popleft()
            self._send(cohort, f"{SUSPECT}{cohort.cohort_id}")

    def _send(self, cohort: Cohort, key: str) -> None:
        words = (self.store, self.sweep, cohort, self.block_rows, versions())
        future = self.client.submit(run_cohort, *words, key=key, pure=False)
        self.under_way[key] = cohort, future
        future.add_done_callback(self._note)

    def _note(self, done: Future) -> None:
        """Called in a thread of Dask's when a future has ended.

        If its worker died with the receipt in its hands this waits for the next one, which finds
        the result file and says so.
        """
        try:
            self.ended.put((done.key, done.result()))
        except BaseException as error:  # handed to the sweep's thread
            self.ended.put((done.key, error))

    def _receive(self, key: str, ended: Ended) -> None:
        """Take what ended: a receipt, a lost worker, a dataset that cannot be read.

        Anything else is raised: the sweep cannot go on.
        """
        cohort, future = self.under_way.pop(key)
        future.release()
        match ended:
            case Receipt():
                self.on_receipt(ended)
            # its worker was preempted, or is about to be sent away
            case Preempted() | VersionMismatch() | ImportError():
                self._send_again(key, cohort)
            case KilledWorker():
                self._lost_workers(key, cohort)
            case WrongInput() if cohort.cohort_id not in self.tried_again:
                # a worker that has joined may have another store: it is sent away first
                self.tried_again.add(cohort.cohort_id)
                self._inspect(set(self.client.nthreads()))
                self._send_again(key, cohort)
            case WrongInput():
                self.refused.setdefault(cohort.stream.dataset_hash, ended)
            case CancelledError() | CommClosedError():
                raise LostCluster("the scheduler is gone") from ended
            case _:
                raise ended

    def _send_again(self, key: str, cohort: Cohort) -> None:
        """Submit a cohort once more, under another key: the old one stands for what came of it."""
        self.submissions += 1
        self._send(cohort, f"{key.partition('.')[0]}.{self.submissions}")

    def _lost_workers(self, key: str, cohort: Cohort) -> None:
        """Halve a cohort that costs its workers their lives.

        A single run is tried once more with nothing beside it, and then has failed.
        """
        if len(cohort.runs) > 1:
            middle, seconds = len(cohort.runs) // 2, cohort.seconds / 2
            for runs in (cohort.runs[:middle], cohort.runs[middle:]):
                self.waiting.append(replace(cohort, runs=runs, seconds=seconds))
        elif not key.startswith(SUSPECT):
            self.suspects.append(cohort)
        else:
            words = (self.store, self.sweep, cohort, LOST)
            self.on_receipt(self.client.submit(fail_cohort, *words, pure=False).result())
