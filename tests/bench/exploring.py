"""`python -m tests.bench.exploring [N]`: what the explorer's answers take with N runs, 100,000 by
default.
"""

import json
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from urllib.request import urlopen

import numpy as np

from flows.exploring.answers import Explorer
from flows.exploring.chosen import COLUMNS
from flows.exploring.server import Server
from tests.helpers.many_runs import drawn_runs, many_runs, put_result_file

REPEATED = 5


def main(n: int) -> None:
    """Print the shortest and the longest of several answers of each kind, over HTTP."""
    with tempfile.TemporaryDirectory(prefix="koco-explore-") as folder:
        store = many_runs(Path(folder) / "store", n)
        explorer = Explorer(store)
        put_result_file(store, "new", drawn_runs(100, "new", np.random.default_rng(1)))
        print(f"reading a new result file beside {n:,} runs: {timed(explorer.refresh):.3f} s")
        with Server(store) as server:
            rows = json.loads(urlopen(f"{server.url}runs?limit=20").read())["rows"]
            asked = {
                "overview": "overview",
                "first screen": "summary",
                "first screen, filtered": "summary?learner=OjaSON&where=seconds%3C2",
                "table, sorted": "runs?column=params&column=mean_loss&sort=mean_loss&offset=5000",
                "table, all columns": "runs?sweep=many&where=mean_loss%3C0.9"
                + "".join(f"&column={name}" for name in COLUMNS),
                "parallel coordinates": "parallel",
                "parallel coordinates, filtered": "parallel?learner=OjaSON&where=alpha%3E0.1",
                "20 curves": "curves?" + "&".join(f"run={row[0]}" for row in rows),
            }
            for name, words in asked.items():
                took = [
                    timed(lambda url=server.url + words: urlopen(url).read())
                    for _ in range(REPEATED)
                ]
                print(f"{name}: {min(took):.3f} to {max(took):.3f} s")


def timed(work: Callable[[], object]) -> float:
    """Seconds that the work takes."""
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 100_000)
