"""Before work is given to workers: do they have the same versions, see the same store, and have the
memory and disk it takes?

What would change numbers, lose results or kill workers is refused with a table of who differs; the
rest is said.
"""

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any
from uuid import uuid4

from distributed import Client
from distributed.comm import CommClosedError

from cluster.waiting import LostCluster, wait_for_worker, workers_of
from koco_stream.errors import WrongInput
from koco_stream.io.fingerprint import facts, question_folder, versions
from koco_stream.io.paths import store_path

CLOCK_SECONDS = 5.0
LITTLE_DISK = 1 << 30
IMPORT_ERRORS = (
    "ImportError",
    "ModuleNotFoundError",
)  # Dask sends them as such, or as an Exception with their text
REMEDY = (
    "install the same versions everywhere (pip install -c constraints.txt), with --store where all"
    " machines see it"
)


@dataclass
class Found:
    """What a preflight has found: by worker what it is refused for, and what is only said."""

    refused: dict[str, list[str]] = field(default_factory=dict)
    warnings: list[str] = field(default_factory=list)

    def refuse(self, worker: str, reason: str) -> None:
        """Note a reason to refuse a worker."""
        self.refused.setdefault(worker, []).append(reason)


def preflight(client: Client, store: str, disk: int = 0) -> list[str]:
    """Look at all workers of the cluster, of which one must be there or come soon; returns what is
    worth saying.

    `disk` is what the copies of the datasets take in the cache folder. Raises `WrongInput` with a
    table of the workers that cannot be used.
    """
    wait_for_worker(client)
    found = look(client, store, None, disk)
    if found.refused:
        raise WrongInput(
            f"{len(found.refused)} worker(s) cannot run this"
            f" sweep:\n{table(found.refused)}\n{REMEDY}"
        )
    return found.warnings


def misfits(client: Client, store: str, workers: Sequence[str]) -> dict[str, list[str]]:
    """Which of these workers, that have joined, cannot be used, and why."""
    return look(client, store, list(workers)).refused


def look(client: Client, store: str, workers: list[str] | None, disk: int = 0) -> Found:
    """Ask the workers (all, if none are named), and judge what they say."""
    token = uuid4().hex
    folder = store_path(store) / question_folder(token)
    begun = time.time()
    try:
        (folder / "question").write_text(token)
        said = client.run(facts, store, token, workers=workers, on_error="return")
        answered = set(folder.names())
    except CommClosedError as error:
        raise LostCluster("the scheduler is gone") from error
    finally:
        folder.remove_tree()
    found = Found()
    known = workers_of(client)
    seen = {
        worker: answer
        for worker, answer in said.items()
        if worker in known and not isinstance(answer, CommClosedError | OSError)
    }
    for worker, answer in seen.items():
        judge(found, shown(worker, known[worker]), answer, store, answered)
    sound = {
        shown(worker, known[worker]): answer
        for worker, answer in seen.items()
        if isinstance(answer, dict)
    }
    found.warnings = worth_saying(
        sound,
        {shown(worker, known[worker]): known[worker] for worker in seen},
        (begun, time.time()),
        disk,
    )
    return found


def judge(found: Found, worker: str, answer: Any, store: str, answered: set[str]) -> None:
    """Note why a worker that said this cannot be used, if so."""
    if isinstance(answer, Exception) and any(kind in repr(answer) for kind in IMPORT_ERRORS):
        found.refuse(worker, f"koco_stream cannot be imported there: {answer}")
        return
    if not isinstance(answer, dict):
        found.refuse(worker, f"it cannot say what it is: {type(answer).__name__}: {answer}")
        return
    for name, here in versions().items():
        there = answer["versions"].get(name)
        if there != here:
            found.refuse(
                worker,
                f"{'koco_stream code' if name == 'koco_stream' else name} {there}; here {here}",
            )
    if answer["store_problem"]:
        found.refuse(worker, f"the store cannot be used there: {answer['store_problem']}")
    elif answer["answer"] is None:
        found.refuse(worker, f"{store} is not the same place there")
    elif answer["answer"] not in answered:
        found.refuse(worker, f"what it writes to {store} is not seen here")


def worth_saying(
    said: dict[str, dict[str, Any]],
    known: dict[str, dict[str, Any]],
    during: tuple[float, float],
    disk: int,
) -> list[str]:
    """Differences that change no number and lose nothing. `during` is when the workers were asked,
    by this machine's clock.
    """
    lines = []
    for title, name in (
        ("processors differ: times are not comparable", "processor"),
        ("Python's patch versions differ", "python"),
    ):
        kinds: dict[str, int] = {}
        for answer in said.values():
            kinds[answer[name]] = kinds.get(answer[name], 0) + 1
        if len(kinds) > 1:
            lines.append(
                f"{title}: {', '.join(f'{kind} on {n}' for kind, n in sorted(kinds.items()))}"
            )
    for worker, answer in said.items():
        late = max(during[0] - answer["clock"], answer["clock"] - during[1])
        if late > CLOCK_SECONDS:
            lines.append(f"{worker}: its clock is off by about {late:.0f} s")
        for what, free, least in (
            ("cache folder", answer["cache_free"], disk + LITTLE_DISK),
            ("store", answer["store_free"], LITTLE_DISK),
        ):
            if free is not None and free < least:
                lines.append(
                    f"{worker}: {free >> 20} MiB are free for the {what}, and {least >> 20} MiB are"
                    " wanted"
                )
        if known[worker]["nthreads"] > answer["cores"]:
            lines.append(
                f"{worker}: {known[worker]['nthreads']} threads on {answer['cores']} cores"
            )
        if not known[worker]["memory_limit"]:
            lines.append(
                f"{worker}: it has no memory limit; start it with --memory-limit, or a large run"
                " may take its machine down"
            )
    return lines


def memory_table(client: Client) -> str:
    """Who has how much memory for a cohort, the least first."""
    workers = workers_of(client)
    rows = sorted(
        (info["memory_limit"] // info["nthreads"], shown(worker, info))
        for worker, info in workers.items()
    )
    return table(
        {worker: [f"{size >> 20} MiB for each of its threads"] for size, worker in rows if size}
    )


def shown(address: str, info: dict[str, Any]) -> str:
    """A worker's address, with its name if it was given one."""
    name = info.get("name", address)
    return address if name == address else f"{address} ({name})"


def table(rows: dict[str, list[str]]) -> str:
    """Workers and reasons in two columns."""
    width = max((len(worker) for worker in rows), default=0)
    return "\n".join(
        f"  {worker.ljust(width)}  {reason}"
        for worker, reasons in rows.items()
        for reason in reasons
    )
