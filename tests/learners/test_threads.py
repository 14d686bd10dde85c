"""One object and several threads: their calls take turns, and what is copied or saved meanwhile is
what it was between two of them.
"""

import copy
import os
import signal
import sys
from concurrent.futures import ThreadPoolExecutor
from itertools import permutations
from threading import Barrier, Event, Thread

import numpy as np
import pytest
from sklearn.base import clone

import koco_stream
from koco_stream import NORMA, OGD, PROSNKONS, Batch, Classifier
from koco_stream.learners.saved import state_arrays
from koco_stream.river import RiverRegressor
from tests.helpers.examples import make
from tests.helpers.linear_streams import stream
from tests.helpers.wire import as_on_a_worker

THREADS, ROWS = 4, 40  # rows of a call
X, Y = stream(0, n=(THREADS + 1) * ROWS, d=12, density=1.0)
PARTS = [slice(k * ROWS, (k + 1) * ROWS) for k in range(THREADS)]
AHEAD = X[THREADS * ROWS :]
CLASSES = np.arange(Y.size) % 3


class Counting(OGD):
    """A user's own learner, with a call of its own that reads and writes what it has learnt."""

    def progressive(self, X, y):
        before = vars(self).get("calls", 0)
        found = super().progressive(X, y)
        self.calls = before + 1
        return np.append(found, self.calls)


def learning(labels, **more):
    return lambda model, k: model.progressive(X[PARTS[k]], labels[PARTS[k]], **more)


def one_row(model, k):
    return model.learn_one(dict(enumerate(X[k])), Y[k]) or ()


# How an object is made, the call of thread k, and the numbers by which its state is seen.
OBJECTS = {
    "a user's": (Counting, learning(Y), lambda model: [model.rounds_, model.calls]),
    "of classes": (
        lambda: Classifier(make("KONS")),
        learning(CLASSES, classes=[0, 1, 2]),
        lambda model: model.decision_function(AHEAD),
    ),
    "RiverRegressor": (
        lambda: RiverRegressor(OGD(), 12),
        one_row,
        lambda model: model.predict_one(dict(enumerate(AHEAD[0]))),
    ),
}


@pytest.fixture(autouse=True)
def threads_that_change_often():
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


def bits(numbers):
    return np.asarray(numbers, np.float64).tobytes()


@pytest.mark.parametrize("name", OBJECTS)
def test_calls_of_threads__have_the_bits_of_one_of_their_orders(name):
    made, call, seen = OBJECTS[name]
    expected = set()
    for order in permutations(range(THREADS)):
        model = made()
        found = {k: bits(call(model, k)) for k in order}
        expected.add((*(found[k] for k in range(THREADS)), bits(seen(model))))
    for _ in range(5):
        model, together = made(), Barrier(THREADS)

        def start(k, model=model, together=together):
            together.wait()
            return bits(call(model, k))

        with ThreadPoolExecutor(THREADS) as threads:
            found = tuple(threads.map(start, range(THREADS)))
        assert (*found, bits(seen(model))) in expected


@pytest.mark.parametrize("model", [OGD(), NORMA(budget=20), PROSNKONS(alpha=0.5)], ids=repr)
def test_copies_while_a_thread_learns__are_as_between_two_calls(model, tmp_path):
    states, reference = {}, clone(model)
    for call in range(50):
        states[call * ROWS] = bits(reference.predict(AHEAD)) if call else b""
        reference.partial_fit(X[PARTS[call % THREADS]], Y[PARTS[call % THREADS]])
    learner = Thread(
        target=lambda: [
            model.partial_fit(X[PARTS[call % THREADS]], Y[PARTS[call % THREADS]])
            for call in range(49)
        ]
    )
    learner.start()
    copies = []
    while learner.is_alive():
        copies += [copy.deepcopy(model), as_on_a_worker(model), copy.copy(model)]
        model.save(tmp_path / "a.koco")
        copies.append(koco_stream.load(tmp_path / "a.koco"))
        clone(model)
    learner.join()
    for one in copies:
        rounds = vars(one).get("rounds_", 0)
        assert (bits(one.predict(AHEAD)) if rounds else b"") == states[rounds]


@pytest.mark.parametrize("made", [OGD, lambda: Classifier(OGD()), lambda: Batch(OGD())])
def test_lock__stays_with_its_object_and_is_free_in_a_forked_process(made):
    model = made()
    with model._lock, ThreadPoolExecutor(1) as other:
        for one in (copy.copy(model), copy.deepcopy(model), as_on_a_worker(model)):
            assert other.submit(one._lock.acquire, timeout=10).result()
        assert not other.submit(model._lock.acquire, blocking=False).result()


@pytest.mark.filterwarnings("ignore:.*multi-threaded, use of fork")
def test_forked_process__does_not_wait_for_a_thread_that_it_does_not_have():
    model, held, done = OGD(0.3).fit(X, Y), Event(), Event()

    def hold():
        with model._lock:
            held.set()
            done.wait()

    thread = Thread(target=hold)
    thread.start()
    held.wait()
    child = os.fork()
    if child == 0:
        signal.alarm(30)  # which ends it if it waits
        ended = 1
        try:
            again = copy.deepcopy(model).partial_fit(X, Y)
            ended = again.predict(X).tobytes() != as_on_a_worker(again).predict(X).tobytes()
        finally:
            os._exit(ended)
    done.set()
    thread.join()
    assert os.waitpid(child, 0)[1] == 0


def test_public_attributes__are_read_between_two_calls():
    model, stop = make("OjaSON").fit(X, Y), Event()

    def learn():
        while not stop.is_set():
            model.partial_fit(X[:ROWS], Y[:ROWS])

    learner = Thread(target=learn)
    learner.start()
    try:
        for _ in range(100):
            rows = model.sketch_
            np.testing.assert_allclose(rows @ rows.T, np.eye(len(rows)), atol=1e-9)
    finally:
        stop.set()
        learner.join()
    assert all(np.isfinite(array).all() for array in state_arrays(model._state).values())
