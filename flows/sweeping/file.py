"""The sweep file (TOML): checked key by key, and expanded into datasets and configurations."""

import itertools
import math
import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import tomli_w

from flows.sweeping.halving import Halving
from flows.sweeping.request import packaged
from flows.sweeping.search import Configuration, Drawn, Search, Space, drawn, is_drawn
from flows.sweeping.tables import PLACES, TABLES, DatasetTable, LearnerTable, SweepFile
from flows.sweeping.toml_file import Keys, TomlFile
from flows.sweeping.usual import usual_sweep
from koco_stream.errors import WrongInput, nearest, refuse_first, similar
from koco_stream.extras import remedy
from koco_stream.io.paths import AnyPath
from koco_stream.learners import Mixture, learner_called, learner_named
from koco_stream.learners.grids import KINDS, combinations, values_of
from koco_stream.learners.members import MEMBERS
from koco_stream.metrics import check_name
from koco_stream.runs.run import NOTHING_MORE, Measured
from koco_stream.streams.manifest import Manifest, load_manifest, prepared_names
from koco_stream.streams.stream import AS_STORED, IN_WINDOWS, Stream, sharding_of
from storage.generated.generators import (
    ABOUT,
    GENERATORS,
    all_values,
    expected_values,
    parameters_of,
    synthetic_name,
)
from storage.store import check_store

MOST_RUNS = 10_000_000
EXAMPLES = "`koco sweep DATASET --dry-run` prints an example, on a prepared dataset"
DICTIONARY = Path("the sweep given as a dictionary")  # stands for a path in messages


@dataclass(frozen=True)
class DatasetUse:
    name: str
    given: dict[str, Any] | None
    table: DatasetTable
    at: str

    def expected(self) -> Manifest:
        """What the manifest of a generated dataset will say; its hash is a placeholder."""
        generator = self.table.name
        given = self.given or {}
        values, (task, _) = all_values(generator, given), ABOUT[generator]
        classes = [-1.0, 1.0] if task == "classification" else []
        return Manifest(
            self.name,
            values["n_rows"],
            values["n_features"],
            expected_values(generator, given),
            "sparse",
            "float64",
            task,
            classes,
            f"not prepared: {self.name}",
            *([], {}, [], {}, [], ()),
        )

    def streams(self, manifest: Manifest) -> Iterator[Stream]:
        table = self.table
        seeds = [None] if table.order == AS_STORED else _seeds(table.order_seeds)
        windows = table.window_rows if table.order == IN_WINDOWS else None
        limits = (table.max_rows, windows, sharding_of(manifest) if windows else None)
        classes = [
            manifest.class_of(given) if isinstance(given, str) else given
            for given in table.positive_class
        ]
        for seed, positive in itertools.product(seeds, classes):
            where = (self.name, manifest.dataset_hash, table.order, seed)
            yield Stream(*where, positive, *limits, table.multiclass)


@dataclass(frozen=True)
class Sweep:
    """A sweep file after expansion of its grids and draws."""

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
    time_limit: float | None = None
    usual: bool = False


def read_sweep(path: str | Path, text: str | None = None) -> Sweep:
    """The sweep of a file, or of a `text` that was in one and is now kept in another."""
    return _expanded(TomlFile(Path(path), "sweep", EXAMPLES, TABLES, text))


def sweep_called(spec: str | Path, store: AnyPath) -> Sweep:
    """The sweep that a user calls `spec`: a file, a packaged sweep, or the usual one on a dataset,
    with a class of it after a colon.
    """
    path = Path(spec)
    name = str(spec)
    known = packaged()
    is_file = path.is_file() and (path.suffix or name not in prepared_names(store))
    found = path if is_file else known.get(name)
    if found:
        return read_sweep(found)
    check_store(store)
    there = prepared_names(store)
    dataset, _, positive = name.partition(":")
    if dataset in there:
        text = usual_sweep(load_manifest(store, dataset), positive)
        return replace(_expanded(TomlFile(path, "sweep", EXAMPLES, TABLES, text)), usual=True)
    names = [*map(str, path.parent.glob("*.toml")), *known, *there]
    close = "".join(f" Did you mean {one!r}?" for one in similar(name, names, 1))
    raise WrongInput(
        f"no sweep file, packaged sweep or dataset of {store} is called {name!r}.{close}"
        " `koco sweep --list` shows the packaged sweeps, `koco list datasets --store"
        f" {shlex.quote(str(store))}` the datasets; `koco prepare NAME --from FILE` makes one"
    )


def sweep_of(content: Mapping[str, Any]) -> Sweep:
    """The sweep of a dictionary, whose lists may be tuples, ranges or arrays."""
    try:
        text = tomli_w.dumps(_plain(content))
    except (TypeError, ValueError) as error:
        raise WrongInput(
            f"{DICTIONARY}: {error}; use only numbers, texts and lists, and a learner's name"
        ) from None
    return _expanded(TomlFile(DICTIONARY, "sweep", EXAMPLES, TABLES, text))


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {str(key): _plain(inner) for key, inner in value.items() if inner is not None}
    if isinstance(value, list | tuple | range):
        return list(map(_plain, value))
    return value.tolist() if isinstance(value, np.ndarray | np.generic) else value


def _expanded(file: TomlFile) -> Sweep:
    spec = file.as_model(SweepFile)
    datasets = [use for table in enumerate(spec.dataset) for use in _datasets(file, *table)]
    seeds = _seeds(spec.learner_seeds)
    spaces = [_space(file, *table, seeds) for table in enumerate(spec.learner)]
    _check_search(file, spec, spaces)
    _refuse_many_runs(file.path, spec, datasets, spaces)
    with file.blaming("metrics"):
        for name in spec.metrics:
            check_name(name)
    return Sweep(
        file.path,
        spec.name,
        tuple(datasets),
        tuple(one for of in enumerate(spaces) for one in _configurations(file, spec.search, *of)),
        tuple(spec.report.figure),
        file.text,
        spec.halving or spec.race,
        Measured(tuple(sorted(set(spec.metrics))), spec.window, spec.keep_predictions),
        spec.search,
        tuple(
            space for space in spaces if space.draws and spec.search and spec.search.method == "tpe"
        ),
        spec.time_limit,  # type: ignore[arg-type]  # in seconds, whatever was written
    )


def _refuse_many_runs(
    path: Path, spec: SweepFile, datasets: list[DatasetUse], spaces: list[Space]
) -> None:
    streams = sum(
        len(use.table.positive_class) * len(_seeds(use.table.order_seeds)) for use in datasets
    )
    of_a_stream = sum(
        math.prod(map(len, space.grids.values()))
        * (spec.search.samples if spec.search and space.draws else 1)
        for space in spaces
    )
    count = streams * of_a_stream * len(_seeds(spec.learner_seeds))
    if count > MOST_RUNS:
        raise WrongInput(
            f"{path}: {count:,} runs, but a sweep has at most {MOST_RUNS:,}; give fewer values,"
            " samples or seeds, or split the sweep"
        )


def _datasets(file: TomlFile, number: int, table: DatasetTable) -> Iterator[DatasetUse]:
    refuse_first(
        [
            (
                table.order == AS_STORED and "order_seeds" in table.model_fields_set,
                f"{file.at('dataset', number, 'order_seeds')}: only a shuffled order has seeds; add"
                ' order = "shuffled"',
            ),
            (
                table.order != IN_WINDOWS and "window_rows" in table.model_fields_set,
                f"{file.at('dataset', number, 'window_rows')}: only one order has windows; add"
                f' order = "{IN_WINDOWS}", or leave the key out',
            ),
        ]
    )
    generated = table.name in GENERATORS
    known = [*DatasetTable.model_fields, *(parameters_of(table.name) if generated else ())]
    grids = {}
    for key, value in (table.model_extra or {}).items():
        with file.blaming("dataset", number, key):
            if key not in known:
                raise WrongInput(PLACES.get(key) or f"unknown key{nearest(key, known)}")
            grids[key] = values_of(value)
    for given in combinations(grids):
        with file.blaming("dataset", number, "name"):
            name = synthetic_name(table.name, given) if generated else table.name
        yield DatasetUse(name, given if generated else None, table, file.at("dataset", number))


def _space(file: TomlFile, number: int, table: LearnerTable, seeds: Sequence[int]) -> Space:
    return Space(
        table.name, *_learner(file, ("learner", number), table.name, table.model_extra or {}), seeds
    )


def _learner(
    file: TomlFile, at: Keys, name: str, given: Mapping[str, Any]
) -> tuple[str, dict[str, list[Any]], dict[str, Drawn]]:
    """The reference of a learner, its grids and what is drawn, from the table at `at`."""
    with file.blaming(*at, "name"):
        reference = learner_called(name, file.path.parent)
        learner = learner_named(reference)
    grids: dict[str, list[Any]] = {}
    draws = {}
    for key, value in given.items():
        if key == "member" and learner is Mixture:
            grids["members"] = [list(_members(file, at, value))]
            continue
        with file.blaming(*at, key):
            # learners of other libraries may have any other argument
            is_own = learner.numbers == "own" and key not in learner.defaults()
            if key in PLACES and (is_own or key == "time_limit"):
                raise WrongInput(PLACES[key])
            parameter = learner.parameter(key)
            if is_drawn(value) and "member" not in at:
                draws[key] = drawn(parameter, value)
            else:
                grids[key] = list(map(parameter.check, values_of(value)))
    return reference, grids, draws


def _members(file: TomlFile, learner: Keys, tables: Any) -> Iterator[dict[str, Any]]:
    """The members of a mixture, with the references of their learners."""
    for k, table in enumerate(tables if isinstance(tables, list) and tables else [None]):
        at = (*learner, "member", k)
        if not (isinstance(table, dict) and isinstance(table.get("name"), str)):
            raise WrongInput(
                f"{file.at(*at)}: a member is a table [[learner.member]] with a name, such as"
                ' name = "OjaSON"'
            )
        reference, grids, _ = _learner(
            file,
            at,
            table["name"],
            {key: value for key, value in table.items() if key not in ("name", "seed")},
        )
        yield from MEMBERS.check([{**table, **grids, "name": reference}])


def _check_search(file: TomlFile, spec: SweepFile, spaces: Sequence[Space]) -> None:
    searched = [(number, key) for number, space in enumerate(spaces) for key in space.draws]
    learns = spec.search is not None and spec.search.method == "tpe"
    refuse_first(
        [
            *(
                (
                    spec.search is None,
                    f"{file.at('learner', *where)}: how many values are drawn is not said; add a"
                    ' table [search] with method = "sobol" and samples = 64',
                )
                for where in searched
            ),
            (
                spec.search is not None and not searched,
                f"{file.at('search')}: no parameter is drawn; give one a range, such as"
                f" {{ log_uniform = [a, b] }} ({', '.join(KINDS)}), or leave the table out",
            ),
            (
                spec.halving is not None and spec.race is not None,
                f"{file.at('race')}: halving says too what goes on; leave one of them out",
            ),
            *(
                (
                    learns and given is not None,
                    f"{file.at('search', 'method')}: tpe learns from whole runs, and {name} ends"
                    f' most of them early; leave {name} out, or take method = "sobol"',
                )
                for name, given in (("halving", spec.halving), ("race", spec.race))
            ),
            (
                learns and find_spec("optuna") is None,
                f"{file.at('search', 'method')}: {remedy(ModuleNotFoundError(name='optuna'))}; or"
                ' take method = "sobol"',
            ),
        ]
    )


def _configurations(
    file: TomlFile, search: Search | None, number: int, space: Space
) -> Iterator[Configuration]:
    """Yield the configurations of a table that are known before anything runs."""
    known = space.points(search, search.known if search else 1)
    with file.blaming("learner", number, "name"):
        # a learner may refuse a choice that is not drawn yet
        list(space.examples() if space.draws else ())
        for given, point in itertools.product(combinations(space.grids), known):
            yield from space.configurations({**given, **point})


def _seeds(seeds: int | list[int]) -> Sequence[int]:
    return range(seeds) if isinstance(seeds, int) else seeds
