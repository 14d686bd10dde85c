"""Remedies: each option that a message names leads on, until the file is prepared."""

import re
import shlex

import pytest
from click.testing import CliRunner

from flows.cli import koco
from koco_stream.streams.manifest import load_manifest

WORD = r"""(?:'[^']*'|"[^"]*"|[^\s'";()])+"""
OPTION = re.compile(
    r"(--(?:no-)?header|--(?:zero|one)-based|--one-hot)(?![-\w])"
    rf"|--(?:categorical|drop|format|labels|missing|numeric|target) {WORD}"
)


def prepared(file, options):
    """None if a file is prepared with these options, or else the message."""
    given = ["--store", "store", "--workers", "0", "--replace", "--from", str(file)]
    done = CliRunner().invoke(koco, ["prepare", "x", *given, *options])
    assert done.exit_code in (0, 2), done.output
    said = " ".join(done.stderr.split())  # it was wrapped
    return said.partition("koco: ")[2] if done.exit_code else None


def offered(said):
    """The options that a message names, as a shell reads them."""
    return [shlex.split(found[0]) for found in OPTION.finditer(said)]


def follow(file, options=()):
    """Follow each remedy of each message, to its end."""
    said = prepared(file, options)
    if said is not None:
        new = [more for more in offered(said) if not {*more} <= {*options}]
        assert new, f"nothing to follow after {options}: {said}"
        assert len(options) < 9, f"no end: {said}"
        for more in new:
            follow(file, [*options, *more])


NUMERIC = ["--categorical a", "--numeric a", "--missing mean"]
NUMBERS = "a,y\n" + "".join(f"{k},{k % 2}\n" for k in range(120))
STREETS = "a,b,y\n" + "".join(f"s{k},1,{k % 2}\n" for k in range(101))


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("streets.csv", STREETS),
        ("names.svm", "it's 1:1\n2 1:1\na=b 2:1\n$HOME 2:2\n*.csv 1:1\n"),
        ("names.vw", "spam | 1:1\nham | 2:1\n1 | 1:1\n"),
        ("dates.csv", "t,x,y\n3/14/2024,1,1\n12/1/2024,2,2\n"),
        ("target.csv", "x,t\n1,2024-03-14\n2,2024-03-15\n"),
        ("texts.csv", "a,b\nc,d\na,d\n"),
        ("zero.svm", "1 0:1\n-1 2:1\n"),
        ("blanks.txt", "x1 x2 y\n1 2 1\n2 3 -1\n"),
        ("twice.csv", "a,b,a,y\n1,2,3,1\n2,3,4,-1\n"),
        ("low.csv", "a b,b,y\n1,2,1\nlow,2,-1\n3,?,1\n"),
        ("mark.csv", "a,y\n1,yes\n2,?\n3,no\n"),
        ("numbers.csv", "0,1,2\n5,6,1\n7,9,2\n"),
    ],
)
def test_option__that_a_message_names_leads_to_a_prepared_file(name, text, inside):
    (inside / name).write_text(text)
    assert prepared(name, [])
    follow(name)


@pytest.mark.parametrize(
    ("name", "text", "said", "options"),
    [
        ("later.csv", NUMBERS.replace("\n60,", "\nlow,"), "--numeric a --missing mean", NUMERIC),
        ("first.csv", NUMBERS.replace("\n0,", "\nunknown,"), "--numeric a --missing mean", NUMERIC),
        ("class.csv", "a,y\n1,b\n2,\n3,c\n", "no class", ["--missing drop"]),
        ("streets.csv", STREETS, "more than 100 different", ["--drop a", "--one-hot", "--one-hot"]),
        ("labels.svm", "1,3 1:1\n2 2:1\n", "give the row one label, without commas", []),
        ("blank.svm", "1, 3 1:1\n2 2:1\n", "give the row one label, without commas", []),
        (
            "names.svm",
            "red,blue 1:1\nred,green 2:1\n",
            "give the row one label, without commas",
            [],
        ),
        ("none.svm", "1:1 2:1\n3:1\n", "write one at the beginning of the line", []),
        ("large.svm", "1 5000000000:1\n-1 3:1\n", "number the features anew", []),
        ("bars.txt", "1.5|2.5|1\n2.5|3.5|-1\n", "write commas or tabs instead", []),
        ("bars.txt", "a b|c|y\n2.5|3.5|-1\n", "write commas or tabs instead", []),
        ("bars.txt", "a | b | y\n2.5 | 3.5 | -1\n", "write commas or tabs instead", []),
        ("words.txt", "hello\nworld\n", "write a row a line, with commas", []),
        ("plain.csv.gz", "1,2,1\n2,3,-1\n", "name it plain.csv if it is not compressed", []),
    ],
)
def test_message__names_the_options_that_help_and_no_other(name, text, said, options, inside):
    (inside / name).write_text(text)
    found = prepared(name, [])
    assert said in found
    assert [" ".join(words) for words in offered(found)] == options


@pytest.mark.parametrize("missing", [(), ("--missing", "drop"), ("--missing", "mean")])
@pytest.mark.parametrize(
    ("text", "target"), [("1,2,1,\n2,3,-1,\n", "3"), ("a,b,y\n1,?,1\n2,,-1\n", "'y'")]
)
def test_column_without_a_value__is_left_out_and_is_no_target(text, target, missing, inside):
    (inside / "a.csv").write_text(text)
    assert prepared("a.csv", missing) is None
    manifest = load_manifest("store", "x")
    assert f"target: column {target}" in manifest.source["columns"]
    assert any(said.endswith("(no value)") for said in manifest.transformations)
    empty = {"3": "4", "'y'": "b"}[target]
    assert "has no value; name another --target" in prepared("a.csv", [*missing, "--target", empty])
