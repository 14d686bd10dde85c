"""Launching the preparation of a dataset from the command line."""

from functools import partial
from pathlib import Path
from typing import Any

from flows.prepare.preparation import prepare_named
from flows.runtime.artifacts import table_artifact
from flows.runtime.recording import Stage, recorded
from koco_stream.streams.manifest import Manifest


def launch_preparation(
    store: str, name: str, sources: tuple[Path, ...], prefect: bool | None = None, **more: Any
) -> Manifest:
    """Prepare a dataset, as a flow run where `recorded` makes one. See `prepare_named`."""

    def work(stage: Stage) -> Manifest:
        manifest: Manifest = stage("prepare", partial(prepare_named, **more))(store, name, sources)
        facts: dict[str, Any] = {"rows": manifest.n_rows, "features": manifest.n_features}
        facts |= {"layout": manifest.layout, "identity": manifest.dataset_hash[:12]}
        table_artifact(f"prepared-{name}", lambda: [facts], (), store)
        return manifest

    return recorded("prepare_flow", name, {"datasets": [name], "store": store}, work, prefect)
