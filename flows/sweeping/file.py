"""The sweep file (TOML): checked key by key, and expanded into datasets and configurations."""

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
import tomli_w
from pydantic import BaseModel, ConfigDict, Field, NonNegativeInt, PositiveInt

from flows.sweeping.halving import Halving
from flows.sweeping.learner_tables import (
    Grids,
    LearnerTable,
    LearnerUse,
    check_search,
    combinations,
    configurations,
    learner_use,
    values_of,
)
from flows.sweeping.search import Configuration, Search, Space, is_drawn
from flows.sweeping.toml_file import Name, TomlFile
from koco_stream.errors import WrongInput, nearest
from koco_stream.metrics import SEGMENT, check_name
from koco_stream.runs.cost_model import DataSize
from koco_stream.runs.run import NOTHING_MORE, Measured
from koco_stream.streams.manifest import Manifest
from koco_stream.streams.orders import AS_STORED, IN_WINDOWS, WINDOW_ROWS
from storage.generated.generators import GENERATORS, expected_values, parameters_of, synthetic_name

FigureName = Literal[
    "son-figure-1",
    "son-figure-2",
    "son-figure-3",
    "sketch-start",
    "poster-tables",
    "kons-adversary",
    "sampling-floor",
]
MOST_RUNS = 10_000_000
EXAMPLES = "`koco sweep --list` shows examples"
DICTIONARY = Path("the sweep given as a dictionary")  # stands for a path in messages
Label = Annotated[float, Field(allow_inf_nan=False)] | int
Seeds = PositiveInt | Annotated[list[NonNegativeInt], Field(min_length=1)]


class DatasetTable(BaseModel):
    """A [[dataset]] table of a sweep file: which dataset, in which orders, and how many rows.

    It is a prepared dataset, or a generator with its parameters.
    """

    model_config = ConfigDict(extra="allow", strict=True)
    name: str
    positive_class: Label | Annotated[list[Label], Field(min_length=1)] | None = None
    multiclass: Literal["one-vs-rest"] | None = None
    order: Literal["as-stored", "shuffled", "shuffled-in-windows"] = "as-stored"
    order_seeds: Seeds = 1
    window_rows: PositiveInt = WINDOW_ROWS
    max_rows: PositiveInt | None = None

    @property
    def positive_classes(self) -> Sequence[Label | None]:
        """The positive classes as a list; [None] if none is given."""
        return (
            self.positive_class if isinstance(self.positive_class, list) else [self.positive_class]
        )


class ReportTable(BaseModel):
    """The [report] table: names of the published figures that the report shows."""

    model_config = ConfigDict(extra="forbid", strict=True)
    figure: FigureName | list[FigureName] = Field(default_factory=list)


class SweepFile(BaseModel):
    """The content of a sweep file, before grids are expanded."""

    model_config = ConfigDict(extra="forbid", strict=True)
    name: Name
    learner_seeds: Seeds = 1
    metrics: list[str] = Field(default_factory=list)
    window: PositiveInt | None = None
    keep_predictions: bool = False
    dataset: list[DatasetTable] = Field(min_length=1)
    learner: list[LearnerTable] = Field(min_length=1)
    report: ReportTable = ReportTable()
    halving: Halving | None = None
    search: Search | None = None


TABLES: dict[str, type[BaseModel]] = {
    "dataset": DatasetTable,
    "learner": LearnerTable,
    "report": ReportTable,
    "halving": Halving,
    "search": Search,
}


@dataclass(frozen=True)
class DatasetUse:
    """A dataset of a sweep, with the orders and positive classes in which it is read.

    `given` has the parameters of a generator, and is None for a prepared dataset.
    """

    name: str
    given: dict[str, Any] | None
    generator: str
    orders: tuple[tuple[str, int | None], ...]
    positive_classes: tuple[float | None, ...]
    max_rows: int | None
    window_rows: int | None
    multiclass: str | None = None

    @property
    def order_text(self) -> str:
        """Description of the order: `shuffled-in-windows, window_rows = 65536, 3 order seeds`."""
        order, seed = self.orders[0]
        windows = f", window_rows = {self.window_rows}" if self.window_rows else ""
        plural = "s" * (len(self.orders) > 1)
        seeds = "" if seed is None else f", {len(self.orders)} order seed{plural}"
        return f"{order}{windows}{seeds}"

    def identity(self, manifest: Manifest | None) -> str:
        """The dataset's hash, or a placeholder while it is not prepared (`manifest` is None)."""
        return manifest.dataset_hash if manifest else f"not prepared: {self.name}"

    def size(self, manifest: Manifest | None) -> DataSize:
        """The dataset's size. That of a generated dataset is known before it is prepared."""
        if manifest:
            return DataSize.of(manifest)
        given = self.given or {}
        values = {**parameters_of(self.generator), **given}
        n, d = int(values["n_rows"]), int(values["n_features"])
        return DataSize(n, d, expected_values(self.generator, given))


@dataclass(frozen=True)
class Sweep:
    """A sweep file after expansion of its grids and draws.

    Each configuration is a learner, its parameters and a learner seed (see `configuration_of`).
    If the search learns from results, only its first configurations are among them; `spaces` are
    then what it searches.
    """

    path: Path
    name: str
    datasets: tuple[DatasetUse, ...]
    configurations: tuple[Configuration, ...]
    figures: tuple[str, ...]
    text: str = field(repr=False)
    halving: Halving | None = None
    measured: Measured = NOTHING_MORE
    search: Search | None = None
    spaces: tuple[Space, ...] = ()


def read_sweep(path: str | Path) -> Sweep:
    """Read, check and expand a sweep file.

    Raises `WrongInput` that names the file, the line or key, and the remedy.
    """
    return _expanded(TomlFile(Path(path), "sweep", EXAMPLES, TABLES))


def sweep_of(content: Mapping[str, Any]) -> Sweep:
    """Check and expand the content of a sweep file that is given as a dictionary.

    Lists may also be tuples, ranges or NumPy arrays. Raises `WrongInput` that names the key.
    """
    try:
        text = tomli_w.dumps(_plain(content))
    except (TypeError, ValueError) as error:
        raise WrongInput(f"{DICTIONARY}: {error}; use only numbers, texts and lists") from None
    return _expanded(TomlFile(DICTIONARY, "sweep", EXAMPLES, TABLES, text))


def _plain(value: Any) -> Any:
    """A value in the types that TOML has."""
    if isinstance(value, Mapping):
        return {str(key): _plain(inner) for key, inner in value.items() if inner is not None}
    if isinstance(value, list | tuple | range):
        return list(map(_plain, value))
    return value.tolist() if isinstance(value, np.ndarray | np.generic) else value


def _expanded(file: TomlFile) -> Sweep:
    """Check and expand a sweep file that was read."""
    path, spec = file.path, file.as_model(SweepFile)
    dataset_grids = [_dataset_grids(file, *numbered) for numbered in enumerate(spec.dataset)]
    uses = [learner_use(file, *numbered) for numbered in enumerate(spec.learner)]
    check_search(file, spec.search, spec.halving is not None, uses)
    _refuse_many_runs(path, spec, dataset_grids, uses)
    datasets = [
        use
        for number, grids in enumerate(dataset_grids)
        for use in _datasets(file, number, spec.dataset[number], grids)
    ]
    seeds = _seeds(spec.learner_seeds)
    known = [one for use in uses for one in configurations(file, spec.search, use, seeds)]
    searched = [use for use in uses if use.draws and spec.search and spec.search.learns]
    for name, count in Counter(use.name for use in datasets).items():
        if count > 1:
            raise WrongInput(f"{path}: dataset {name!r} is listed twice; merge the two tables")
    figures = spec.report.figure
    return Sweep(
        path,
        spec.name,
        tuple(datasets),
        tuple(known),
        tuple([figures] if isinstance(figures, str) else figures),
        file.text,
        spec.halving,
        _measured(file, spec),
        spec.search,
        tuple(space for use in searched for space in use.spaces(seeds)),
    )


def _refuse_many_runs(
    path: Path, spec: SweepFile, dataset_grids: list[Grids], uses: list[LearnerUse]
) -> None:
    """Raise `WrongInput` for more than `MOST_RUNS` runs, before the list of runs takes memory."""
    streams = sum(
        math.prod(map(len, grids.values()))
        * len(use.positive_classes)
        * len(_seeds(use.order_seeds))
        for use, grids in zip(spec.dataset, dataset_grids, strict=True)
    )
    of_a_stream = sum(use.count(spec.search) for use in uses) * len(_seeds(spec.learner_seeds))
    count = streams * of_a_stream
    if count > MOST_RUNS:
        raise WrongInput(
            f"{path}: {count:,} runs, but a sweep has at most {MOST_RUNS:,}; give fewer values,"
            " samples or seeds, or split the sweep"
        )


def _measured(file: TomlFile, spec: SweepFile) -> Measured:
    """What the sweep measures beside loss and error."""
    for name in spec.metrics:
        with file.blaming("metrics"):
            check_name(name)
    if spec.window is not None and spec.window > SEGMENT and spec.metrics:
        raise WrongInput(f"{file.at('window')}: a window has at most {SEGMENT:,} rounds")
    return Measured(tuple(sorted(set(spec.metrics))), spec.window, spec.keep_predictions)


def _dataset_grids(file: TomlFile, number: int, table: DatasetTable) -> Grids:
    """The values of each generator parameter in a [[dataset]] table; empty without a generator."""
    known = [*DatasetTable.model_fields]
    if table.name in GENERATORS:
        known += parameters_of(table.name)
    grids = {}
    for key, value in (table.model_extra or {}).items():
        with file.blaming("dataset", number, key):
            if key not in known:
                raise WrongInput(f"unknown key{nearest(key, known)}")
            if is_drawn(value):
                raise WrongInput("only parameters of learners are drawn; give a value or a list")
            grids[key] = values_of(value)
    return grids


def _datasets(
    file: TomlFile, number: int, table: DatasetTable, grids: Grids
) -> Iterator[DatasetUse]:
    """Yield the datasets of a [[dataset]] table: one per combination of generator parameters."""
    shuffled, in_windows = table.order != AS_STORED, table.order == IN_WINDOWS
    if not shuffled and "order_seeds" in table.model_fields_set:
        raise WrongInput(
            f"{file.at('dataset', number, 'order_seeds')}: only a shuffled order has seeds; add"
            ' order = "shuffled"'
        )
    if not in_windows and "window_rows" in table.model_fields_set:
        raise WrongInput(
            f"{file.at('dataset', number, 'window_rows')}: only one order has windows; add order ="
            f' "{IN_WINDOWS}", or leave the key out'
        )
    seeds = _seeds(table.order_seeds) if shuffled else [None]
    positive = tuple(None if c is None else float(c) for c in table.positive_classes)
    for given in combinations(grids):
        with file.blaming("dataset", number, "name"):
            generated = table.name in GENERATORS
            name = synthetic_name(table.name, given) if generated else table.name
        yield DatasetUse(
            name,
            given if generated else None,
            table.name,
            tuple((table.order, seed) for seed in seeds),
            positive,
            table.max_rows,
            table.window_rows if in_windows else None,
            table.multiclass,
        )


def _seeds(seeds: int | list[int]) -> Sequence[int]:
    """The seeds of a sweep file: a list, or the first so many from 0."""
    return range(seeds) if isinstance(seeds, int) else seeds
