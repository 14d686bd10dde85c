"""Launching the preparation of a dataset from the command line."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from flows.prepare.preparation import prepare_named
from flows.runtime.recording import Stage, plainly, recorded
from koco_stream.streams.manifest import Manifest

if TYPE_CHECKING:
    from prefect import Flow


def launch_preparation(
    store: str, name: str, sources: tuple[Path, ...], prefect: bool | None = None, **more: Any
) -> Manifest:
    """Prepare a dataset, as a flow run where `recorded` makes one. See `prepare_named`."""

    def work(stage: Stage) -> Manifest:
        manifest: Manifest = stage("prepare", partial(prepare_named, **more))(store, name, sources)
        if stage is not plainly:
            from flows.prepare.flow import prepared_artifact

            prepared_artifact(store, [manifest])
        return manifest

    return recorded(_flow, name, {"datasets": [name], "store": store}, work, prefect)


def _flow() -> Flow[..., Any]:
    from flows.prepare.flow import prepare_flow

    return prepare_flow
