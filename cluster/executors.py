"""The executor, which runs cohorts: on Dask's workers, or one after the other in this process."""

import itertools
import queue
import sys
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent import futures
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from typing import Any

from distributed import CancelledError, Client, KilledWorker
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

POLL_SECONDS = 1.0  # interval between checks of the scheduler and its workers
LOST = (
    "its worker died each time, the last times without other runs; it may need more memory than a"
    " worker has"
)


def here(function: Callable[..., Any], *given: Any, **_: Any) -> "futures.Future[Any]":
    """What `Client.submit` gives, of a function that this process has called meanwhile."""
    done = futures.Future[Any]()
    try:
        done.set_result(function(*given))
    except WrongInput as error:
        done.set_exception(error)
    return done


def soon(
    client: Client, function: Callable[..., Any], given: Sequence[Sequence[Any]], seconds: float
) -> list[Any]:
    """What a function gives on workers, if within so many seconds; a worker may die of it."""
    submitted = [client.submit(function, *words, pure=False) for words in given]
    until = time.monotonic() + seconds
    while time.monotonic() < until and any(one.status == "pending" for one in submitted):
        time.sleep(0.01)
    done = [one.result() for one in submitted if one.status == "finished"]
    client.cancel(submitted)
    return done


@dataclass
class Executor:
    """Runs cohorts, at most two per worker thread at a time, or one without a client.

    A cohort whose worker died is tried again alone, then each of its runs; one that its worker does
    not survive has failed. After `patience` seconds without a worker the cluster is lost.
    """

    client: Client | None
    store: str
    sweep: str
    on_receipt: Callable[[Receipt], None]
    block_rows: int | None = None
    patience: float = WITHOUT_WORKERS

    def __post_init__(self) -> None:
        self.submit = self.client.submit if self.client else here
        self.waiting = deque[Cohort]()
        self.alone = deque[Cohort]()
        self.under_way: dict[str, tuple[Cohort, bool, Any]] = {}  # whether alone; and its future
        self.ended: queue.SimpleQueue[tuple[str, Receipt | BaseException]] = queue.SimpleQueue()
        self.submissions = itertools.count(1)
        self.known: set[str] = set()  # addresses of workers that have answered, or are gone
        self.tried_again: set[str] = set()  # ids of cohorts whose dataset could not be read once
        # errors, by dataset hash, of datasets that are missing, damaged or changed
        self.refused: dict[str, WrongInput] = {}
        self.room = 1
        self.polled = 0.0
        self.last_seen = time.monotonic()

    def run(self, cohorts: Sequence[Cohort]) -> None:
        """Run all cohorts, but those on datasets that are missing, damaged or changed."""
        self.waiting += cohorts
        if self.client:
            with asking_scheduler():
                self.known = ever_joined(self.client) - set(self.client.nthreads())
        try:
            while self.waiting or self.under_way or self.alone:
                if self.client and time.monotonic() - self.polled >= POLL_SECONDS:
                    self._poll(self.client)
                self._submit()
                with suppress(queue.Empty):
                    self._receive(*self.ended.get(timeout=POLL_SECONDS if self.under_way else 0.0))
        finally:
            for _, _, future in self.under_way.values():
                future.cancel()
        if self.refused:
            raise WrongInput(
                "; ".join(map(str, self.refused.values()))
                + "; the runs on other datasets are done and kept"
            )

    def _poll(self, client: Client) -> None:
        self.polled = now = time.monotonic()
        if client.status != "running":
            raise LostCluster("the scheduler is gone")
        check_hope(client)
        say_left(client, len(self.waiting) + len(self.under_way) + len(self.alone))
        with asking_scheduler():
            workers = client.nthreads()
            self._inspect(client, set(workers))
        self.room = 2 * max(sum(workers.values()), 1)
        if workers:
            self.last_seen = now
        elif now - self.last_seen > self.patience:
            raise LostCluster(f"there has been no worker for {self.patience:.0f} s")

    def _inspect(self, client: Client, workers: set[str]) -> None:
        """Check workers that joined after `preflight`, and retire those that cannot be used."""
        joined = ever_joined(client) - self.known
        if present := joined & workers:
            found = inspect(client, self.store, sorted(present))
            self.known |= found.answered
            if found.refused:
                _say("cannot be used, and are rejected", found.refused)
                client.retire_workers(
                    [worker.partition(" ")[0] for worker in found.refused], close_workers=True
                )
        if gone := joined - self.known - set(client.nthreads()):
            self.known |= gone
            _say(
                "are gone before they could be checked",
                {
                    address: [
                        "its log says why; a worker needs koco_stream, of the same version as here"
                    ]
                    for address in sorted(gone)
                },
            )

    def _submit(self) -> None:
        while self.waiting and len(self.under_way) < self.room:
            self._send(self.waiting.popleft())
        if self.alone and not self.under_way:
            self._send(self.alone.popleft(), alone=True)

    def _send(self, cohort: Cohort, alone: bool = False) -> None:
        """Each time the key is new, because Dask keeps the old key's result."""
        if cohort.stream.dataset_hash in self.refused:
            return
        key = f"{'alone' if alone else 'cohort'}-{cohort.cohort_id}.{next(self.submissions)}"
        future = self.submit(
            run_cohort,
            self.store,
            self.sweep,
            cohort,
            self.block_rows,
            versions() if self.client else None,
            key=key,
            pure=False,
        )
        self.under_way[key] = cohort, alone, future
        future.add_done_callback(partial(self._note, key))

    def _note(self, key: str, done: Any) -> None:
        """Called in one of Dask's threads when a future has ended.

        If a worker dies before its receipt arrives, the next one finds the result file and returns
        the receipt.
        """
        try:
            self.ended.put((key, done.result()))
        except BaseException as error:  # raised in the sweep's thread
            self.ended.put((key, error))

    def _receive(self, key: str, ended: Receipt | BaseException) -> None:
        cohort, alone, _ = self.under_way.pop(key)
        match ended:
            case Receipt():
                self.on_receipt(ended)
            # the worker was preempted, or is about to be retired
            case Preempted() | VersionMismatch() | ImportError():
                self._send(cohort, alone)
            case KilledWorker() if not alone:
                self.alone.append(cohort)
            case KilledWorker() if len(cohort.runs) > 1:
                self.alone += cohort.singles
            case KilledWorker():
                self.on_receipt(fail_cohort(self.store, self.sweep, cohort, LOST))
            case CancelledError() | CommClosedError():
                raise LostCluster("the scheduler is gone") from ended
            case WrongInput() if not isinstance(ended, LearnerChanged):
                if self.client and cohort.cohort_id not in self.tried_again:
                    # a new worker may see another store; it is retired before the second try
                    self.tried_again.add(cohort.cohort_id)
                    self.polled = 0.0
                    (self.alone if alone else self.waiting).appendleft(cohort)
                else:
                    self.refused.setdefault(cohort.stream.dataset_hash, ended)
            case _:
                raise ended


@contextmanager
def asking_scheduler() -> Iterator[None]:
    try:
        yield
    except (OSError, TimeoutError) as error:
        raise LostCluster(f"the scheduler does not answer: {error}") from error


def _say(what: str, workers: dict[str, list[str]]) -> None:
    print(f"workers that have joined {what}:\n{table(workers)}", file=sys.stderr, flush=True)
