"""`python -m tests.bench`: print every table, then the claims; `--help` says with which options."""

import argparse
import os
import platform
import tempfile
import time
from collections.abc import Callable
from datetime import date
from functools import cache, partial
from importlib.metadata import version
from pathlib import Path

from tests.bench.measure import group_begun, pin

GROUPS = (
    *("20news", "dense", "public-call", "roofline", "sketches", "growth", "kernel", "preparing"),
    *("streaming", "sweep"),
)
PACKAGES = (
    *("koco-stream", "numpy", "numba", "scipy", "vowpalwabbit", "scikit-learn", "optuna"),
    "joblib",
)


def main() -> None:
    options = argparse.ArgumentParser(
        prog="python -m tests.bench",
        description="Our learners beside their peers, in one run on one core; sweeps on two.",
    )
    options.add_argument(
        "--quick",
        action="store_true",
        help="a few minutes: fewer rows, repetitions and grid points",
    )
    options.add_argument(
        "--only", choices=GROUPS, action="append", help="one group (may be given again)"
    )
    options.add_argument(
        "--json",
        type=Path,
        metavar="FILE",
        help="write the claims and what was measured to a file; what it has of other groups stays",
    )
    given = options.parse_args()
    quick, repetitions = given.quick, 3 if given.quick else 5
    start, cores = time.perf_counter(), os.sched_getaffinity(0)
    about = {
        "date": f"{date.today()}",
        "machine": processor(),
        "version": version("koco-stream"),
        "quick": quick,
    }
    print(f"machine: {processor()}, {platform.system()} {platform.machine()}, {pin()}")
    print("versions: " + ", ".join(f"{name} {version(name)}" for name in PACKAGES))

    from tests.bench import data
    from tests.bench.beside import beside
    from tests.bench.claims import claims, keep, show_claims
    from tests.bench.growth import growth
    from tests.bench.kernel import kernel
    from tests.bench.preparing import preparing
    from tests.bench.public_call import public_call
    from tests.bench.roofline import roofline
    from tests.bench.sketches import sketches
    from tests.bench.streaming import streaming
    from tests.bench.sweeping import sweeping

    results: dict[str, object] = {}
    taken: dict[str, float] = {}
    news = cache(lambda: data.first(data.news(), 4000 if quick else 10**9))
    dense = cache(lambda: data.dense(5000 if quick else 30_000))
    streams = {"20news": news, "dense": dense}

    def tuned(name: str) -> object:
        with tempfile.TemporaryDirectory(prefix="koco-bench-") as folder:
            found = beside(streams[name](), Path(folder), repetitions, quick)
        times, results[f"{name} loss"] = found
        return times

    def on_both(group: Callable[..., object], times: int) -> dict[str, object]:
        return {name: group(rows(), times) for name, rows in streams.items()}

    work: dict[str, Callable[[], object]] = {
        **{name: partial(tuned, name) for name in streams},
        "public-call": lambda: on_both(public_call, 2 * repetitions + 1),
        "roofline": lambda: on_both(roofline, 2 * repetitions - 1),
        "sketches": lambda: on_both(sketches, 3),
        "growth": lambda: growth(repetitions, quick),
        "kernel": lambda: kernel(repetitions, quick),
        "preparing": lambda: preparing(news(), cores, 3),
        "streaming": lambda: streaming(repetitions),
        "sweep": lambda: sweeping(cores, quick),
    }
    for name in (name for name in GROUPS if name in (given.only or GROUPS)):
        group_begun(name)
        begun = time.perf_counter()
        if found := work[name]():
            results[name] = found
        taken[name] = time.perf_counter() - begun
        if given.json is not None:
            keep(claims(results, whole=False), given.json, about)
    show_claims(claims(results, whole=given.only is None))
    print("\nseconds: " + ", ".join(f"{name} {spent:.0f}" for name, spent in taken.items()))
    print(
        f"the whole run took {time.perf_counter() - start:.0f} s"
        + (" (--quick: the numbers are rough)" if quick else "")
    )


def processor() -> str:
    """The processor's name."""
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.split(":", 1)[1].strip()
    return platform.machine()


if __name__ == "__main__":
    main()
