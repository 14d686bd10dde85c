"""Generated datasets that differ in their data seed only, which count as one dataset."""

import re
from collections.abc import Iterable

import pyarrow as pa
import pyarrow.compute as pc

from flows.tables.tables import grouped

DATA_SEED = re.compile(r",data_seed=\d+")


def data_seeds_together(runs: pa.Table, names: Iterable[str]) -> pa.Table:
    """Runs in which datasets that differ in their data seed only have one name and no identity.

    The column `data` has the identity of each.
    """
    families = grouped(names, lambda name: DATA_SEED.sub("", name))
    shown = {
        name: f"{family}, {len(members)} data seeds"
        for family, members in families.items()
        for name in members
        if len(members) > 1
    }
    datasets = runs.column("dataset").to_pylist()
    columns = {name: runs.column(name) for name in runs.column_names}
    columns["data"] = columns["dataset_hash"]
    columns["dataset"] = pa.array([shown.get(name, name) for name in datasets], pa.string())
    alone = pa.array([name not in shown for name in datasets], pa.bool_())
    for name in ("dataset_hash", "sharding"):
        columns[name] = pc.if_else(alone, columns[name], None)
    return pa.table(columns)
