"""Small sweeps in this process, for the sections of reports."""

from flows.results.tables import runs_of
from flows.sweep.planning import limits_of
from flows.sweep.steps import prepare_datasets, remember
from koco_stream.runs.planner import plan
from storage.collecting import collect
from storage.store import open_store
from tests.helpers.sweeps import checked, run_here


def swept(tmp_path, text, name="tiny"):
    """The runs of a sweep with this text, made in this process; the store is `tmp_path`/store."""
    (tmp_path / f"{name}.toml").write_text(f'name = "{name}"\n{text}')
    store = open_store(tmp_path / "store")
    sweep = checked(tmp_path / f"{name}.toml", store)
    prepare_datasets(sweep)
    cohorts = plan(sweep.runs, sweep.sizes, limits_of("local", 1)).cohorts
    run_here(store, cohorts, name)
    collect(store)
    remember(str(store), sweep.sweep, sweep.runs)
    return runs_of(store, name)
