"""The checksums of fetched files, kept in the store (`sources.json`): what an address gave once, it
must give again.
"""

import json
from datetime import UTC, datetime

from koco_stream.errors import WrongInput
from koco_stream.io.paths import AnyPath, StorePath, store_path
from storage.store import LOCK, check_store, open_store

FILE = "sources.json"


def recorded(store: AnyPath) -> dict[str, str]:
    """The SHA-256 by address; empty if the store has none yet. Raises `WrongInput` if the file is
    damaged.
    """
    root = store_path(store)
    if not check_store(root):
        return {}
    return {address: str(noted["sha256"]) for address, noted in _read(root / FILE).items()}


def record(store: AnyPath, address: str, sha256: str, n_bytes: int) -> None:
    """Record what `address` gave, and when, unless it is there already."""
    root = open_store(store)
    with (root / LOCK).locked():
        known = _read(root / FILE)
        if address not in known:
            known[address] = {
                "sha256": sha256,
                "bytes": n_bytes,
                "when": datetime.now(UTC).isoformat(timespec="seconds"),
            }
            (root / FILE).write_text(json.dumps(known, indent=1, sort_keys=True) + "\n")


def _read(path: StorePath) -> dict[str, dict[str, str | int]]:
    try:
        known = json.loads(path.read_text())
        return {address: {**noted, "sha256": noted["sha256"]} for address, noted in known.items()}
    except FileNotFoundError:
        return {}
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise WrongInput(
            f"{path} is damaged ({error}); delete it, and the checksums are recorded anew"
        ) from None
