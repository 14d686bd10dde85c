"""The sweep file: TOML, checked key by key, expanded into datasets and runs."""

import itertools
import math
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, NonNegativeInt, PositiveInt, ValidationError

from flows.sweep.halving import Halving
from flows.sweep.keys import explained, spot
from koco_stream.errors import WrongInput, nearest
from koco_stream.learners import learner_named
from koco_stream.runs.cost_model import DataSize
from koco_stream.runs.run import Run, configuration_of, without_repeats
from koco_stream.streams.manifest import Manifest
from koco_stream.streams.orders import AS_STORED, IN_WINDOWS, WINDOW_ROWS
from koco_stream.streams.stream import Stream, sharding_of
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
LARGEST = 2**63 - 1
MOST_RUNS = 10_000_000
Label = Annotated[float, Field(allow_inf_nan=False)] | int
Seeds = PositiveInt | Annotated[list[NonNegativeInt], Field(min_length=1)]


class DatasetTable(BaseModel):
    """A [[dataset]] table: a prepared dataset, or a generator with its parameters."""

    model_config = ConfigDict(extra="allow", strict=True)
    name: str
    positive_class: Label | Annotated[list[Label], Field(min_length=1)] | None = None
    order: Literal["as-stored", "shuffled", "shuffled-in-windows"] = "as-stored"
    order_seeds: Seeds = 1
    window_rows: PositiveInt = WINDOW_ROWS
    max_rows: PositiveInt | None = None


class LearnerTable(BaseModel):
    """A [[learner]] table: a learner's name; every other key is one of its parameters, with a value
    or a grid of values.
    """

    model_config = ConfigDict(extra="allow", strict=True)
    name: str


class ReportTable(BaseModel):
    """The [report] table: which published figures the report draws, one or a list."""

    model_config = ConfigDict(extra="forbid", strict=True)
    figure: FigureName | list[FigureName] = Field(default_factory=list)


class HalvingTable(BaseModel):
    """halving = { factor = 3, first = 1000 }: see `flows.sweep.halving`."""

    model_config = ConfigDict(extra="forbid", strict=True)
    factor: int = Field(default=3, ge=2)
    first: PositiveInt


class SweepFile(BaseModel):
    """A sweep file as written."""

    model_config = ConfigDict(extra="forbid", strict=True)
    name: str = Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*$")
    learner_seeds: Seeds = 1
    dataset: list[DatasetTable] = Field(min_length=1)
    learner: list[LearnerTable] = Field(min_length=1)
    report: ReportTable = ReportTable()
    halving: HalvingTable | None = None


TABLES: dict[str, type[BaseModel]] = {
    "dataset": DatasetTable,
    "learner": LearnerTable,
    "report": ReportTable,
    "halving": HalvingTable,
}
EXAMPLES = "see the sweeps in flows/sweeps/ for examples"


@dataclass(frozen=True)
class DatasetUse:
    """One dataset that a sweep needs, and the orders and positive classes in which it is read.
    `given` are a generator's parameters, None for a prepared dataset.
    """

    name: str
    given: dict[str, Any] | None
    generator: str
    orders: tuple[tuple[str, int | None], ...]
    positive_classes: tuple[float | None, ...]
    max_rows: int | None
    window_rows: int | None

    @property
    def order_text(self) -> str:
        """The order in words: `shuffled-in-windows, window_rows = 65536, 3 order seeds`."""
        windows = f", window_rows = {self.window_rows}" if self.window_rows else ""
        seeds = (
            ""
            if self.orders[0][1] is None
            else f", {len(self.orders)} order seed{'s' * (len(self.orders) > 1)}"
        )
        return f"{self.orders[0][0]}{windows}{seeds}"

    def identity(self, manifest: Manifest | None) -> str:
        """The dataset's hash, or what stands for it in the runs until it is prepared."""
        return manifest.dataset_hash if manifest else f"not prepared: {self.name}"

    def unprepared_size(self) -> DataSize:
        """The size of a generated dataset, known before it is made."""
        values = {**parameters_of(self.generator), **(self.given or {})}
        n, d = int(values["n_rows"]), int(values["n_features"])
        return DataSize(n, d, expected_values(self.generator, self.given or {}))


@dataclass(frozen=True)
class Sweep:
    """A sweep, expanded: its datasets and its configurations (learner, parameters, learner_seed:
    see `configuration_of`).
    """

    path: Path
    name: str
    datasets: tuple[DatasetUse, ...]
    configurations: tuple[tuple[str, dict[str, Any], int | None], ...]
    figures: tuple[str, ...]
    text: str = field(repr=False)
    halving: Halving | None = None
    expanded: dict[tuple[str, ...], list[Run]] = field(
        default_factory=dict, repr=False, compare=False
    )  # by the datasets it was for

    def runs(self, manifests: dict[str, Manifest | None]) -> list[Run]:
        """All runs, each once. Datasets not prepared yet (None) get a placeholder for a hash:
        enough to count, not to run.

        Raises `WrongInput` if a dataset's labels do not fit.
        """
        key = tuple(
            f"{m.dataset_hash} {sharding_of(m)}" if m else ""
            for m in (manifests[use.name] for use in self.datasets)
        )
        if key not in self.expanded:
            self.expanded[key] = self._expand(manifests)
        return self.expanded[key]

    def _expand(self, manifests: dict[str, Manifest | None]) -> list[Run]:
        runs = []
        for use in self.datasets:
            manifest = manifests[use.name]
            for (order, seed), positive in itertools.product(use.orders, use.positive_classes):
                sharding = sharding_of(manifest) if manifest and use.window_rows else None
                whole = Stream(
                    use.name,
                    use.identity(manifest),
                    order,
                    seed,
                    positive,
                    use.max_rows,
                    use.window_rows,
                    sharding,
                )
                n_rows = manifest.n_rows if manifest else use.unprepared_size().n_rows
                classes, task = (
                    (manifest.classes, manifest.task)
                    if manifest
                    else ([-1.0, 1.0], "classification")
                )
                stream = whole.reduced(n_rows, classes)
                mine = [Run(stream, *configuration) for configuration in self.configurations]
                for run in {run.params["loss"]: run for run in mine}.values():
                    try:
                        replace(run, stream=whole).check_labels(classes, task)
                    except WrongInput as error:
                        raise WrongInput(f"{self.path}: {error}") from None
                runs += mine
        return without_repeats(runs)


def read_sweep(path: str | Path) -> Sweep:
    """Read and check a sweep file. Raises `WrongInput` naming the file, the line or key, and the
    remedy.
    """
    path = Path(path)
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise WrongInput(f"{path}: no such sweep file; flows/sweeps/ has examples") from None
    except UnicodeDecodeError as error:
        raise WrongInput(
            f"{path}: {error.reason} at byte {error.start}; a sweep file is TOML, which is text in"
            " UTF-8"
        ) from None
    except OSError as error:
        raise WrongInput(
            f"{path}: {error.strerror or error}; give a sweep file, see flows/sweeps/"
        ) from None
    return _sweep_of(path, text)


def _sweep_of(path: Path, text: str) -> Sweep:
    try:
        content = tomllib.loads(text)
    except ValueError as error:
        raise WrongInput(f"{path}: {error}; the file is TOML") from None
    _refuse_large_numbers(path, text, content)
    try:
        spec = SweepFile.model_validate(content)
    except ValidationError as error:
        raise WrongInput(explained(path, text, error, SweepFile, TABLES, EXAMPLES)) from None
    _refuse_many_runs(path, spec)
    datasets = [
        use
        for number, table in enumerate(spec.dataset)
        for use in _datasets(path, text, number, table)
    ]
    seeds = _seeds(spec.learner_seeds)
    configurations = [
        configuration
        for number, table in enumerate(spec.learner)
        for configuration in _configurations(path, text, number, table, seeds)
    ]
    names = [use.name for use in datasets]
    for name in names:
        if names.count(name) > 1:
            raise WrongInput(f"{path}: dataset {name!r} is listed twice; merge the two tables")
    figures = spec.report.figure
    halving = Halving(spec.halving.factor, spec.halving.first) if spec.halving else None
    return Sweep(
        path,
        spec.name,
        tuple(datasets),
        tuple(configurations),
        tuple([figures] if isinstance(figures, str) else figures),
        text,
        halving,
    )


def _refuse_large_numbers(path: Path, text: str, content: dict[str, Any]) -> None:
    """Refuse a whole number of more than 64 bits, wherever it stands: TOML does not have them."""

    def has_large(value: Any) -> bool:
        if isinstance(value, dict | list):
            return any(map(has_large, value.values() if isinstance(value, dict) else value))
        return isinstance(value, int) and not -LARGEST - 1 <= value <= LARGEST

    for key, value in content.items():
        tables = (
            value
            if isinstance(value, list) and value and all(isinstance(v, dict) for v in value)
            else []
        )
        for number, table in enumerate(tables):
            for inner, inside in table.items():
                if has_large(inside):
                    raise WrongInput(
                        f"{spot(path, text, key, number, inner)}: a whole number in TOML is at"
                        f" most {LARGEST}"
                    )
        if has_large(value):
            raise WrongInput(f"{path}, {key}: a whole number in TOML is at most {LARGEST}")


def _refuse_many_runs(path: Path, spec: SweepFile) -> None:
    """Refuse more than `MOST_RUNS` runs before any of them is made."""

    def product(grids: dict[str, Any] | None) -> int:
        return math.prod(
            len(v) if isinstance(v, list) else _span(v) if isinstance(v, dict) else 1
            for v in (grids or {}).values()
        )

    streams = sum(
        product(use.model_extra)
        * (len(use.positive_class) if isinstance(use.positive_class, list) else 1)
        * len(_seeds(use.order_seeds))
        for use in spec.dataset
    )
    count = (
        streams
        * sum(product(learner.model_extra) for learner in spec.learner)
        * len(_seeds(spec.learner_seeds))
    )
    if count > MOST_RUNS:
        raise WrongInput(
            f"{path}: {count:,} runs, and a sweep has at most {MOST_RUNS:,}; give fewer values or"
            " seeds, or make several sweeps"
        )


def _span(grid: dict[str, Any]) -> int:
    """How many values a grid of powers has; 1 if it is not one, which is refused later."""
    ends = next(iter(grid.values()), None)
    right = isinstance(ends, list) and len(ends) == 2 and all(type(e) is int for e in ends)
    return max(1, ends[1] - ends[0] + 1) if right and isinstance(ends, list) else 1


def values_of(value: Any, where: str) -> list[Any]:
    """The values of a grid: a single value, a list, `{ powers_of_two = [a, b] }` or `{
    powers_of_ten = [a, b] }`.
    """
    if isinstance(value, dict):
        bases = {"powers_of_two": 2.0, "powers_of_ten": 10.0}
        if len(value) != 1 or next(iter(value)) not in bases:
            raise WrongInput(
                f"{where}: a grid is a list, or {{ powers_of_two = [first, last] }}, or {{"
                " powers_of_ten = [first, last] }"
            )
        name, ends = next(iter(value.items()))
        if not (
            isinstance(ends, list)
            and len(ends) == 2
            and all(type(e) is int and abs(e) <= 300 for e in ends)
            and ends[0] <= ends[1]
        ):
            raise WrongInput(
                f"{where}: {name} takes the first and the last exponent, [first, last], whole"
                f" numbers in order, not {ends!r}"
            )
        return [bases[name] ** k for k in range(ends[0], ends[1] + 1)]
    if isinstance(value, list):
        if not value:
            raise WrongInput(
                f"{where}: the grid is empty, so there is nothing to run; give at least one value,"
                " or leave the key out"
            )
        return value
    return [value]


def _configurations(
    path: Path, text: str, number: int, table: LearnerTable, seeds: Sequence[int]
) -> list[tuple[str, dict[str, Any], int | None]]:
    """The product of a learner's grids and the seeds, every parameter checked."""
    try:
        learner = learner_named(table.name)
    except WrongInput as error:
        raise WrongInput(f"{spot(path, text, 'learner', number, 'name')}: {error}") from None
    grids = {}
    for key, value in (table.model_extra or {}).items():
        where = spot(path, text, "learner", number, key)
        try:
            parameter = learner.parameter(key)
            grids[key] = [parameter.check(v) for v in values_of(value, where)]
        except WrongInput as error:
            raise WrongInput(
                str(error) if str(error).startswith(where) else f"{where}: {error}"
            ) from None
    found: list[tuple[str, dict[str, Any], int | None]] = []
    for values in itertools.product(*grids.values()):
        try:
            name, kept, seed = configuration_of(
                table.name, dict(zip(grids, values, strict=True)), seeds[0]
            )
        except WrongInput as error:
            raise WrongInput(f"{spot(path, text, 'learner', number, 'name')}: {error}") from None
        found += [(name, kept, seed)] if seed is None else [(name, kept, one) for one in seeds]
    return found


def _datasets(path: Path, text: str, number: int, table: DatasetTable) -> list[DatasetUse]:
    """The datasets of one table: one, or one for each combination of a generator's parameters."""
    shuffled, window_rows = (
        table.order != AS_STORED,
        table.window_rows if table.order == IN_WINDOWS else None,
    )
    if not shuffled and "order_seeds" in table.model_fields_set:
        raise WrongInput(
            f"{spot(path, text, 'dataset', number, 'order_seeds')}: only a shuffled order has"
            ' seeds; add order = "shuffled"'
        )
    if window_rows is None and "window_rows" in table.model_fields_set:
        where = spot(path, text, "dataset", number, "window_rows")
        raise WrongInput(
            f'{where}: only one order has windows; add order = "{IN_WINDOWS}", or leave the key out'
        )
    orders = (
        tuple((table.order, seed) for seed in _seeds(table.order_seeds))
        if shuffled
        else ((AS_STORED, None),)
    )
    classes = (
        table.positive_class if isinstance(table.positive_class, list) else [table.positive_class]
    )
    positive = tuple(None if c is None else float(c) for c in classes)
    extra = table.model_extra or {}
    if table.name not in GENERATORS:
        if extra:
            key = next(iter(extra))
            known = [*DatasetTable.model_fields]
            raise WrongInput(
                f"{spot(path, text, 'dataset', number, key)}: unknown key{nearest(key, known)}"
            )
        return [
            DatasetUse(table.name, None, table.name, orders, positive, table.max_rows, window_rows)
        ]
    known = [*DatasetTable.model_fields, *parameters_of(table.name)]
    grids = {}
    for key, value in extra.items():
        where = spot(path, text, "dataset", number, key)
        if key not in known:
            raise WrongInput(f"{where}: unknown key{nearest(key, known)}")
        grids[key] = values_of(value, where)
    uses = []
    for values in itertools.product(*grids.values()):
        given = dict(zip(grids, values, strict=True))
        try:
            name = synthetic_name(table.name, given)
        except WrongInput as error:
            raise WrongInput(f"{spot(path, text, 'dataset', number, 'name')}: {error}") from None
        uses.append(
            DatasetUse(name, given, table.name, orders, positive, table.max_rows, window_rows)
        )
    return uses


def _seeds(seeds: int | list[int]) -> Sequence[int]:
    return range(seeds) if isinstance(seeds, int) else seeds
