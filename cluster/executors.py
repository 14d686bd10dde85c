"""Executors: they take cohorts and give receipts. `run_serially` is the specification; the others
must leave the same tables.
"""

import queue
import sys
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from distributed import CancelledError, Client, Future
from distributed.comm import CommClosedError
from distributed.scheduler import KilledWorker

from cluster.preflight import misfits, table
from cluster.waiting import WITHOUT_WORKERS, LostCluster, check_hope, say_left
from koco_stream.engine.cohort import Receipt, fail_cohort, run_cohort
from koco_stream.engine.preemption import Preempted
from koco_stream.errors import WrongInput
from koco_stream.io.fingerprint import VersionMismatch, versions
from koco_stream.runs.run import Cohort

OnReceipt = Callable[[Receipt], None]
LOOK_EVERY = 1.0  # seconds, at the scheduler and its workers
ALONE = "alone-"  # begins the keys of single runs that are run with nothing beside them
LOST = (
    "its worker died each time it was run, the last times with nothing beside it; it may need more"
    " memory than a worker has"
)


@dataclass
class Refused:
    """Datasets that were found missing, damaged or changed while the sweep ran, and why. Their
    cohorts are left out, the others run.
    """

    reasons: dict[str, WrongInput] = field(default_factory=dict)

    def note(self, cohort: Cohort, error: WrongInput) -> None:
        """The cohort's dataset cannot be read, for this reason."""
        self.reasons.setdefault(cohort.stream.dataset_hash, error)

    def holds(self, cohort: Cohort) -> bool:
        """Whether the cohort's dataset is among them."""
        return cohort.stream.dataset_hash in self.reasons

    def say(self) -> None:
        """Raise `WrongInput` with all reasons, if there are any."""
        if self.reasons:
            raise WrongInput(
                "; ".join(str(reason) for reason in self.reasons.values())
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

    Raises `WrongInput` at the end for datasets that were found damaged, and `OSError` at once if
    the disk fails or is full.
    """
    refused = Refused()
    for cohort in cohorts:
        if not refused.holds(cohort):
            try:
                receipt = run_cohort(store, sweep, cohort, block_rows)
            except WrongInput as error:
                refused.note(cohort, error)
            else:
                on_receipt(receipt)
    refused.say()


def run_on_dask(
    client: Client,
    store: str,
    sweep: str,
    cohorts: Sequence[Cohort],
    on_receipt: OnReceipt,
    block_rows: int | None = None,
    patience: float = WITHOUT_WORKERS,
) -> None:
    """Cohorts as Dask futures, keyed by their content, a bounded number in flight. Only functions
    of `koco_stream.engine.cohort` and names cross the wire.

    A worker that is told to leave saves what it is at, and another goes on from there
    (`koco_stream.engine.preemption`).

    A worker that is lost is not a run's fault: Dask gives its cohort to another. A cohort that has
    cost more workers than the scheduler allows (`cluster.local`: two) is cut in two. Single runs
    left by that wait until all else is done and are then run one at a time, with nothing beside
    them; one that loses its workers even so is a row with the status failed.

    Raises as `run_serially` does, and `LostCluster`: also when there has been no worker for
    `patience` seconds.
    """
    OnDask(client, store, sweep, on_receipt, block_rows, patience).run(cohorts)


class OnDask:
    """One sweep on one client: what waits, what is under way."""

    def __init__(
        self,
        client: Client,
        store: str,
        sweep: str,
        on_receipt: OnReceipt,
        block_rows: int | None,
        patience: float,
    ) -> None:
        self.patience = patience
        self.client, self.store, self.sweep, self.on_receipt, self.block_rows = (
            client,
            store,
            sweep,
            on_receipt,
            block_rows,
        )
        self.waiting: deque[Cohort] = deque()
        self.alone: deque[Cohort] = deque()
        self.under_way: dict[str, tuple[Cohort, Future]] = {}
        self.ended: queue.SimpleQueue[tuple[str, Receipt | BaseException]] = queue.SimpleQueue()
        self.refused = Refused()
        self.again = 0
        self.looked_at: set[str] = set()
        self.tried_again: set[str] = set()
        self.threads, self.looked, self.last_seen = 1, 0.0, time.monotonic()

    def run(self, cohorts: Sequence[Cohort]) -> None:
        """Run all of them; see `run_on_dask`."""
        self.waiting.extend(cohorts)
        try:
            while self.waiting or self.under_way or self.alone:
                self._look_after()
                self._submit()
                try:
                    key, ended = self.ended.get(timeout=LOOK_EVERY)
                except queue.Empty:
                    continue
                self._receive(key, ended)
        finally:
            for _, future in self.under_way.values():
                future.cancel()
        self.refused.say()

    def _look_after(self) -> None:
        """See now and then how many threads there are. Raises `LostCluster` if the scheduler is
        gone, or all workers for long.
        """
        now = time.monotonic()
        if now - self.looked < LOOK_EVERY:
            return
        self.looked = now
        if self.client.status != "running":
            raise LostCluster("the scheduler is gone")
        check_hope(self.client)
        say_left(self.client, len(self.waiting) + len(self.under_way) + len(self.alone))
        try:
            workers = self.client.nthreads()
            self._look_at(set(workers))
            self.threads = sum(workers.values())
        except (OSError, TimeoutError) as error:
            raise LostCluster(f"the scheduler does not answer: {error}") from error
        if self.threads:
            self.last_seen = now
        elif now - self.last_seen > self.patience:
            raise LostCluster(f"there has been no worker for {self.patience:.0f} s")

    def _look_at(self, workers: set[str]) -> None:
        """Send away workers that have joined and cannot be used: `preflight` saw only those that
        were there.
        """
        joined, self.looked_at = workers - self.looked_at, workers
        wrong = misfits(self.client, self.store, sorted(joined)) if joined else {}
        if wrong:
            print(
                f"workers that have joined cannot be used, and are sent away:\n{table(wrong)}",
                file=sys.stderr,
                flush=True,
            )
            self.client.retire_workers(
                [worker.partition(" ")[0] for worker in wrong], close_workers=True
            )

    def _submit(self) -> None:
        """Keep two cohorts a thread under way; suspects one at a time, when nothing else is
        left.
        """
        while self.waiting and len(self.under_way) < 2 * max(self.threads, 1):
            cohort = self.waiting.popleft()
            if not self.refused.holds(cohort):
                self._send(cohort, f"cohort-{cohort.cohort_id}")
        if self.alone and not self.under_way:
            cohort = self.alone.popleft()
            self._send(cohort, f"{ALONE}{cohort.cohort_id}")

    def _send(self, cohort: Cohort, key: str) -> None:
        future = self.client.submit(
            run_cohort,
            self.store,
            self.sweep,
            cohort,
            self.block_rows,
            versions(),
            key=key,
            pure=False,
        )
        self.under_way[key] = cohort, future
        future.add_done_callback(self._note)

    def _note(self, done: Future) -> None:
        """Called in a thread of Dask's when a future has ended. If its worker died with the receipt
        in its hands this waits for the next one, which finds the part and says so.
        """
        try:
            self.ended.put((done.key, done.result()))
        except BaseException as error:  # handed to the sweep's thread
            self.ended.put((done.key, error))

    def _receive(self, key: str, ended: Receipt | BaseException) -> None:
        """Take what ended: a receipt, a lost worker, a dataset that cannot be read. Anything else
        is raised: the sweep cannot go on.
        """
        cohort, future = self.under_way.pop(key)
        future.release()
        if isinstance(ended, Receipt):
            self.on_receipt(ended)
        elif isinstance(
            ended, Preempted | VersionMismatch | ImportError
        ):  # its worker was told to leave, or soon will be
            self._send_again(key, cohort)
        elif isinstance(ended, KilledWorker):
            self._lost_workers(key, cohort)
        elif isinstance(ended, WrongInput) and cohort.cohort_id not in self.tried_again:
            self.tried_again.add(
                cohort.cohort_id
            )  # a worker that has joined may have another store: it is sent away first
            self._look_at(set(self.client.nthreads()))
            self._send_again(key, cohort)
        elif isinstance(ended, WrongInput):
            self.refused.note(cohort, ended)
        elif isinstance(ended, CancelledError | CommClosedError):
            raise LostCluster("the scheduler is gone") from ended
        else:
            raise ended

    def _send_again(self, key: str, cohort: Cohort) -> None:
        """Submit a cohort once more, under another key: the old one stands for what came of it."""
        self.again += 1
        self._send(cohort, f"{key.partition('.')[0]}.{self.again}")

    def _lost_workers(self, key: str, cohort: Cohort) -> None:
        """Halve a cohort that costs its workers their lives; a single run is tried once more alone,
        and then has failed.
        """
        if len(cohort.runs) > 1:
            self.waiting.extend(halves(cohort))
        elif not key.startswith(ALONE):
            self.alone.append(cohort)
        else:
            self.on_receipt(
                self.client.submit(
                    fail_cohort, self.store, self.sweep, cohort, LOST, pure=False
                ).result()
            )


def halves(cohort: Cohort) -> tuple[Cohort, Cohort]:
    """The cohort in two."""
    middle = len(cohort.runs) // 2
    first, second = cohort.runs[:middle], cohort.runs[middle:]
    return replace(cohort, runs=first, seconds=cohort.seconds / 2), replace(
        cohort, runs=second, seconds=cohort.seconds / 2
    )
