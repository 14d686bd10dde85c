"""The views of results and `koco results`, beside plain loops over made-up runs: with ties, with
losses that are no numbers, failed, diverged and missing runs, one class against the rest and all.
"""

import csv
import io
import json
import math
import random
import re
import tempfile
from fractions import Fraction
from itertools import product
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import Phase, given, settings, strategies as st

import flows
from flows.comparing.blocks import WITHOUT_PREDICTIONS
from flows.comparing.comparison import compare
from flows.report.document import write_report
from flows.tables.sweep_runs import DECISIONS, write_decisions
from flows.tables.text import grouped
from flows.views import views as views_module
from flows.views.views import Views
from koco_stream.metrics import METRICS
from koco_stream.runs.schemas import RUNS, schema
from storage.results import table_files
from tests.helpers.examples import FORMULAS
from tests.helpers.in_process import command
from tests.helpers.many_runs import put, run
from tests.helpers.pages import tables_of
from tests.helpers.refusal import refusal
from tests.helpers.sweeps import written

CLASSES = {
    "two": ("two", {}),
    "one": ("one:3", {"positive_class": 3.0}),
    "all": ("all:all", {"multiclass": "one-vs-rest"}),
}
STREAMS = CLASSES | {"real": ("real", {})}
LEARNERS = {"OGD": [None], "OjaSON": [None, 0, 1], "Constant": [None], "KORS": [None]}
CONSTANT = {"constant_mean_loss": 0.5, "constant_error_rate": 0.5}
EIGHTHS = st.integers(0, 8).map(lambda n: n / 8)  # so that many are equal, and sums exact
ENDS = st.one_of(
    st.tuples(st.just("ok"), EIGHTHS, EIGHTHS),
    st.tuples(st.just("ok"), st.sampled_from([math.nan, math.inf]), EIGHTHS),
    st.tuples(st.sampled_from(["failed", "diverged", "stopped"]), EIGHTHS, EIGHTHS),
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


SWEEPS = 2  # in a store


@st.composite
def stores(draw):
    """Rows of results by their run_ids, and sweeps of some of them: what is missing is not
    finished, and runs may be of several sweeps, which choose anew.
    """
    rows = {}
    for (*key, which, order, nth), ends in draw(
        st.dictionaries(KEYS, ENDS, min_size=12, max_size=60)
    ).items():
        seeds = LEARNERS[key[1]][1:]
        # the first configuration draws nothing
        drawn = (*key, which, order, seeds[nth % len(seeds)] if which and seeds else None)
        # with a curve that has nothing that a notebook would draw
        rows[drawn] = row(*drawn, *ends, curve=[{"t": 8, "cumulative_loss": None}])
    by_id = {f"{k:032x}": {**one, "run_id": f"{k:032x}"} for k, one in enumerate(rows.values())}
    some = st.lists(st.sampled_from([*by_id, "not there yet"]), unique=True)
    return by_id, [[*by_id], *draw(st.lists(some, min_size=SWEEPS - 1, max_size=SWEEPS - 1))]


def literal(rows):
    """The best parameters, merit and verdict by stream and learner."""
    found = {}
    streams = grouped(rows, lambda one: (f"{STREAMS[one['dataset']][0]}, shuffled", one["learner"]))
    for key, mine in streams.items():
        configurations, candidates = grouped(mine, lambda one: one["params"]), []
        seeds = {
            params: len({one["learner_seed"] for one in runs} - {None})
            for params, runs in configurations.items()
        }
        several, most = max(1, *seeds.values()), max(map(len, configurations.values()))
        for params, runs in configurations.items():
            losses, errors = ([one[name] for one in runs] for name in ("mean_loss", "error_rate"))
            values = losses if None in errors else errors
            if (
                all(one["status"] == "ok" for one in runs)
                and all(value is not None and math.isfinite(value) for value in (*losses, *values))
                and len(runs) * (several if seeds[params] == 0 else 1) >= most
            ):
                merit, loss = (sum(map(Fraction, some)) / len(runs) for some in (values, losses))
                beats = None if key[1] == "Constant" else loss < 0.5 and merit < 0.5
                candidates.append((merit, json.loads(params), beats))
        for merit, params, beats in sorted(candidates, key=lambda one: (one[0], str(one[1])))[:1]:
            found[key] = params, pytest.approx(float(merit), rel=1e-11), beats
    return found


def shown(store, sweep):
    """The best of a sweep by each way to read it: in SQL, by the command, from Python, and as the
    report and a notebook have it for people.
    """
    result = flows.results(store, sweep)
    said = command("results", "--store", store, "--sweep", sweep, "--best", "--json")
    views = result.views.rows("SELECT * REPLACE (merit AS error_rate_mean) FROM best")
    for rows in (views, json.loads(said.stdout), result.best().to_pylist()):
        yield {
            (one.get("stream", f"{one['dataset']}, {one['order']}"), one["learner"]): (
                json.loads(one["params"]),
                one["mean_loss_mean"] if one["error_rate_mean"] is None else one["error_rate_mean"],
                one["beats_constant"],
            )
            for one in rows
        }
    notebook = written(Path(store), result._repr_html_(), "notebook.html")
    for page in (write_report(store, sweep).path, notebook):
        yield {
            (one["dataset"], one["learner"]): (
                {"which": int(one["parameters"].removeprefix("which="))},
                float(one.get("error rate") or one["mean loss"]),
                {"yes": True, "no": False}.get(one.get("beats Constant")),
            )
            for rows in tables_of(page).values()
            for one in rows
            if "its loss" in one
        }


@settings(max_examples=3, phases=[Phase.generate])  # a failure is shrunk for minutes
@given(stores(), st.randoms())
def test_best__is_the_same_wherever_it_is_read_and_that_of_plain_loops(drawn, chance):
    runs, sweeps = drawn
    with tempfile.TemporaryDirectory() as store:
        for k, ids in enumerate(sweeps):
            put(store, f"s{k}", ids, chance.sample([*runs.values()], len(runs)))
        for k, ids in enumerate(sweeps):
            expected = literal([runs[one] for one in ids if one in runs])
            assert [*shown(store, f"s{k}")] == [expected] * 5
            compared = command("compare", f"s{k}", "--json", "--store", store)
            if compared.exit_code == 0:  # there are two learners on one stream
                check(json.loads(compared.stdout), expected)


def check(compared, expected):
    """What is compared are the best, and so are those that beat Constant counted."""
    for one in compared["blocks"]:
        params, merit, _ = expected.get((one["block"], one["learner"]), (None, None, None))
        assert (one["score"] is None) == (merit is None)
        assert merit is None or json.loads(one["params"]) == params
        left_out = any(words.startswith(one["block"]) for words in compared["notes"])
        assert merit is None or left_out or one["score"] == merit
    for one in compared["summary"]:
        verdicts = [
            expected.get((block, one["learner"]), (None, None, False))[2]
            for block in {one["block"] for one in compared["blocks"]}
            if any(expected.get((block, name), [None])[-1] is not None for name in LEARNERS)
        ]
        told = (
            f"{sum(verdicts)} of {len(verdicts)}"
            if verdicts and one["learner"] != "Constant"
            else None
        )
        assert one["beats_constant"] == told


def test_answers__depend_on_no_order_of_rows_and_on_no_threads(tmp_path, monkeypatch):
    chance, rows, said = random.Random(0), [], set()
    for dataset, learner, which in product(("two", "real"), ("OGD", "AdaGrad", "ONS"), range(4)):
        # of two configurations the same in another order
        values = (
            [0.1, 0.7, 0.3, 0.2, 0.11, 0.9] if which < 2 else [chance.random() for _ in range(6)]
        )
        for order, value in enumerate(chance.sample(values, 6)):
            one = row(dataset, learner, which, order, None, "ok", value, value)
            rows.append({**one, "run_id": f"{len(rows):032x}"})
    for number in range(4):
        put(tmp_path / f"{number}", "s", None, chance.sample(rows, len(rows)))
        monkeypatch.setitem(views_module.SETTINGS, "threads", 1 + 3 * (number % 2))
        words = ("--store", tmp_path / f"{number}", "--json")
        each = ("results", "--sweep", "s", *words), ("compare", "s", *words)
        said.add("".join(command(*one, status=0).stdout for one in each))
    assert len(said) == 1


def views_of(folder, rows, sweep="s"):
    put(folder, sweep, None, rows)
    return Views(folder, [sweep])


def test_conditions__are_sql_and_select_what_the_other_views_have(tmp_path):
    both = [*product(range(4), ("OGD", "ONS"))]
    views = views_of(
        tmp_path,
        [
            row(
                *("two", learner, 1, order, None, "ok", order / 4, order / 4),
                **{"alpha": float(order), "window": 9},
            )
            for order, learner in both
        ],
    )
    for condition, left in (
        ("learner_seed IS NULL AND params->>'which' = '1'", both),
        ("learner = 'OGD' AND alpha BETWEEN 1 AND 2", [(1, "OGD"), (2, "OGD")]),
        ("order = 'shuffled' and window=9 and alpha>2", [(3, "OGD"), (3, "ONS")]),
        ("alpha = (SELECT min(alpha) FROM runs) -- ends here", [(0, "OGD"), (0, "ONS")]),
        # by what the conditions before have left
        ("run_id IN (SELECT unnest(run_ids) FROM best WHERE learner = 'ONS')", [(0, "ONS")]),
    ):
        views.select([condition])
        for view in ("selected", "curves"):
            found = views.rows(f"SELECT order_seed, learner FROM {view} ORDER BY ALL")
            assert [tuple(one.values()) for one in found] == left
        assert sum(one["repeats"] for one in views.rows("FROM configurations")) == len(left)
    for condition, said in (
        ("lerner = 'OGD'", "no column 'lerner' .*; did you mean 'learner'"),
        ("status=ok", "no column 'ok' .a text stands in single quotes"),
        ("kind = 'OGD'", "no column 'kind' .a text stands .*; --runs --json shows all columns"),
        ("alpha <", "syntax error"),
        ("alpha > 1 LIMIT 5", "syntax error"),
        ("alpha = 'large'", "'large'"),
        ("alpha = 7", "no run matches; alpha is 0.0, 1.0, 2.0, 3.0"),
        ("learner = 'ogd'", "no run matches; learner is OGD, ONS"),
    ):
        assert repr(condition) in refusal(said, views.select, ["alpha >= 0", condition])


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
        refusal(None, views.table, query)
    content = bytearray(Path(str(file)).read_bytes())
    content[20] ^= 1
    Path(str(file)).write_bytes(content)
    refusal(str(file), Views, tmp_path, ["s"])


def test_columns__have_what_everyone_plots_and_each_metric_has_a_mean(tmp_path):
    views = views_of(tmp_path, [row("two", "OGD", 0, 0, None, "ok", 0.5, 0.25, auc=0.75)])
    [best], [curve] = views.rows("FROM best"), views.rows("FROM Curves")
    assert (best["auc_mean"], {f"{name}_mean" for name in METRICS} <= best.keys()) == (0.75, True)
    assert flows.results(tmp_path, "s").runs.schema.equals(schema(RUNS), check_metadata=True)
    assert {
        "t": 8,
        "mean_loss": 0.0,
        "learner": "OGD",
        "stream": "two, shuffled",
    }.items() <= curve.items()
    assert views.rows("FROM members") == [{"sweep": "s", "run_id": f"{0:032x}"}]


def test_runs__that_are_no_candidates(tmp_path):
    """Rungs of a halving, runs of older code, and a second run with other metrics."""
    rows = [
        row("two", "OGD", which, 0, None, "ok", loss, loss, max_rows=rows, rounds=rows)
        for which, rows, loss in ((0, 4, 0.0), (1, 4, 0.1), (1, None, 0.4))
    ]
    older = {"numbers_version": 1, "mean_loss": 0.0, "error_rate": 0.0}
    rows = [*({**one, **older} for one in rows), *({**one, "numbers_version": 2} for one in rows)]
    rows.append({**rows[-1], "auc": 0.5})
    assert [one["max_rows"] for one in views_of(tmp_path, rows).rows("FROM best")] == [None, 4]
    write_decisions(tmp_path, "s", [{**dict.fromkeys(DECISIONS.names), "goes_on": True}])
    [best] = Views(tmp_path, ["s"]).rows("FROM best")
    assert (best["params"], best["merit"], best["repeats"]) == (rows[2]["params"], 0.4, 1)
    # another sweep asks for the short ones
    put(tmp_path, "t", [f"{k:032x}" for k in range(len(rows))], ())
    assert len(Views(tmp_path, ["s", "t"]).rows("FROM best")) == 2


def test_dataset_of_two_names__has_in_each_sweep_the_one_that_it_has_there(tmp_path):
    """As where a scale changes nothing: its runs are computed once."""
    put(
        tmp_path,
        "s",
        None,
        [row("raw", one, 1, 0, None, "ok", 0.5, None) for one in ("OGD", "AdaGrad")],
    )
    for sweep, ids in (("raw", [0]), ("scaled", [0, 1])):
        put(tmp_path, sweep, [f"{one:032x}" for one in ids], (), datasets={"hash of raw": sweep})
    for sweeps in (["raw"], ["scaled"], ["raw", "scaled"], ["scaled", "raw"]):
        found = Views(tmp_path, sweeps).rows("SELECT dataset, learner FROM best")
        assert [one["dataset"] for one in found] == sweeps[:1] * (1 if sweeps == ["raw"] else 2)
    compared = compare(tmp_path, ["raw", "scaled"])
    assert {one["block"] for one in compared.blocks.to_pylist()} == {"raw, shuffled"}
    assert compared.notes == []


def test_data_seeds__are_repeats_of_one_stream(tmp_path):
    names = [f"sea,n_rows=9,data_seed={k},x=1" for k in (1, 2)]
    rows = [row(name, "OGD", 1, 0, None, "ok", k / 4, None) for k, name in enumerate(names)]
    rows.append(row("sea,n_rows=8,data_seed=1", "OGD", 1, 0, None, "ok", 0.5, None))
    found = views_of(tmp_path, rows).rows("FROM best")
    assert [(one["dataset"], one["n_runs"], one["merit"]) for one in found] == [
        ("sea,n_rows=8,data_seed=1", 1, 0.5),
        ("sea,n_rows=9,x=1, 2 data seeds", 2, 0.125),
    ]


@pytest.mark.parametrize(
    ("losses", "errors", "known", "beats"),
    [
        ((0.3, 0.5), (0.1, 0.1), (0.5, 0.2), True),
        ((0.3, 0.5), (None, None), (0.5, None), True),
        ((0.3, 0.5), (0.1, 0.1), (0.4, 0.2), False),  # as good
        ((0.3, 0.5), (0.1, 0.3), (0.5, 0.2), False),
        ((0.3, 0.9), (0.1, 0.1), (0.5, 0.2), False),
        ((0.3, 0.5), (0.1, 0.1), (None, None), None),
        ((0.3, math.nan), (0.1, 0.1), (0.5, 0.2), None),
        ((None, None), (None, None), (0.5, 0.2), None),  # of KORS, which predicts nothing
    ],
)
@pytest.mark.parametrize("learner", ["OGD", "Constant"])
def test_beats_constant__is_strictly_better_in_all_that_is_measured(
    tmp_path, learner, losses, errors, known, beats
):
    rows = [run(k, "d", learner, losses[k], errors[k], k) for k in (0, 1)]
    constant = dict(zip(("constant_mean_loss", "constant_error_rate"), known, strict=True))
    put(tmp_path, "s", None, [one | constant for one in rows])
    [found] = Views(tmp_path, ["s"]).rows("FROM configurations")
    assert found["beats_constant"] is (None if learner == "Constant" else beats)
    # and unknown where a run does not say
    put(tmp_path, "s", None, [rows[0] | constant, rows[1] | {"constant_mean_loss": None}])
    [found] = Views(tmp_path, ["s"]).rows("FROM configurations")
    assert found["beats_constant"] is None


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    """Constant errs on 50 % and has the loss 0.9: one dataset on which nothing is better than both,
    and one of real labels.
    """
    store = tmp_path_factory.mktemp("constant")
    results = {
        ("noise", "OGD"): (0.95, 0.4),
        ("noise", "AdaGrad"): (0.9, 0.6),
        ("noise", "Constant"): (0.9, 0.5),
        ("plain", "OGD"): (0.3, None),
        ("plain", "Constant"): (0.9, None),
    }
    rows = [
        run(2 * number + seed, *names, loss, error, seed, constant_error_rate=error and 0.5)
        for number, (names, (loss, error)) in enumerate(results.items())
        for seed in (0, 1)
    ]
    put(store, "s", None, rows)
    return store


SAID = {
    f"{name}'s best on noise, shuffled is not better than always predicting a constant"
    for name in ("AdaGrad", "OGD")
}


def test_results__mark_and_name_the_learners_that_are_not_better(store, koco):
    for words, named in (([], SAID), (["--best"], SAID), (["--best", "--json"], set())):
        said = koco("results", "--store", store, "--sweep", "s", *words, status=0).stderr.replace(
            "\n  ", " "
        )
        assert set(re.findall(r"\w+'s best on .* is not better than .* constant", said)) == named


CONFIGURATIONS = [
    *(("OjaSON", {"sketch_size": m, "alpha": a}) for m, a in product((3, 6), (0.5, 4.0, 8.0))),
    *(("AdaGrad", {"step_size": step}) for step in (0.1, 1.0)),
]


@pytest.fixture(scope="module")
def answered(tmp_path_factory):
    """Two sweeps, of alpha 0.5 and 4 and of 4 and 8, that have configurations in common."""
    folder, draw, rows = tmp_path_factory.mktemp("answers") / "store", random.Random(0), []
    for (learner, own), dataset, order in product(CONFIGURATIONS, ("real", "year"), (0, 1)):
        params = {**own, "clip": 2.0 if own.get("alpha") == 8.0 else 1.0}
        told = {
            **{**params, "mean_loss": draw.random(), "seconds": draw.random(), "rounds": 9},
            **{"order": "shuffled", "order_seed": order, "dataset": dataset},
            **{"learner": learner, "params": json.dumps(params), "dataset_hash": dataset},
        }
        rows.append({"run_id": f"{len(rows):032x}", "numbers": "own", "status": "ok", **told})
    for name, left_out in (("first", 8.0), ("second", 0.5)):
        put(folder, name, [row["run_id"] for row in rows if row.get("alpha") != left_out], ())
    put(folder, "all", None, rows)
    return folder


@pytest.fixture
def results(answered):
    def asked(*words):
        printed = command("results", "--store", answered, *words, status=0).stdout
        return json.loads(printed) if "--json" in words else printed

    return asked


def test_conditions__are_what_loops_over_the_runs_give(results):
    runs = results("--runs", "--json")
    assert len(runs) == 4 * len(CONFIGURATIONS)
    large = results("--where", "alpha>1", "--where", "learner='OjaSON'", "--runs", "--json")
    assert {r["run_id"] for r in large} == {r["run_id"] for r in runs if (r["alpha"] or 0) > 1}
    assert {r["dataset"] for r in results("--dataset", "year", "--json")} == {"year"}


def test_difference__joins_what_is_equal(results, answered):
    """Configurations that both have stand beside each other; with --best, those of a learner do."""
    words = ("--sweep", "first", "--diff", "second")
    rows = results(*words, "--json")
    assert len(rows) == 2 * len(CONFIGURATIONS)
    for row in rows:
        alpha = json.loads(row["params"]).get("alpha")
        assert (row["n_runs"] is None, row["n_runs_other"] is None) == (alpha == 8, alpha == 0.5)
        assert row["difference"] == (None if alpha in (8, 0.5) else 0.0)
    best = results(*words, "--best", "--json")
    assert sorted((row["dataset"], row["learner"]) for row in best) == [
        *product(("real", "year"), ("AdaGrad", "OjaSON"))
    ]
    for row in best:
        losses = row["mean_loss_mean_other"], row["mean_loss_mean"]
        assert row["difference"] == pytest.approx(losses[0] - losses[1])
    # what only one of them has, the other need not have
    assert [row["mean_loss_mean"] for row in results(*words, "--where", "alpha=8", "--json")] == [
        None
    ] * 4
    # a terminal has the parameters of both, and first of all what is asked for
    for shown in (results(*words, "--best"), results(*words)):
        assert max(map(len, shown.splitlines())) <= 100
        assert [word in shown for word in ("difference", "other", "hash")] == [True, True, False]
    assert set(re.findall(r"alpha=\S+", shown)) == {"alpha=0.5", "alpha=4", "alpha=8"}


def test_forms__give_the_same_numbers(results, tmp_path):
    words = ("--where", "learner='OjaSON'")
    as_json = results(*words, "--json")
    results(*words, "--arrow", str(tmp_path / "a.arrow"))
    with pa.OSFile(str(tmp_path / "a.arrow")) as file:
        assert pa.ipc.open_file(file).read_all().to_pylist() == as_json
    rows = list(csv.DictReader(io.StringIO(results(*words, "--csv"))))
    assert [float(row["mean_loss_mean"]) for row in rows] == [
        row["mean_loss_mean"] for row in as_json
    ]


def test_terminal__shows_parameters_that_vary_and_the_others_once(results, answered):
    words = ("--sweep", "first", "--where", "clip=1")
    done, rows = command("results", "--store", answered, *words), results(*words, "--json")
    lines = done.stdout.splitlines()
    assert max(map(len, lines)) <= 100
    # below the names, some of them in two lines
    for line, row in zip(lines[-len(rows) :], rows, strict=True):
        assert line.split()[:2] == [row["dataset"], row["learner"]]
        params = {**json.loads(row["params"])}
        del params["clip"]
        shown = dict(text.split("=") for text in re.findall(r"\S+=\S+", line))
        assert {name: float(value) for name, value in shown.items()} == params
    assert "all rows: order=shuffled n_runs=2" in done.stderr.splitlines()
    # each dataset has one hash, real labels have no errors, and all runs are ok
    assert [word in done.stdout for word in ("_hash", "error_")] == [False] * 2
    single = results(*words, "--runs")
    assert [word in single for word in ("order_seed", "status")] == [True, False]
    other = command("results", "--store", answered, "--where", "alpha=8").stderr
    assert "all rows of OjaSON: alpha=8 clip=2" in other


def test_csv__has_no_text_that_a_spreadsheet_takes_for_a_formula(koco, tmp_path):
    rows = [
        {
            **dict.fromkeys(("dataset", "learner"), text),
            "params": json.dumps({"options": text}),
            "mean_loss": -1.0,
            "error": f"{text}\t=",
        }
        for text in FORMULAS
    ]
    put(tmp_path / "store", "theirs", None, rows)
    given = ("results", "--store", tmp_path / "store", "--sweep", "theirs")
    columns = ("dataset", "learner", "error", "mean_loss")
    found = csv.DictReader(io.StringIO(koco(*given, "--runs", "--csv", status=0).stdout))
    for text, row in zip(sorted(FORMULAS), found, strict=True):
        assert [row[name] for name in columns] == [*[f"'{text}"] * 2, f"'{text}\t=", "-1"]
    plain = json.loads(koco(*given, "--runs", "--json", status=0).stdout)
    assert [row["dataset"] for row in plain] == sorted(FORMULAS)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--runs", "--best"], "cannot be combined"),
        (["--diff", "first"], "give both"),
        (["--sweep", "frist"], "no sweep 'frist'"),
        (["--json", "--csv"], "choose one"),
        (["first"], "koco results --sweep first"),
        (["--arrow", "nowhere/x.arrow"], "there is no folder nowhere"),
        (["--sort", "lerner"], "no column 'lerner'; did you mean 'learner'"),
        # a filter that no run meets names the nearest value, or those that there are
        (["--learner", "ojason"], "did you mean 'OjaSON'?"),
        (["--learner", "OjaSON", "--learner", "kors"], "--learner kors: no run matches; there are"),
        (["--dataset", "rael"], "--dataset rael: no run matches; did you mean 'real'?"),
        (["--learner", "AdaGrad", "--where", "alpha=4"], "alpha is NULL"),
        (["--where", "alpah=4"], "there is no column 'alpah'"),
    ],
)
def test_wrong_options__are_refused_with_a_reason(koco, answered, words, said):
    done = koco("results", "--store", answered, *words, status=2)
    assert said in done.stderr
    assert done.stdout == ""


def test_order_and_limit__are_those_of_a_loop_over_the_rows(koco, results, answered):
    """A table that is sorted and cut has what the whole table has there."""
    # without one: last
    rows = sorted(
        results("--json"), key=lambda row: json.loads(row["params"]).get("alpha", math.inf)
    )
    words = ("--sort", "alpha", "--limit", "5")
    assert results(*words, "--json") == rows[:5]
    assert f"{len(rows) - 5} more rows" in koco("results", "--store", answered, *words).stderr
    by_column = results("--runs", "--sort", "seconds", "--json")
    assert by_column == sorted(by_column, key=lambda row: row["seconds"])


def test_report_of_many_runs__is_the_same_from_a_process_of_its_own(
    koco, swept_once, swept_store, monkeypatch
):
    page = swept_store / "reports" / "first.html"
    words = ("sweep", swept_once / "first.toml", "--store", swept_store)
    koco(*words, status=0)
    before = page.read_bytes()
    monkeypatch.setattr("flows.sweeping.launch.MANY_RUNS", 1)
    page.unlink()
    koco(*words, status=0)
    # it says when it was written
    assert len(page.read_bytes()) == pytest.approx(len(before), rel=0.01)
    page.unlink()
    page.mkdir()  # so that it cannot be written
    assert "the report could not be written: koco: " in koco(*words, status=1).stderr
