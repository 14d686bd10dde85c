"""Malformed files: all kinds of fault are told at once, each with its first place; separators and
columns of texts are seen from the file.
"""

from functools import partial

import pytest

from koco_stream import WrongInput
from storage.preparing.prepare import prepare_file
from storage.sources.problems import MOST_MET, MOST_TOLD, Malformed
from storage.sources.reading import source_of
from storage.sources.source import Reading
from tests.helpers.sweeps import dense_rows


def refused(tmp_path, name, text, **options):
    """The message with which a file of this text is refused."""
    (tmp_path / name).write_bytes(text if isinstance(text, bytes) else text.encode())
    with pytest.raises(Malformed) as error:
        prepare_file(tmp_path / "store", "x", tmp_path / name, **options)
    return str(error.value).replace(f"{tmp_path}/", "")


OWN = "the age;kind;income;left?\n40;red;1.5;yes\n?;blue;2,5;no\n31;green;NA;yes;9\n22;;3;maybe\n"


def test_all_problems_of_a_table__are_told_at_once(tmp_path):
    assert refused(tmp_path, "own.csv", OWN).split("\n") == [
        "4 problems:",
        "  own.csv, line 2: column 'kind' is 'red', not a finite number; correct it, or treat its"
        " texts as categories with --one-hot (and 2 more of this kind, in column 'kind', column"
        " 'income')",
        "  own.csv, line 2: column 'left?' is 'yes', not a finite number; give its number with"
        " --labels, for example --labels 'g=1,b=-1' (and 2 more of this kind)",
        "  own.csv, line 3: column 'the age' is '?', not a finite number; fill the value in, or say"
        " what to do with missing values: --missing mean or drop (and 1 more of"
        " this kind, in column 'the age', column 'kind')",
        "  own.csv, line 4: 5 columns where the first line has 4; correct or remove the line",
    ]


def test_problems_of_the_first_faulty_piece__are_told(tmp_path, monkeypatch):
    text = "1 1:1\n2 1:x\n1 1:1\n1 2:1 1:1\n1 3:y\n\0\n1 z\n"
    message = refused(tmp_path, "a.svm", text)
    assert message.startswith("3 problems:\n  a.svm, line 2, column 5: the value of feature 1")
    assert "(and 1 more of this kind)\n  a.svm, line 4, column 7: feature 1 comes" in message
    assert message.splitlines()[-1].startswith("  a.svm, line 6, column 1: a NUL byte")
    source_of_the_file = partial(source_of, block_bytes=9)
    monkeypatch.setattr("storage.preparing.prepare.source_of", source_of_the_file)
    assert refused(tmp_path, "a.svm", text) == (
        "a.svm, line 2, column 5: the value of feature 1 is 'x', not a finite number; correct it\n"
        "other parts of the source may have other problems"
    )


def test_more_problems_than_can_be_told__are_counted(tmp_path):
    text = "1 1:1\n" + "".join(f"1 {'a' * k}\n" for k in range(1, 2 * MOST_MET))
    message = refused(tmp_path, "a.svm", text)
    assert message.endswith("(and 999 more of this kind)\nreading ended at 1,000 problems")
    width = MOST_TOLD + 5
    rows = [",".join(["1"] * width), ",".join(["a"] * width)]
    message = refused(tmp_path, "a.csv", "\n".join(rows) + "\n", target="1")
    assert "and 4 more)" in message


def test_what_is_malformed_in_the_survey__is_told_too(tmp_path):
    text = "kind,x,y\nred,1,0\nblue,?,1\nred,b,x\n"
    message = refused(tmp_path, "a.csv", text, one_hot=True)
    assert message.startswith("3 problems:")
    assert not (tmp_path / "store" / "datasets").exists()


@pytest.mark.parametrize(
    ("name", "text", "form"),
    [
        ("a.csv", "1;2;3\n4;5;6\n", "csv"),
        ("a.txt", "1;2;3\n4;5;6\n", "csv"),
        ("a.tsv", "1\t2\t3\n4\t5\t6\n", "csv"),
        ("a.csv", 'x\t"a,b;c,d"\ty\n1\t2\t3\n4\t5\t6\n', "csv"),
        ("a.txt", "x\tz\ty\n1\t2\t3\n4\t5\t6\n", "csv"),
        ("a.txt", "1\t2\t3\n4\t5\t6\n", "csv"),
        ("a.txt", "1 2\t3\n4 5\t6\n", "space"),
        ("a.csv", '"x, one";"z, two";y\n1;2;3\n4;5;6\n', "csv"),
        ("a.tsv", "1,2,3\n4,5,6\n", "csv"),
        ("a.tsv", "x, x, x\tz\ty\n1\t2\t3\n4\t5\t6\n", "csv"),
    ],
)
def test_separator__is_seen_from_the_first_line(name, text, form, tmp_path):
    (tmp_path / name).write_text(text)
    source = source_of([tmp_path / name])
    assert source.format == form
    prepare_file(tmp_path / "store", "x", tmp_path / name)
    rows, labels = dense_rows(tmp_path / "store")
    assert (rows.tolist(), labels.tolist()) == ([[1, 2], [4, 5]], [3, 6])


def test_column_of_texts__is_one_whose_first_value_that_is_there_is_a_text(tmp_path):
    (tmp_path / "a.csv").write_text("a,b,c,y\n?,?,?,1\n?,2,?,0\nred,?,?,1\n")
    reading = Reading(one_hot=True, missing="mean", target="y")
    assert source_of([tmp_path / "a.csv"], reading).choice.texts == (0,)


def test_files_with_other_separators__are_refused_as_one(tmp_path):
    (tmp_path / "a.csv").write_text("a;b\n1;2\n")
    (tmp_path / "b.csv").write_text("a,b\n1,2\n")
    with pytest.raises(WrongInput, match=r"b\.csv"):
        prepare_file(tmp_path / "store", "x", [tmp_path / "a.csv", tmp_path / "b.csv"])
