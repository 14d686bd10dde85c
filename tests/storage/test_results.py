"""The result tables: result files are moved into few files, whatever is cut and wherever, and every
run is there once with its own curve. What is damaged, of another format or crafted, in tables,
manifests and models, is refused with its name and what to do, and never left out in silence.
"""

import json
import random
import re
import shutil
import tempfile
from collections import Counter
from contextlib import contextmanager
from datetime import UTC, datetime
from functools import reduce
from itertools import islice, pairwise, product
from operator import getitem
from unittest.mock import patch

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import example, given, settings, strategies as st

import flows
import koco_stream
from flows.housekeeping import sweep_rows
from flows.sweeping.planning import limits_of
from flows.tables.sweep_runs import DECISIONS, read_decisions, write_decisions
from koco_stream.engine.checkpoint import checkpoint_of, checkpoints, resumed, save_cohort
from koco_stream.engine.cohort import run_cohort
from koco_stream.engine.result_file import read_result, result_files_folder, result_path
from koco_stream.io import table_file
from koco_stream.io.paths import store_path
from koco_stream.io.table_file import read_table, write_tables
from koco_stream.runs.planner import plan
from koco_stream.runs.row_checks import NEEDED
from koco_stream.runs.schemas import CURVES, RUNS, result_schema, schema
from koco_stream.streams.manifest import SEAL, load_manifest, seal_of
from koco_stream.streams.opened import stream
from storage import collecting
from storage.collecting import collect
from storage.nights import accept, add_night, numbers_of, read_accepted, read_nights
from storage.preparing.prepare import prepare_file
from storage.results import (
    file_name,
    finished_runs,
    read_curves,
    read_predictions,
    read_runs,
    read_windows,
    result_files,
    result_problems,
    seconds_of_stopped,
    table_files,
)
from storage.store import open_store
from tests.helpers.cut import cut_after
from tests.helpers.in_process import strict
from tests.helpers.many_runs import drawn_runs
from tests.helpers.refusal import outcome_of, refusal
from tests.helpers.sweeps import TWO_RUNS, checked, cohort_on, prepared, run_here, swept, written

OK, FAILED, STOPPED = "ok", "failed", "stopped"
LENGTH = {OK: 90, FAILED: 2, STOPPED: 3}  # points of a curve: what is not ok came less far


def length(status, number):
    """The points of a run's curve in the result file of this number: of one that was stopped, more
    than before.
    """
    return LENGTH[status] + number * (status == STOPPED)


@pytest.fixture
def empty(tmp_path):
    return open_store(tmp_path / "store")


def put_result_file(store, number, runs):
    """A result file with these (run, status) in it, later than those of smaller numbers. A run's
    numbers follow only from it, as those of a real one do.
    """
    rows = [
        {
            "run_id": f"{run:032x}",
            "dataset": f"d{run % 2}",
            "order": "as-stored",
            "learner": "OGD",
            "params": "{}",
            "status": status,
            "rounds": 9,
            "curve": [
                {"t": t, "cumulative_loss": run + t / 8, "mistakes": None, "dictionary_size": None}
                for t in range(1, length(status, number) + 1)
            ],
            "finished_at": datetime.fromtimestamp(number, UTC),
        }
        for run, status in runs
    ]
    file = result_files_folder(store) / f"{number:032x}.parquet"
    write_tables([pa.Table.from_pylist(rows, result_schema())], file)


def expected(known):
    return sorted((f"{run:032x}", status) for run, (status, _) in known.items())


def points(known):
    return {f"{run:032x}": length(*of_run) for run, of_run in known.items()}


def check_read(store, known):
    """What is read is each run once, an ok row before others and else the latest, with the curve of
    that row.
    """
    runs = read_runs(store).select(["run_id", "status"]).to_pylist()
    assert sorted((row["run_id"], row["status"]) for row in runs) == expected(known)
    assert finished_runs(store) == {run for run, status in expected(known) if status != STOPPED}
    assert {*seconds_of_stopped(store)} == {run for run, of in expected(known) if of == STOPPED}
    assert finished_runs(store, True) >= {run for run, status in expected(known) if status == OK}
    curves = read_curves(store)
    assert curves.schema == schema(CURVES)
    assert Counter(curves.column("run_id").to_pylist()) == points(known)
    rows = curves.select(["run_id", "t", "cumulative_loss"]).to_pylist()
    assert all(row["cumulative_loss"] == int(row["run_id"], 16) + row["t"] / 8 for row in rows)
    assert len({(row["run_id"], row["t"]) for row in rows}) == len(rows)


def check_files(store, known):
    """The files themselves hold each run once, in few files; the curves' files are those of the
    runs'.
    """
    assert result_files(store) == []
    runs, curves = (
        {file.name: read_table(file) for file in table_files(store, name)}
        for name in ("runs", "curves")
    )
    assert [*runs] == [*curves] == [file_name(table) for table in runs.values()]
    assert len(runs) <= collecting.MANY_FILES + 1
    rows = pa.concat_tables(runs.values()).to_pylist() if runs else []
    assert sorted((row["run_id"], row["status"]) for row in rows) == expected(known)
    found = [run for table in curves.values() for run in table.column("run_id").to_pylist()]
    assert Counter(found) == points(known)


NEVER = 10**6
CUT = st.just(NEVER) | st.integers(0, 12)  # changes of files after which collecting is killed
# runs that are tried again have their own curves wherever replacing the first ones was cut
AGAIN = [step for cut in range(8) for step in ({cut: OK}, cut)]


@settings(max_examples=8, deadline=None)
@given(
    st.lists(
        st.dictionaries(
            st.integers(0, 11), st.sampled_from([OK, FAILED, STOPPED]), min_size=1, max_size=4
        )
        | CUT,
        min_size=2,
        max_size=10,
    ),
    st.sampled_from([0, 3, 100]),
)
@example([{1: FAILED, 2: OK}, NEVER, {1: FAILED, 2: FAILED}, NEVER], 0)
@example([dict.fromkeys(range(8), FAILED), NEVER, *AGAIN], 0)
@example([{1: STOPPED, 2: OK}, NEVER, {1: STOPPED}, 1, {1: FAILED}, 2, {1: STOPPED}, NEVER], 0)
@example([step for run in range(5) for step in ({run: OK}, NEVER)], 100)  # many files
def test_collect__cut_anywhere_loses_doubles_and_mixes_nothing(steps, full):
    known = {}
    with (
        tempfile.TemporaryDirectory() as folder,
        patch.multiple(collecting, MANY_FILES=2, FULL_FILE=full or 1_000_000),
    ):
        store = open_store(f"{folder}/store")
        for number, step in enumerate(steps):
            if isinstance(step, dict):
                put_result_file(store, number, step.items())
                done = [run for run, (status, _) in known.items() if status == OK]
                known |= {run: (of, number) for run, of in step.items() if run not in done}
            else:
                with cut_after(step):
                    collect(store)
            check_read(store, known)
        collect(store)
        check_read(store, known)
        if full != 3:
            check_files(store, known)
        assert collect(store) == 0
        check_read(store, known)


def test_runs_whose_curves_another_collector_took_away__have_those_of_its_file(empty):
    put_result_file(empty, 1, [(1, OK), (2, FAILED)])
    collect(empty)
    (first,) = table_files(empty, "runs")
    content = first.read_bytes()
    put_result_file(empty, 2, [(2, OK), (3, OK)])
    collect(empty)
    # as one who is late writes it, where there is no lock
    first.write_bytes(content)
    known = {1: (OK, 1), 2: (OK, 2), 3: (OK, 2)}
    check_read(empty, known)
    collect(empty)
    check_files(empty, known)


SPEC = """
window = 20
keep_predictions = true
[[dataset]]
name = "plain"
[[learner]]
name = "OGD"
step_size = {}
"""


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A store with table files of each kind, and a sweep whose result file is not collected."""
    folder, draw = tmp_path_factory.mktemp("damage"), np.random.default_rng(0)
    X = draw.standard_normal((150, 3))
    store = prepared(folder, "plain", X, X.sum(1) / 3)
    swept(folder, SPEC.format([0.1, 0.2]), "first")
    texts = dict.fromkeys(("night", "dataset", "learner"), "a")
    add_night(store, "first", [{**texts, "accepted": False}])
    accept(store, "first", "a", numbers_of(store))
    write_decisions(store, "first", [dict.fromkeys(DECISIONS.names)])
    sweep = checked(written(folder, f'name = "second"\n{SPEC.format(0.3)}', "second.toml"), store)
    run_here(store, plan(sweep.runs, sweep.sizes, limits_of("local", 1)).cohorts, "second")
    return store


@pytest.fixture
def store(made, tmp_path):
    """A copy of that store, which the test may change."""
    return shutil.copytree(made.parent, tmp_path / "damage") / "store"


def ids(store):
    return read_runs(store, ["run_id", "status"]).column("run_id").to_pylist()


READS = (
    read_runs,
    read_curves,
    lambda store: read_windows(store, ids(store)),
    lambda store: read_predictions(store, ids(store)),
    lambda store: read_nights(store, "first"),
    lambda store: read_accepted(store, "first"),
    lambda store: read_decisions(store, "first"),
    lambda store: list(sweep_rows(store_path(store))),
)


def flips(content, draw):
    """Bits of each part of a table file: its magic, pages, hashes, footer and the footer's size."""
    footer = len(content) - 8 - int.from_bytes(content[-8:-4], "little")
    ends = [0, 4, 40, footer - 2 * table_file.HASH, footer, *(len(content) - k for k in (8, 4, 0))]
    for first, last in pairwise(ends):
        yield draw.randrange(first, last), draw.randrange(8)


def test_flipped_bit__is_found_by_verify__and_each_read_is_the_same_or_names_the_file(store):
    draw, before = random.Random(0), [read(store) for read in READS]
    folders = [store / name for name in ("results", "history", "accepted")]
    files = sorted(file for folder in folders for file in folder.rglob("*.parquet"))
    assert (len(files), result_problems(store)) == (10, [])
    for k, file in enumerate(files):
        content = file.read_bytes()
        for place, bit in islice(flips(content, draw), k % 2, None, 2):
            file.write_bytes(
                content[:place] + bytes([content[place] ^ 1 << bit]) + content[place + 1 :]
            )
            (problem,) = result_problems(store)
            assert f"{file} cannot be read" in problem
            found = [outcome_of(read, store) for read in READS]
            assert {said for _, said in found} in ({problem}, {problem, ""})
            assert all(
                said or rows == known for (rows, said), known in zip(found, before, strict=True)
            )
        file.write_bytes(content)


def test_rows__of_many_blocks_and_groups__are_those_of_the_runs_asked_for(tmp_path, monkeypatch):
    monkeypatch.setattr(table_file, "BLOCK", 1000)
    runs = drawn_runs(60, "s", np.random.default_rng(0)).sort_by("run_id")
    file = store_path(tmp_path / "a.parquet")
    write_tables([runs.slice(0, 0), *(runs.slice(k, 20) for k in (0, 20, 40))], file)
    names = runs.column("run_id").to_pylist()
    assert read_table(file) == runs
    for some in ([], names[:1], names[15:25], [*names[30::9], "none"]):
        mine = runs.filter(pa.array([name in some for name in names]))
        assert read_table(file, ["status"], some) == mine.select(["status"])


@pytest.mark.parametrize(("table", "read"), [("windows", READS[2]), ("predictions", READS[3])])
def test_rows__that_a_killed_cohort_has_left_in_another_file__are_read_once(table, read, store):
    before, [file] = read(store), table_files(store, table)[:1]
    file.path.with_name("left.parquet").write_bytes(file.read_bytes())
    assert read(store) == before


@pytest.mark.parametrize(
    ("table", "read"), [*zip(("curves", "windows", "predictions"), READS[1:4], strict=True)]
)
def test_rows__whose_file_is_gone__are_missed_and_computed_again_as_verify_says(
    table, read, store, koco
):
    known, (runs,) = read(store).sort_by("run_id"), table_files(store, "runs")
    table_files(store, table)[0].remove()
    refusal(rf"results/{table} lacks the rows of \d run", read, store)
    missing, again = f"{runs}: the curves of its runs are missing; remove it", "--retry-failed"
    assert (missing if table == "curves" else f"koco sweep {again}") in result_problems(store)[0]
    if table == "curves":
        runs.remove()
    for name in ("first", "second"):
        koco("sweep", store.parent / f"{name}.toml", "--store", store, again, status=0)
    assert (read(store).sort_by("run_id"), result_problems(store)) == (known, [])


# Files of another format
# --------------------------------------------------------------------------------------------------


each = pytest.mark.parametrize("other", [0, 2])


def words(other, remedy, wrote="another version of koco-stream"):
    return (
        f"was written by {wrote} (format {other}; this one reads 1): use that version, or {remedy}"
    )


def of_version(other):
    """Files are written by another version, in this format."""
    return patch.multiple("koco_stream.io.table_file", FORMAT=other, __version__="9.8")


@each
def test_store(other, swept_store, koco):
    (swept_store / "koco-store.json").write_text(json.dumps({"format": other, "created_by": "9.8"}))
    for command in (("list",), ("sweep", "ill-conditioned"), ("store", "verify")):
        said = " ".join(koco(*command, "--store", swept_store, status=2).stderr.split())
        assert words(other, "choose another --store", "koco-stream 9.8") in said


@each
def test_manifest__is_refused_until_prepared_again(other, swept_store, tmp_path, koco):
    file = swept_store / "datasets" / "plain" / "manifest.json"
    spec = written(tmp_path, f'name = "s"\n{TWO_RUNS}')
    content = {**json.loads(file.read_text()), "format": other}
    for command in (("sweep", spec), ("report", "first")):
        file.write_text(json.dumps(content))  # the seal is that of the format before
        said = koco(*command, "--store", swept_store, status=2).stderr
        assert f"{file} {words(other, 'prepare the dataset again')}" in " ".join(said.split())
        content |= {SEAL: seal_of({key: content[key] for key in content if key != SEAL})}
    given = ("--from", written(tmp_path, "1,2\n3,4\n", "plain.csv"), "--store", swept_store)
    koco("prepare", "plain", *given, "--replace", status=0)
    assert json.loads(file.read_text())["format"] == 1


@each
def test_model__is_refused_and_checkpoint_of_no_use(other, swept_store, tmp_path):
    cohort = cohort_on(swept_store, [("OGD", {}, 1)], name="plain", order="as-stored")
    where = checkpoint_of(swept_store, cohort)
    with of_version(other):
        koco_stream.OGD().partial_fit([[1.0]], [1.0]).save(tmp_path / "a.koco")
        save_cohort(where, 5, [])
    remedy = "let the learner learn again, or use another copy"
    said = re.escape(words(other, remedy, "koco-stream 9.8"))
    for load in (koco_stream.load, koco_stream.OGD.load, koco_stream.Classifier.load):
        refusal(rf"a\.koco {said}", load, tmp_path / "a.koco")
    assert (resumed(where, []), checkpoints(store_path(swept_store))) == (0, {})


@each
@pytest.mark.parametrize("table", ["runs", "curves"])
def test_table(table, other, swept_store):
    (file,) = table_files(swept_store, table)
    content = read_table(file)
    with of_version(other):
        write_tables([content], file)
    said = re.escape(f"{file} {words(other, 'remove it', 'koco-stream 9.8')}")
    refusal(said, read_runs if table == "runs" else read_curves, swept_store)
    assert re.match(said, result_problems(swept_store)[0])


# Files that somebody has written otherwise
# --------------------------------------------------------------------------------------------------


COMMANDS = (
    *(("results",), ("results", "--runs"), ("results", "--sweep", "first", "--best")),
    ("results", "--sweep", "first", "--diff", "second"),
    *(("compare", "first"), ("report", "first")),
)
TEXTS = sorted(name for name in NEEDED if name in {column.name for column in RUNS})
WRONG = (None, -1, 2**63, 1.5, True, "", "x", "../../x", [], {}, [None], [[]], ["x"])
MISSING = object()
NAN, INF = float("nan"), float("inf")
NOT_UTF8 = pa.Array.from_buffers(pa.string(), 2, pa.array([b"\xff"] * 2).buffers())


# Rows of the table `runs`
# --------------------------------------------------------------------------------------------------


def altered(swept_store, name, column):
    """Write another column of this name into the table of runs; returns its file."""
    (file,) = table_files(swept_store, "runs")
    table = read_table(file)
    write_tables([table.set_column(table.schema.get_field_index(name), name, column)], file)
    return str(file)


@pytest.mark.parametrize("name", ["run_id", "status", "params"])
def test_row__that_lacks_a_text__is_refused_by_every_reader(name, swept_once, swept_store, koco):
    file = altered(swept_store, name, pa.array([None, "x"], pa.string()))
    for words in (*COMMANDS, ("sweep", swept_once / "second.toml")):
        said = koco(*words, "--store", swept_store, status=2).stderr
        assert f"{file} cannot be read (a row has no {name}); remove it" in " ".join(said.split())
    refusal(f"a row has no {name}", lambda: flows.results(swept_store, "first").runs)
    assert any(f"a row has no {name}" in problem for problem in result_problems(swept_store))


@pytest.mark.parametrize(
    ("name", "column", "said"),
    [
        *((name, pa.array([None, "x"], pa.string()), f"a row has no {name}") for name in TEXTS),
        *(
            ("params", pa.array(["{}", text]), "params of a row are not an object in JSON")
            for text in (
                *("", "{", "[1]", "null", "1e400", "{'a': 1}", "[" * 9999, "{a: 1}", '{"a" 1}'),
                *('{"a": 01}', '{"a": .5}', '{"a": 1.}', '{"a": 1e}', '{"a": +1}', '{"a": 1,}'),
                *('{"a": tru}', '{"a": "\\x"}', '{"a": "\x01"}', '{"a": 1} 1', '{"a": 1 "b": 2}'),
                *('{"a": 1}\n{}', '{"a": "}', '{, "a": 1}', '"a": 1', '{"a": 1, 2}', '{"a": {}'),
            )
        ),
        ("params", pa.array([1, 2]), "column params is int64, and string is needed"),
        ("status", pa.array(["ok", "fine"]), "a row has status 'fine'"),
        ("dataset", NOT_UTF8, "column dataset has a text that is not UTF-8"),
        (
            "finished_at",
            pa.array([0, 2**62]).cast(pa.timestamp("us", "UTC")),
            "column finished_at has a time outside the years 1 to 9999",
        ),
        ("error", NOT_UTF8, "column error has a text that is not UTF-8"),
        ("mean_loss", pa.array(["x", "y"]), "column mean_loss: Failed to parse string"),
        ("rounds", pa.array([[1], [2]]), "column rounds: Unsupported cast"),
    ],
)
def test_row__with_another_value__is_refused_with_the_column(name, column, said, swept_store, koco):
    file = altered(swept_store, name, column)
    printed = koco("results", "--runs", "--store", swept_store, status=2).stderr
    assert f"{file} cannot be read ({said}" in " ".join(printed.split())


@pytest.mark.parametrize("values", [(None,) * 4, (NAN, INF, -1.0, NAN), (INF, -1.0, NAN, INF)])
def test_results__that_are_no_results__are_shown_or_refused(values, swept_store, koco):
    names = ("mean_loss", "error_rate", "seconds", "constant_mean_loss")
    for name, value in zip(names, values, strict=True):
        altered(swept_store, name, pa.array([value, 0.5], pa.float64()))
    for words in (*COMMANDS, ("list", "sweeps")):
        missing = None in values and words[0] == "compare"
        form = () if words[0] == "report" else ("--json",)
        said = koco(*words, "--store", swept_store, *form, status=2 if missing else 0).stdout
        if form and not missing:
            strict(said)


CONTROLS = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202e]")
EVIL = "<script>alert(1)</script>\"'><img src=x>\x07\x1b[31m\u202e=1+1 {{7*7}} </style>"


def test_texts__of_a_crafted_table__reach_no_terminal_or_page_as_they_are(swept_store, koco):
    for name in ("learner", "dataset", "error", "host", "computed_by"):
        altered(swept_store, name, pa.array([EVIL, f"{EVIL}2"], pa.string()))
    altered(swept_store, "params", pa.array([json.dumps({EVIL: text}) for text in (EVIL, "x")]))
    for words in (*COMMANDS, ("results", "--csv", "--runs"), ("list", "sweeps")):
        done = koco(*words, "--store", swept_store)
        assert done.exit_code in (0, 2)
        assert not CONTROLS.search(done.output), words
    for ending in ("html", "md"):
        page = (swept_store / "reports" / f"first.{ending}").read_text()
        assert not CONTROLS.search(page)
        assert not re.search("<script>alert|<img src=x", page)


# Manifests, entries of sweeps, and whole files
# --------------------------------------------------------------------------------------------------


@contextmanager
def altered_manifest(store, keys, value):
    """The manifest is another one at these keys, and sealed as if it had been prepared so."""
    file = store / "datasets" / "plain" / "manifest.json"
    before = file.read_text()
    content = json.loads(before)
    *outer, last = keys
    at = reduce(getitem, outer, content)
    at[last] = value
    if value is MISSING:
        del at[last]
    del content[SEAL]
    file.write_text(json.dumps({**content, SEAL: seal_of(content)}))
    yield
    file.write_text(before)


def test_manifest__with_another_value_anywhere__is_refused_or_reads_as_it_says(swept_store):
    """What is accepted is of the right type: the rows are then those of the shards."""
    rows, accepted = stream(swept_store, "plain").whole(), set()
    manifest = load_manifest(swept_store, "plain")
    of_shard = [["shards", 0, name] for name in vars(manifest.shards[0])]
    keys_of_all = [*([name] for name in vars(manifest)), *of_shard]
    for keys, value in product(keys_of_all, (*WRONG, MISSING)):
        with altered_manifest(swept_store, keys, value):
            found, said = outcome_of(lambda: stream(swept_store, "plain").whole())
        if said:
            assert "datasets/plain" in said or "'plain'" in said, (keys, value)
        else:
            assert all(map(np.array_equal, found, rows)), (keys, value)
            accepted.add(keys[-1])
    # what is said of the rows, and the path of a shard of which there is a copy
    said = {"classes", "class_names", "feature_names", "changes", "source"}
    assert accepted <= {*said, "statistics", "transformations", "path"}


@pytest.mark.parametrize("path", ["/etc/passwd", "../plain/x", "a/../../x", "a\0b", "a//b", "."])
def test_shard__is_in_the_folder_of_its_dataset(path, swept_store):
    with altered_manifest(swept_store, ["shards", 0, "path"], path):
        refusal("is not in the dataset's folder", load_manifest, swept_store, "plain")


def test_sparse_shard__with_features_beyond_the_manifest__is_refused(
    swept_store, tmp_path, monkeypatch
):
    """Compiled code does not check them: it would read and write beyond the weights."""
    prepare_file(swept_store, "plain", written(tmp_path, "1 1:1 7:2\n-1 3:1\n" * 40, "sparse.svm"))
    monkeypatch.setenv("KOCO_CACHE", str(swept_store.parent / "cache"))
    told = "has feature 6, and 6 features from 0 on in the manifest"
    with altered_manifest(swept_store, ["n_features"], 6):
        refusal(told, lambda: stream(swept_store, "plain").whole())


def test_sweeps_entry__with_another_value__is_refused_or_shown(swept_store, koco):
    file = swept_store / "sweeps" / "first.json"
    whole = json.loads(file.read_text())
    for name, value in product(whole, (*WRONG, MISSING)):
        note = {**whole, name: value}
        file.write_text(json.dumps({key: one for key, one in note.items() if one is not MISSING}))
        done = koco("list", "sweeps", "--store", swept_store)
        assert (done.exit_code == 0) != (f"{file} is damaged" in done.stderr), (name, value, done)
    file.write_text(json.dumps({**whole, "run_ids": ["none"]}))
    best = ("results", "--sweep", "first", "--best", "--store", swept_store)
    assert "no run has finished" in koco(*best, status=0).stderr
    for text in ("", "{", "[]", "null", '"x"', "5"):
        file.write_text(text)
        for words in (("report", "first"), ("list",), ("store", "remove", "sweep", "first")):
            said = koco(*words, "--store", swept_store, status=2).stderr
            assert f"{file} is damaged; start its sweep" in said


def altered_tables(table):
    """The table with each column missing, null, a text, and lists."""
    for place, field in enumerate(table.schema):
        yield table.remove_column(place)
        n = table.num_rows
        for column in (pa.nulls(n, field.type), pa.array(["x"] * n), pa.array([[1]] * n)):
            yield table.set_column(place, field.name, column)


@pytest.mark.parametrize("folder", ["runs", "curves"])
def test_table__of_another_schema__is_named_or_read(folder, swept_store):
    (file,) = table_files(swept_store, folder)
    before = {read: read(swept_store).num_rows for read in (read_runs, read_curves)}
    for table in islice(altered_tables(read_table(file)), 0, None, 3):
        write_tables([table], file)
        for read in (read_runs, read_curves):
            rows, said = outcome_of(read, swept_store)
            assert said or rows.num_rows <= before[read]
            assert not said or f"{file} cannot be read" in said or "results/curves lacks" in said
    for content in (b"", b"PAR1", file.read_bytes()[:-9]):
        file.path.write_bytes(content)
        for work in (read_curves, collect):
            _, said = outcome_of(work, swept_store)
            assert said == "" or f"{file} cannot be read" in said
        assert result_problems(swept_store)


def test_result_file__of_another_schema__is_not_believed(swept_store):
    """It is as if it were damaged: refused, until its cohort is run again."""
    cohort = cohort_on(
        swept_store, [("AdaGrad", {"step_size": 0.7}, 1)], name="plain", order="as-stored"
    )
    run_cohort(str(swept_store), "first", cohort)
    file = result_path(swept_store, cohort)
    whole = read_table(file)
    for table in islice(altered_tables(whole), 0, None, 5):
        write_tables([table], file)
        _, said = outcome_of(read_result, file)
        assert f"{file} cannot be read" in said or not said
        for work in (finished_runs, read_runs):
            assert outcome_of(work, swept_store)[1] == said
        assert result_problems(swept_store) == ([said] if said else [])
    write_tables([whole.drop_columns(["curve"])], file)
    receipt = run_cohort(str(swept_store), "first", cohort)
    assert (receipt.rounds > 0, len(result_files(swept_store))) == (True, 1)
    assert collect(swept_store) == 1
