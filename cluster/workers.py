"""The workers of a cluster: waiting for them, and checks that they can be used."""

import sys
import time
from collections import Counter
from typing import Any, NamedTuple
from uuid import uuid4

from distributed import Client
from distributed.comm import CommClosedError

from koco_stream.errors import WrongInput
from koco_stream.io.fingerprint import facts, question_folder, versions
from koco_stream.io.paths import store_path

ANSWER_SECONDS = 20.0
SILENT_SECONDS = 10.0
WITHOUT_WORKERS = 60.0  # seconds; a lost worker is usually back much sooner
LITTLE_DISK = 1 << 30


class LostCluster(RuntimeError):
    def __init__(self, why: str) -> None:
        super().__init__(f"{why}; start it and its workers again")


def check_hope(client: Client) -> None:
    """Raises `LostCluster` if `cluster.jobs` has given up submitting jobs."""
    if lost := getattr(client.cluster, "lost", None):
        raise LostCluster(lost)


def say_left(client: Client, cohorts: int) -> None:
    if hasattr(client.cluster, "left"):
        client.cluster.left = cohorts


def workers_of(client: Client) -> dict[str, dict[str, Any]]:
    """Raises `LostCluster` if the scheduler does not answer."""
    try:
        return dict(client.scheduler_info(n_workers=-1)["workers"])
    # Dask gives an empty answer for a scheduler that has just gone
    except (KeyError, OSError, TimeoutError):
        raise LostCluster("the scheduler is gone") from None


def ever_joined(client: Client) -> set[str]:
    return {
        event["worker"] for _, event in client.get_events("all") if event["action"] == "add-worker"
    }


def wait_for(client: Client, workers: int, seconds: float) -> bool:
    """Whether the workers came. Raises `LostCluster` if none can be expected."""
    started_at = time.monotonic()
    announced = False
    while (there := len(workers_of(client))) < workers:
        check_hope(client)
        waited = time.monotonic() - started_at
        if waited > seconds:
            return False
        if waited > SILENT_SECONDS and not announced:
            print(
                f"waiting for workers: {there} of {workers} have connected",
                file=sys.stderr,
                flush=True,
            )
            announced = True
        time.sleep(0.1)
    return True


def wait_for_worker(client: Client) -> None:
    if not wait_for(client, 1, ANSWER_SECONDS):
        raise WrongInput(
            f"the scheduler at {client.scheduler.address} has no worker; start some with `dask"
            " worker`"
        )


def preflight(client: Client, store: str, disk: int = 0) -> list[str]:
    """Raises `WrongInput` with a table of the workers that cannot be used; returns warnings."""
    wait_for_worker(client)
    found = inspect(client, store, None, disk)
    if found.refused:
        raise WrongInput(
            f"{len(found.refused)} worker(s) cannot run this sweep:\n{table(found.refused)}\n"
            "install the same versions everywhere (pip install -c constraints.txt), and give a"
            " --store that all machines can reach"
        )
    return found.warnings


class Inspection(NamedTuple):
    """Reasons against workers, by worker; warnings; and the addresses of those that answered."""

    refused: dict[str, list[str]]
    warnings: list[str]
    answered: set[str]


def inspect(client: Client, store: str, workers: list[str] | None, disk: int = 0) -> Inspection:
    token = uuid4().hex
    folder = store_path(store) / question_folder(token)
    asked_at = time.time()
    try:
        (folder / "question").write_text(token)
        replies = client.run(facts, store, token, workers=workers, on_error="return")
        answered = set(folder.names())
    except CommClosedError as error:
        raise LostCluster("the scheduler is gone") from error
    finally:
        folder.remove_tree()
    during = (asked_at, time.time())
    known = workers_of(client)
    replies = {
        address: answer
        for address, answer in replies.items()
        if address in known and not isinstance(answer, CommClosedError | OSError)
    }
    names = {address: shown(address, known[address]) for address in replies}
    reasons = {
        names[address]: reasons_against(answer, store, answered)
        for address, answer in replies.items()
    }
    answers = {
        names[address]: {**known[address], **answer}
        for address, answer in replies.items()
        if isinstance(answer, dict)
    }
    return Inspection(
        refused={worker: against for worker, against in reasons.items() if against},
        warnings=worth_saying(answers, during, disk),
        answered=set(replies),
    )


def reasons_against(answer: Any, store: str, answered: set[str]) -> list[str]:
    # Dask returns these errors themselves, or an Exception with their text
    if isinstance(answer, Exception) and any(
        kind in repr(answer) for kind in ("ImportError", "ModuleNotFoundError")
    ):
        return [f"koco_stream cannot be imported there: {answer}"]
    if not isinstance(answer, dict):
        return [f"its check failed: {type(answer).__name__}: {answer}"]
    there = answer["versions"]
    problem = answer["store_problem"]
    seen = answer["answer"]
    reasons = [
        *(
            (
                there.get(name) != here,
                f"{name}{' code' * (name == 'koco_stream')} {there.get(name)}; here {here}",
            )
            for name, here in versions().items()
        ),
        (problem, f"the store cannot be used there: {problem}"),
        (not problem and seen is None, f"{store} is not the same store there"),
        (
            not problem and seen not in (None, *answered),
            f"what it writes to {store} is not seen here",
        ),
    ]
    return [reason for is_there, reason in reasons if is_there]


def worth_saying(
    workers: dict[str, dict[str, Any]], during: tuple[float, float], disk: int
) -> list[str]:
    kinds = {
        title: Counter(worker[name] for worker in workers.values())
        for title, name in (
            ("processors differ: times are not comparable", "processor"),
            ("Python's patch versions differ", "python"),
        )
    }
    lines = [
        f"{title}: {', '.join(f'{kind} on {n}' for kind, n in sorted(found.items()))}"
        for title, found in kinds.items()
        if len(found) > 1
    ]
    for name, worker in workers.items():
        late = max(during[0] - worker["clock"], worker["clock"] - during[1])
        noticed = [
            (late > 5.0, f"its clock differs by about {late:.0f} s"),
            *(
                (
                    free is not None and free < least,
                    f"{(free or 0) >> 20} MiB are free for the {what}, but {least >> 20} MiB are"
                    " recommended",
                )
                for what, free, least in (
                    ("cache folder", worker["cache_free"], disk + LITTLE_DISK),
                    ("store", worker["store_free"], LITTLE_DISK),
                )
            ),
            (
                worker["nthreads"] > worker["cores"],
                f"{worker['nthreads']} threads on {worker['cores']} cores",
            ),
            (
                not worker["memory_limit"],
                "it has no memory limit; start it with --memory-limit, or a large run may crash"
                " its machine",
            ),
        ]
        lines += [f"{name}: {message}" for is_there, message in noticed if is_there]
    return lines


def memory_table(client: Client) -> str:
    rows = sorted(
        (info["memory_limit"] // info["nthreads"], shown(worker, info))
        for worker, info in workers_of(client).items()
    )
    return table(
        {worker: [f"{size >> 20} MiB for each of its threads"] for size, worker in rows if size}
    )


def shown(address: str, info: dict[str, Any]) -> str:
    name = info.get("name", address)
    return address if name == address else f"{address} ({name})"


def table(rows: dict[str, list[str]]) -> str:
    width = max((len(worker) for worker in rows), default=0)
    return "\n".join(
        f"  {worker.ljust(width)}  {reason}"
        for worker, reasons in rows.items()
        for reason in reasons
    )
