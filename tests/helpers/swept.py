"""Small sweeps in this process, for the sections of reports."""

from cluster.executors import run_serially
from flows.results.tables import runs_of
from flows.sweep.file import read_sweep
from flows.sweep.planning import limits_of, sizes_of
from flows.sweep.steps import remember
from koco_stream.runs.planner import plan
from koco_stream.streams.manifest import load_manifest
from storage.collecting import collect
from storage.generated.generators import prepare_synthetic
from storage.store import open_store


def swept(tmp_path, text, name="tiny"):
    """The runs of a sweep with this text, made in this process; the store is `tmp_path`/store."""
    (tmp_path / f"{name}.toml").write_text(f'name = "{name}"\n{text}')
    sweep, store = read_sweep(tmp_path / f"{name}.toml"), tmp_path / "store"
    open_store(store)
    manifests = {
        use.name: load_manifest(store, use.name)
        if use.given is None
        else prepare_synthetic(store, use.generator, use.given)
        for use in sweep.datasets
    }
    runs = sweep.runs(dict(manifests))
    run_serially(
        str(store),
        name,
        plan(runs, sizes_of(list(manifests.values())), limits_of("local", 1)).cohorts,
        lambda *_: None,
        4096,
    )
    collect(store)
    remember(str(store), sweep, runs)
    return runs_of(store, name)
