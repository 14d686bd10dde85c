"""`python -m tests.bench`: print every table, then the claims; `--help` says with which options."""

import argparse
import os
import platform
import tempfile
import time
from collections.abc import Callable
from functools import partial
from importlib.metadata import version
from pathlib import Path

from tests.bench.measure import group_begun, pin

GROUPS = (
    "20news",
    "dense",
    "ill-conditioned",
    "public-call",
    "roofline",
    "first-order",
    "sketches",
    "growth",
    "whole-runs",
    "kernel",
    "preparing",
    "streaming",
    "disk",
    "sweep",
    "classes",
    "metrics",
)
PACKAGES = (
    "koco-stream",
    "numpy",
    "numba",
    "scipy",
    "vowpalwabbit",
    "river",
    "scikit-learn",
    "ray",
    "optuna",
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
    groups, quick = given.only or GROUPS, given.quick
    repetitions = 3 if quick else 5
    start = time.perf_counter()
    cores = os.sched_getaffinity(0)
    print(f"machine: {processor()}, {platform.system()} {platform.machine()}, {pin()}")

    from tests.bench import data
    from tests.bench.claims import claims, keep, show_claims
    from tests.bench.classes import classes
    from tests.bench.compiling import compile_for
    from tests.bench.disk import disk
    from tests.bench.first_order import floors
    from tests.bench.growth import growth
    from tests.bench.kernel import kernel
    from tests.bench.metrics import metrics
    from tests.bench.preparing import preparing
    from tests.bench.public_call import public_call
    from tests.bench.roofline import roofline
    from tests.bench.side_by_side import side_by_side
    from tests.bench.sketches import sketches
    from tests.bench.streaming import streaming
    from tests.bench.sweeping import sweeping
    from tests.bench.whole_runs import whole_runs

    print(
        f"versions: Python {platform.python_version()}, "
        + ", ".join(f"{name} {version(name)}" for name in PACKAGES)
    )
    begun = time.perf_counter()
    compile_for(groups, cores)
    print(f"compiled in {time.perf_counter() - begun:.0f} s", flush=True)
    streams = {}
    if {"20news", "public-call", "roofline", "first-order", "sketches", "whole-runs"} & set(groups):
        streams["20news"] = data.first(data.news(), 4000 if quick else 10**9)
    if {"dense", "public-call", "roofline", "first-order", "sketches"} & set(groups):
        streams["dense"] = data.dense(5000 if quick else 30_000)
    if "ill-conditioned" in groups:
        streams["ill-conditioned"] = data.steep(2000 if quick else 10_000)
    about = {"machine": processor(), "version": version("koco-stream"), "quick": quick}
    results: dict[str, object] = {}
    taken: dict[str, float] = {}

    def beside(name: str) -> object:
        with tempfile.TemporaryDirectory(prefix="koco-bench-") as folder:
            times, results[f"{name} loss"] = side_by_side(
                streams[name], Path(folder) / name, repetitions, quick
            )
        return times

    work: dict[str, Callable[[], object]] = {
        **{name: partial(beside, name) for name in ("20news", "dense", "ill-conditioned")},
        "public-call": lambda: {
            name: public_call(streams[name], 2 * repetitions + 1) for name in ("20news", "dense")
        },
        "roofline": lambda: {
            name: roofline(streams[name], 2 * repetitions - 1) for name in ("20news", "dense")
        },
        "first-order": lambda: {
            name: floors(streams[name], 2 * repetitions - 1) for name in ("20news", "dense")
        },
        "sketches": lambda: {
            name: sketches(streams[name], min(repetitions, 3)) for name in ("20news", "dense")
        },
        "growth": lambda: growth(repetitions, quick),
        "whole-runs": lambda: whole_runs(streams["20news"], repetitions),
        "kernel": lambda: kernel(repetitions, quick),
        "preparing": lambda: preparing(cores, min(repetitions, 3), quick),
        "streaming": lambda: streaming(repetitions),
        "disk": disk,
        "sweep": lambda: sweeping(cores, quick),
        "classes": lambda: classes(repetitions, quick),
        "metrics": lambda: metrics(repetitions, quick),
    }
    for name in (name for name in work if name in groups):
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
    """The processor's name and what is known of its frequency."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor() or "unknown processor"
    return next(
        (line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")),
        platform.machine(),
    )


if __name__ == "__main__":
    main()
