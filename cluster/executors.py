"""Executors run cohorts and return their receipts.

`run_serially` is the reference: `run_on_dask` must leave the same result tables. What a cohort came
to is handled by `Outcomes`, wherever it ran.
"""

import itertools
import queue
import sys
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field

from distributed import CancelledError, Client, Future, KilledWorker
from distributed.comm import CommClosedError

from cluster.workers import (
    WITHOUT_WORKERS,
    LostCluster,
    check_hope,
    ever_joined,
    inspect,
    say_left,
    table,
)
from koco_stream.engine.cohort import Receipt, fail_cohort, run_cohort
from koco_stream.engine.preemption import Preempted
from koco_stream.errors import LearnerChanged, WrongInput
from koco_stream.io.fingerprint import VersionMismatch, versions
from koco_stream.runs.run import Cohort

OnReceipt = Callable[[Receipt], None]
Ended = Receipt | BaseException
POLL_SECONDS = 1.0  # interval between checks of the scheduler and its workers
LOST = (
    "its worker died each time, the last times without other runs; it may need more memory than a"
    " worker has"
)
SEE_LOG = "its log says why; a worker needs koco_stream, of the same version as here"


@dataclass
class Outcomes:
    """What cohorts came to.

    `on_receipt` is called with each receipt. `refused` has the errors, by dataset hash, of datasets
    found missing, damaged or changed: their cohorts are skipped, and those on other datasets run.
    """

    on_receipt: OnReceipt
    refused: dict[str, WrongInput] = field(default_factory=dict)

    def add(self, cohort: Cohort, ended: Ended) -> None:
        """Handle how a cohort ended. Raises an error that is not of its dataset."""
        if isinstance(ended, Receipt):
            self.on_receipt(ended)
        elif isinstance(ended, WrongInput) and not isinstance(ended, LearnerChanged):
            self.refused.setdefault(cohort.stream.dataset_hash, ended)
        else:
            raise ended

    def tell(self) -> None:
        """Raise `WrongInput` with the errors of all refused datasets, if there are any."""
        if self.refused:
            raise WrongInput(
                "; ".join(map(str, self.refused.values()))
                + "; the runs on other datasets are done and kept"
            )


def run_serially(
    store: str,
    sweep: str,
    cohorts: Sequence[Cohort],
    on_receipt: OnReceipt,
    block_rows: int | None = None,
) -> None:
    """Run cohorts one after the other in this process.

    `on_receipt` is called with the receipt of each; `block_rows` rows are read at once, or as many
    as the engine chooses. Raises `WrongInput` at the end, if datasets were missing, damaged or
    changed, and `OSError` at once, if the disk fails or is full.
    """
    outcomes = Outcomes(on_receipt)
    for cohort in cohorts:
        if cohort.stream.dataset_hash not in outcomes.refused:
            try:
                ended: Ended = run_cohort(store, sweep, cohort, block_rows)
            except WrongInput as error:
                ended = error
            outcomes.add(cohort, ended)
    outcomes.tell()


def run_on_dask(
    client: Client,
    store: str,
    sweep: str,
    cohorts: Sequence[Cohort],
    on_receipt: OnReceipt,
    block_rows: int | None = None,
    patience: float = WITHOUT_WORKERS,
) -> None:
    """Run cohorts as Dask futures, at most two per worker thread at a time.

    A preempted worker saves the state of its cohort, and another resumes it
    (`koco_stream.engine.preemption`). A cohort whose worker died, twice if the scheduler tries it
    again itself (`cluster.site`), is tried again alone, when no other cohort is running. If
    that fails too, each of its runs is tried so; a run that its worker does not survive has failed.

    Raises `LostCluster` if the scheduler is gone, or there was no worker for `patience` seconds,
    and else as `run_serially` does.
    """
    DaskExecutor(client, store, sweep, Outcomes(on_receipt), block_rows, patience).run(cohorts)


@dataclass
class DaskExecutor:
    """State of a sweep on a Dask cluster: the cohorts that wait, and those submitted.

    See `run_on_dask`.
    """

    client: Client
    store: str
    sweep: str
    outcomes: Outcomes
    block_rows: int | None = None
    patience: float = WITHOUT_WORKERS

    def __post_init__(self) -> None:
        self.waiting, self.alone = deque[Cohort](), deque[Cohort]()
        self.under_way: dict[str, tuple[Cohort, bool, Future]] = {}  # and whether it is alone
        self.ended: queue.SimpleQueue[tuple[str, Ended]] = queue.SimpleQueue()
        self.submissions = itertools.count(1)
        self.known: set[str] = set()  # addresses of workers that have answered, or are gone
        self.tried_again: set[str] = set()  # ids of cohorts whose dataset could not be read once
        self.threads, self.polled, self.last_seen = 1, 0.0, time.monotonic()

    def run(self, cohorts: Sequence[Cohort]) -> None:
        """Run all cohorts; raises as `run_on_dask` does."""
        self.waiting += cohorts
        with asking_scheduler():
            self.known = ever_joined(self.client) - set(self.client.nthreads())
        try:
            while self.waiting or self.under_way or self.alone:
                self._poll()
                self._submit()
                with suppress(queue.Empty):
                    self._receive(*self.ended.get(timeout=POLL_SECONDS))
        finally:
            for _, _, future in self.under_way.values():
                future.cancel()
        self.outcomes.tell()

    def _poll(self) -> None:
        """Update the number of worker threads, at most once a second.

        Raises `LostCluster` if the scheduler is gone, or there was no worker for too long.
        """
        now = time.monotonic()
        if now - self.polled < POLL_SECONDS:
            return
        self.polled = now
        if self.client.status != "running":
            raise LostCluster("the scheduler is gone")
        check_hope(self.client)
        say_left(self.client, len(self.waiting) + len(self.under_way) + len(self.alone))
        with asking_scheduler():
            workers = self.client.nthreads()
            self._inspect(set(workers))
        self.threads = sum(workers.values())
        if self.threads:
            self.last_seen = now
        elif now - self.last_seen > self.patience:
            raise LostCluster(f"there has been no worker for {self.patience:.0f} s")

    def _inspect(self, workers: set[str]) -> None:
        """Check workers that joined after `preflight`, and retire those that cannot be used.

        A worker without koco_stream breaks its connection when a cohort arrives, so it may be gone
        before it is asked. Then the message can only say that.
        """
        joined = ever_joined(self.client) - self.known
        if present := joined & workers:
            found = inspect(self.client, self.store, sorted(present))
            self.known |= found.answered
            if found.refused:
                _say("cannot be used, and are rejected", found.refused)
                retired = [worker.partition(" ")[0] for worker in found.refused]
                self.client.retire_workers(retired, close_workers=True)
        if gone := joined - self.known - set(self.client.nthreads()):
            self.known |= gone
            reasons = {address: [SEE_LOG] for address in sorted(gone)}
            _say("are gone before they could be checked", reasons)

    def _submit(self) -> None:
        """Keep two cohorts per thread submitted; what is tried alone follows, one at a time."""
        while self.waiting and len(self.under_way) < 2 * max(self.threads, 1):
            self._send(self.waiting.popleft())
        if self.alone and not self.under_way:
            self._send(self.alone.popleft(), alone=True)

    def _send(self, cohort: Cohort, alone: bool = False) -> None:
        """Submit a cohort, each time under a new key because Dask keeps the old key's result."""
        if cohort.stream.dataset_hash in self.outcomes.refused:
            return
        key = f"{'alone' if alone else 'cohort'}-{cohort.cohort_id}.{next(self.submissions)}"
        work = (self.store, self.sweep, cohort, self.block_rows, versions())
        future = self.client.submit(run_cohort, *work, key=key, pure=False)
        self.under_way[key] = cohort, alone, future
        future.add_done_callback(self._note)

    def _note(self, done: Future) -> None:
        """Queue the result of a future that has ended; called in one of Dask's threads.

        If a worker dies before its receipt arrives, this waits for the next worker, which finds the
        result file and returns the receipt.
        """
        try:
            self.ended.put((done.key, done.result()))
        except BaseException as error:  # raised in the sweep's thread
            self.ended.put((done.key, error))

    def _receive(self, key: str, ended: Ended) -> None:
        """Handle how a cohort ended, or try it again. Raises `LostCluster` too."""
        cohort, alone, future = self.under_way.pop(key)
        future.release()
        match ended:
            # the worker was preempted, or is about to be retired
            case Preempted() | VersionMismatch() | ImportError():
                self._send(cohort, alone)
            case KilledWorker() if not alone:
                self.alone.append(cohort)
            case KilledWorker() if len(cohort.runs) > 1:
                self.alone += cohort.singles
            case KilledWorker():
                work = (self.store, self.sweep, cohort, LOST)
                receipt = self.client.submit(fail_cohort, *work, pure=False).result()
                self.outcomes.add(cohort, receipt)
            case LearnerChanged():
                raise ended
            case WrongInput() if cohort.cohort_id not in self.tried_again:
                # a new worker may see another store; it is retired before the second try
                self.tried_again.add(cohort.cohort_id)
                self.polled = 0.0
                (self.alone if alone else self.waiting).appendleft(cohort)
            case CancelledError() | CommClosedError():
                raise LostCluster("the scheduler is gone") from ended
            case _:
                self.outcomes.add(cohort, ended)


@contextmanager
def asking_scheduler() -> Iterator[None]:
    """Raise `LostCluster` if the scheduler does not answer in this block."""
    try:
        yield
    except (OSError, TimeoutError) as error:
        raise LostCluster(f"the scheduler does not answer: {error}") from error


def _say(what: str, workers: dict[str, list[str]]) -> None:
    """Print a message on workers that have joined."""
    print(f"workers that have joined {what}:\n{table(workers)}", file=sys.stderr, flush=True)
