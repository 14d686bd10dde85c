"""The views of results, beside plain loops over made-up runs: with ties, with losses that are no
numbers, failed, diverged and missing runs, one class against the rest and all classes.
"""

import json
import math
import random
import tempfile
from collections import defaultdict
from fractions import Fraction
from pathlib import Path

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

import flows
from flows.comparing.blocks import WITHOUT_PREDICTIONS
from flows.comparing.comparison import compare
from flows.tables.decisions import DECISIONS, write_decisions
from flows.views import views as views_module
from flows.views.views import Views
from koco_stream.errors import WrongInput
from koco_stream.metrics import METRICS
from koco_stream.runs.schemas import RUNS, schema
from storage.results import table_files
from tests.helpers.in_process import command
from tests.helpers.many_runs import put

CLASSES = {"two": ("two", {}), "one": ("one:3", {"positive_class": 3.0})}
CLASSES |= {"all": ("all:all", {"multiclass": "one-vs-rest"})}
STREAMS = CLASSES | {"real": ("real", {})}
LEARNERS = {"OGD": [None], "OjaSON": [None, 0, 1], "Constant": [None], "KORS": [None]}
CONSTANT = {"constant_mean_loss": 0.5, "constant_error_rate": 0.5}
EIGHTHS = st.integers(0, 8).map(lambda n: n / 8)  # so that many are equal, and sums exact
ENDS = st.one_of(
    st.tuples(st.just("ok"), EIGHTHS, EIGHTHS),
    st.tuples(st.just("ok"), st.sampled_from([math.nan, math.inf]), EIGHTHS),
    st.tuples(st.sampled_from(["failed", "diverged"]), EIGHTHS, EIGHTHS),
)
KEYS = st.tuples(
    st.sampled_from(sorted(STREAMS)),
    st.sampled_from(sorted(LEARNERS)),
    st.integers(0, 2),  # configuration
    st.integers(0, 1),  # order seed
    st.integers(0, 2),  # which of the learner's seeds
)


def row(dataset, learner, which, order_seed, learner_seed, status, loss, error, **more):
    """A row of results."""
    known = learner not in WITHOUT_PREDICTIONS
    return {
        "dataset": dataset,
        "dataset_hash": f"hash of {dataset}",
        "order": "shuffled",
        "order_seed": order_seed,
        "learner": learner,
        "learner_seed": learner_seed,
        "params": json.dumps({"which": which}),
        "numbers": "own",
        "status": status,
        "rounds": 8,
        "seconds": 1.0,
        "loss": "squared",
        "mean_loss": loss if known else None,
        "error_rate": error if known and dataset in CLASSES else None,
        **(CONSTANT if dataset in CLASSES else {"constant_mean_loss": 0.5}),
        **STREAMS.get(dataset, ("", {}))[1],
        **more,
    }


@st.composite
def stores(draw):
    """Rows of results of a sweep: what is missing is not finished."""
    found = draw(st.dictionaries(KEYS, ENDS, max_size=60))
    rows = {}
    for (dataset, learner, which, order, nth), ends in found.items():
        seeds = LEARNERS[learner]
        # the first configuration draws nothing
        seed = None if which == 0 else seeds[1 + nth % (len(seeds) - 1)] if seeds[1:] else None
        rows[dataset, learner, which, order, seed] = row(
            dataset, learner, which, order, seed, *ends
        )
    return list(rows.values())


def literal(rows):
    """The best parameters, merit and verdict by stream and learner."""
    learners = defaultdict(lambda: defaultdict(list))
    for one in rows:
        learners[f"{STREAMS[one['dataset']][0]}, shuffled", one["learner"]][one["params"]].append(
            one
        )
    found = {}
    for key, configurations in learners.items():
        sizes = {
            params: (len(runs), len({one["learner_seed"] for one in runs} - {None}))
            for params, runs in configurations.items()
        }
        most = max(size for size, _ in sizes.values())
        several = max(1, *(seeds for _, seeds in sizes.values()))
        candidates = []
        for params, runs in configurations.items():
            losses, errors = ([one[name] for one in runs] for name in ("mean_loss", "error_rate"))
            values = losses if None in errors else errors
            size, seeds = sizes[params]
            if (
                all(one["status"] == "ok" for one in runs)
                and all(value is not None and math.isfinite(value) for value in (*losses, *values))
                and size * (several if seeds == 0 else 1) >= most
            ):
                merit, loss = (sum(map(Fraction, some)) / size for some in (values, losses))
                beats = loss < 0.5 and merit < 0.5
                candidates.append((merit, params, None if key[1] == "Constant" else beats))
        if candidates:
            merit, params, beats = min(candidates)
            found[key] = params, float(merit), beats
    return found


def shown(store):
    """The best of the sweep `s` by each way to read it."""
    views = Views(store, ["s"])
    columns = "stream, learner, params, merit, beats_constant"
    yield {
        (one["stream"], one["learner"]): one for one in views.rows(f"SELECT {columns} FROM best")
    }
    said = command("results", "--store", store, "--sweep", "s", "--best", "--json")
    for rows in (json.loads(said.stdout), flows.results(store, "s").best().to_pylist()):
        yield {(f"{one['dataset']}, {one['order']}", one["learner"]): one for one in rows}


@settings(max_examples=8, phases=[Phase.generate])  # a failure is shrunk for minutes
@given(stores(), st.randoms())
def test_best__is_the_same_wherever_it_is_read_and_that_of_plain_loops(rows, chance):
    expected = literal(rows)
    chance.shuffle(rows)
    with tempfile.TemporaryDirectory() as folder:
        store = Path(folder) / "store"
        put(store, "s", None, rows)
        for found in shown(store):
            assert found.keys() == expected.keys()
            for key, (params, merit, beats) in expected.items():
                one = found[key]
                said = one["merit"] if "merit" in one else one["error_rate_mean"]
                said = one["mean_loss_mean"] if said is None else said
                assert (one["params"], said) == (params, pytest.approx(merit, rel=1e-11))
                assert one["beats_constant"] == beats
        try:
            compared = compare(store, ["s"])
        except WrongInput:
            return  # no two learners on one stream
        for one in compared.blocks.to_pylist():
            key = one["block"], one["learner"]
            assert (key in expected) == (one["score"] is not None)
            if key in expected:
                assert one["params"] == expected[key][0]
                if not any(words.startswith(one["block"]) for words in compared.left_out):
                    assert one["score"] == pytest.approx(expected[key][1], rel=1e-11)


def test_answers__depend_on_no_order_of_rows_and_on_no_threads(tmp_path, monkeypatch):
    chance, rows = random.Random(0), []
    for dataset in ("two", "real"):
        for learner in ("OGD", "AdaGrad", "ONS"):
            for which in range(4):
                values = [chance.random() for _ in range(6)]
                if which < 2:
                    values = [0.1, 0.7, 0.3, 0.2, 0.11, 0.9]  # the same in another order
                    chance.shuffle(values)
                for order, value in enumerate(values):
                    rows.append(row(dataset, learner, which, order, None, "ok", value, value))
    rows = [{**one, "run_id": f"{k:032x}"} for k, one in enumerate(rows)]
    said = set()
    for number in range(10):
        store = tmp_path / f"store-{number}"
        chance.shuffle(rows)
        put(store, "s", None, rows)
        monkeypatch.setitem(views_module.SETTINGS, "threads", 1 + 3 * (number % 2))
        words = [("results", "--sweep", "s", *more) for more in ((), ("--best",))]
        words += [("compare", "s")]
        said.add("".join(command(*one, "--store", store, "--json").stdout for one in words))
    assert len(said) == 1


def views_of(folder, rows, sweep="s"):
    put(folder, sweep, None, rows)
    return Views(folder, [sweep])


def test_conditions__are_sql_and_select_what_the_other_views_have(tmp_path):
    rows = [
        row(
            "two", learner, 1, order, None, "ok", order / 4, order / 4, alpha=float(order), window=9
        )
        for learner in ("OGD", "ONS")
        for order in range(4)
    ]
    put(tmp_path, "s", None, rows)
    for condition, left in (
        ("learner = 'OGD' AND alpha BETWEEN 1 AND 2", {(n, "OGD") for n in (1, 2)}),
        ("order = 'shuffled' and window=9 and alpha>2", {(3, "OGD"), (3, "ONS")}),
        (
            "learner_seed IS NULL AND params->>'which' = '1'",
            {(n, o) for n in range(4) for o in ("OGD", "ONS")},
        ),
        ("alpha = (SELECT min(alpha) FROM runs) -- ends here", {(0, "OGD"), (0, "ONS")}),
        (
            "run_id IN (SELECT unnest(run_ids) FROM best WHERE learner = 'ONS')",
            {(n, "ONS") for n in range(4)},
        ),
    ):
        views = Views(tmp_path, ["s"], [condition])
        found = views.rows("SELECT order_seed, learner FROM selected")
        assert {tuple(one.values()) for one in found} == left
        assert sum(one["repeats"] for one in views.rows("FROM configurations")) == len(left)
        curves = views.rows("FROM curves")
        assert {(one["order_seed"], one["learner"]) for one in curves} == left
    for condition, said in (
        ("lerner = 'OGD'", "no column 'lerner'; did you mean 'learner'"),
        ("status=ok", "no column 'ok'; a text stands in single quotes"),
        ("alpha <", "syntax error"),
        ("alpha = 'large'", "'large'"),
        ("alpha = 7", "no run matches; alpha is 0.0, 1.0, 2.0, 3.0"),
        ("learner = 'ogd'", "no run matches; learner is OGD, ONS"),
    ):
        with pytest.raises(WrongInput, match=said) as refused:
            Views(tmp_path, ["s"], ["alpha >= 0", condition])
        assert repr(condition) in str(refused.value)


def test_nothing__is_read_or_changed_but_through_our_readers(tmp_path):
    views = views_of(tmp_path, [row("two", "OGD", 0, 0, None, "ok", 0.5, 0.5)])
    [file] = table_files(tmp_path, "runs")
    for query in (
        f"FROM read_parquet('{file}')",
        f"FROM '{file}'",
        f"COPY runs TO '{tmp_path}/x.csv'",
        f"ATTACH '{tmp_path}/x.db'",
        "INSTALL httpfs",
        "SET enable_external_access = true",
    ):
        with pytest.raises(WrongInput):
            views.table(query)
    content = bytearray(Path(str(file)).read_bytes())
    content[20] ^= 1
    Path(str(file)).write_bytes(content)
    with pytest.raises(WrongInput, match=str(file)):
        Views(tmp_path, ["s"])


def test_columns__have_what_everyone_plots_and_each_metric_has_a_mean(tmp_path):
    views = views_of(tmp_path, [row("two", "OGD", 0, 0, None, "ok", 0.5, 0.25, auc=0.75)])
    [best] = views.rows("FROM best")
    assert best["auc_mean"] == 0.75
    assert {f"{name}_mean" for name in METRICS} <= best.keys()
    assert flows.results(tmp_path, "s").runs.schema.equals(schema(RUNS), check_metadata=True)
    [curve] = views.rows("FROM curves")
    assert (curve["t"], curve["mean_loss"], curve["learner"], curve["stream"]) == (
        *(8, 0.0, "OGD", "two, shuffled"),
    )
    assert views.rows("FROM members") == [{"sweep": "s", "run_id": f"{0:032x}"}]


def test_runs__that_are_no_candidates(tmp_path):
    """Rungs of a halving, runs of older code, and a second run with other metrics."""
    rows = [
        row("two", "OGD", which, 0, None, "ok", loss, loss, max_rows=rows, rounds=rows)
        for which, rows, loss in ((0, 4, 0.0), (1, 4, 0.1), (1, None, 0.4))
    ]
    for one in (*rows,):
        rows.append({**one, "numbers_version": 2})
        one |= {"numbers_version": 1, "mean_loss": 0.0, "error_rate": 0.0}
    rows.append({**rows[-1], "auc": 0.5})
    put(tmp_path, "s", None, rows)
    lengths = [one["max_rows"] for one in Views(tmp_path, ["s"]).rows("FROM best")]
    assert lengths == [None, 4]
    decisions = [{**dict.fromkeys(DECISIONS.names), "goes_on": True}]
    write_decisions(tmp_path, "s", decisions)
    views = Views(tmp_path, ["s"])
    [best] = views.rows("FROM best")
    assert (best["params"], best["merit"], best["repeats"]) == (rows[1]["params"], 0.4, 1)
    # another sweep asks for the short ones
    ids = [f"{k:032x}" for k in range(len(rows))]
    note = {"name": "t", "file": "", "datasets": {}, "figures": [], "run_ids": ids}
    (tmp_path / "sweeps" / "t.json").write_text(json.dumps(note))
    assert len(Views(tmp_path, ["s", "t"]).rows("FROM best")) == 2


def test_data_seeds__are_repeats_of_one_stream(tmp_path):
    names = [f"sea,n_rows=9,data_seed={k},x=1" for k in (1, 2)]
    rows = [row(name, "OGD", 1, 0, None, "ok", k / 4, None) for k, name in enumerate(names)]
    rows.append(row("sea,n_rows=8,data_seed=1", "OGD", 1, 0, None, "ok", 0.5, None))
    found = views_of(tmp_path, rows).rows("FROM best")
    assert [(one["dataset"], one["n_runs"], one["merit"]) for one in found] == [
        ("sea,n_rows=8,data_seed=1", 1, 0.5),
        ("sea,n_rows=9,x=1, 2 data seeds", 2, 0.125),
    ]
