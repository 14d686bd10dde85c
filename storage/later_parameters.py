"""Runs stored before a parameter existed have its default, which their identities leave out."""

import pyarrow as pa
import pyarrow.compute as pc

from koco_stream.learners import LEARNERS

LATER = [
    (learner.__name__, parameter.name, learner.later()[parameter.name])
    for learner in LEARNERS.values()
    for parameter in learner.parameters
    if parameter.later and parameter.matters_if is None
]


def with_later_defaults(runs: pa.Table) -> pa.Table:
    """The rows of the table `runs`, where a later parameter that always has an effect is missing,
    with its default: as runs of today have it.

    Without the column `learner` the rows stay as they are.
    """
    if "learner" not in runs.column_names:
        return runs
    for learner, name, value in LATER:
        if name in runs.column_names:
            column, at = runs.column(name), runs.column_names.index(name)
            missing = pc.and_(pc.equal(runs.column("learner"), learner), pc.is_null(column))
            if pc.any(missing).as_py():
                filled = pc.if_else(missing, pa.scalar(value, column.type), column)
                runs = runs.set_column(at, runs.schema.field(at), filled)
    return runs
