"""The feature table of a dataset whose features were renumbered: their original numbers.

It is a Parquet file beside the shards. `feature` is a feature's number in the shards and `original`
its number without the renumbering, both counted from 0.
"""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from koco_stream.errors import WrongInput
from koco_stream.io.files import file_hash, sync
from koco_stream.io.paths import AnyPath
from koco_stream.streams.manifest import FeatureTable, Manifest, dataset_path
from koco_stream.types import Array

NAME = "features.parquet"
SCHEMA = pa.schema({"feature": pa.int32(), "original": pa.int32()})
AGAIN = "prepare the dataset again"


def write_feature_table(original: Array, folder: Path) -> FeatureTable:
    """Write the table of the original numbers (d,) to `folder`, synced; return its entry."""
    path = folder / NAME
    features = np.arange(original.size, dtype=np.int32)
    pq.write_table(
        pa.table([features, original], SCHEMA),
        path,
        compression="zstd",
        use_dictionary=False,
        column_encoding=dict.fromkeys(SCHEMA.names, "DELTA_BINARY_PACKED"),
    )
    sync(path)
    return FeatureTable(NAME, file_hash(path))


def original_features(store: AnyPath, manifest: Manifest) -> Array:
    """The original number (d,) of each feature of a dataset; its own if it was not renumbered.

    Raises `WrongInput` if the table is missing, damaged, or not that of these features.
    """
    d = manifest.n_features
    if manifest.feature_table is None:
        return np.arange(d, dtype=np.int32)
    path = dataset_path(store, manifest.name) / manifest.feature_table.path
    try:
        with path.local() as file:
            if file_hash(file) != manifest.feature_table.sha256:
                raise WrongInput(
                    f"{path} is not the file that was prepared: it was altered or damaged; {AGAIN}"
                )
            table = pq.ParquetFile(file).read()
    except FileNotFoundError:
        raise WrongInput(f"{path} is missing; {AGAIN}") from None
    except pa.ArrowInvalid as error:
        raise WrongInput(f"{path}: {error}; {AGAIN}") from None
    if table.schema.equals(SCHEMA) and table.num_rows == d:
        numbers = np.arange(d, dtype=np.int32)
        feature, original = (column.to_numpy() for column in table.columns)
        if np.array_equal(feature, numbers) and np.array_equal(np.sort(original), numbers):
            return original
    raise WrongInput(f"{path} does not list each of the {d:,} features once; {AGAIN}")
