"""Classes that are no part of any library, for the tests of foreign learners."""

import os
import random
import signal
import subprocess
import sys
import time
from multiprocessing.connection import Connection

import numpy as np


class Mean:
    """Predicts the mean of the labels so far; `at` is the round in which something happens."""

    def __init__(self, at: int = 0):
        self.at, self.round, self.total = at, 0, 0.0

    def predict_one(self, x):
        self.round += 1
        if self.round == self.at:
            return self.happens()
        return self.total / max(self.round - 1, 1)

    def learn_one(self, x, y):
        self.total += y

    def happens(self):
        return 0.0


class Raises(Mean):
    def happens(self):
        raise ValueError("this row is odd")


class Sleeps(Mean):
    def happens(self):
        while True:
            time.sleep(0.01)


class Exits(Mean):
    def happens(self):
        print("going", flush=True)
        os._exit(3)


class Leaves(Mean):
    def happens(self):
        sys.exit("enough")


class Killed(Mean):
    def happens(self):
        print("the last line", file=sys.stderr)
        os.kill(os.getpid(), signal.SIGSEGV)


class ForksAndExits(Mean):
    """Its process ends, and one that it has started holds all its pipes open."""

    def happens(self):
        if os.fork() == 0:
            time.sleep(60)
        os._exit(4)


class SendsAPickle(Mean):
    """Reading it would end the process that reads it."""

    def __reduce__(self):
        return os._exit, (5,)

    def happens(self):
        self.connection = Connection(int(sys.argv[1]))
        self.connection.send(self)
        return 0.0


class IsNaN(Mean):
    def happens(self):
        return float("nan")


class Prints(Mean):
    """Writes more than a pipe holds, by every way."""

    def __init__(self, at: int = 0):
        super().__init__(at)
        print("made" * 50_000)

    def predict_one(self, x):
        os.write(1, b'{"arrays": []}\n')
        os.write(2, b"x" * 5000 + b"\n")
        return super().predict_one(x)


class StartsAProcess(Mean):
    def __init__(self, at: int = 0):
        super().__init__(at)
        self.started = subprocess.Popen(["sleep", "60"])


class Draws(Mean):
    """Draws from the global generators, and from the order of a set of texts."""

    def predict_one(self, x):
        order = list({"a", "b", "c", "d", "e"}).index("a")
        return random.random() + np.random.random() + order


class CannotBeMade:
    def __init__(self, size):
        raise ValueError(f"{size} is no size")

    def learn_one(self, x, y): ...

    def predict_one(self, x): ...


class TakesAnything(Mean):
    def __init__(self, **given):
        super().__init__()
        self.given = given

    def predict_one(self, x):
        return float(self.given["table"]["list"][1])


class Keeps:
    """Keeps the rows it was given, and predicts by the first: they must not change later."""

    def __init__(self):
        self.rows = []

    def partial_fit(self, X, y):
        self.rows.append(X)

    def predict(self, X):
        return np.array([self.rows[0].sum()])


class Transforms:
    def partial_fit(self, X, y=None): ...

    def transform(self, X): ...


not_a_class = 3
