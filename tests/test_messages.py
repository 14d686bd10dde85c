"""Messages are whole, and names are plain words."""

import ast
import re

from tests.helpers.project import ROOT

FOLDERS = ("cluster", "flows", "koco_stream", "storage", "tests")


def alone(tree):
    """The lines of strings that are statements and no docstrings: nothing has their text."""
    for node in ast.walk(tree):
        for field in ("body", "orelse", "finalbody"):
            first = field == "body" and isinstance(
                node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef
            )
            lines = getattr(node, field, None)
            for line in lines[first:] if isinstance(lines, list) else ():
                value = line.value if isinstance(line, ast.Expr) else None
                text = getattr(value, "value", None)
                if isinstance(value, ast.JoinedStr) or isinstance(text, str):
                    yield line.lineno


def test_no_string_is_left_alone__where_a_message_was_meant_to_go_on():
    assert list(alone(ast.parse("x = 'a'\n' b'"))) == [2]
    assert list(alone(ast.parse("def f():\n    'it'\n    x = 'a'\n    f' {x}'"))) == [4]
    files = [file for folder in FOLDERS for file in sorted((ROOT / folder).rglob("*.py"))]
    assert len(files) > 300
    found = [(str(file), line) for file in files for line in alone(ast.parse(file.read_text()))]
    assert found == []


GONE = re.compile(r"bring|settle|spoilt|begun|turned|products|Lines?|unbound|kept_\w*")
OFFSET = re.compile(r"\w+ \* W \+ .+")  # a place in a flat array of small vectors, each of length W


def names_in(tree):
    """What a file's functions, classes, arguments, attributes and other names are called."""
    for node in ast.walk(tree):
        for field in ("id", "attr", "arg", "name", "asname"):
            if isinstance(name := getattr(node, field, None), str):
                yield node.lineno, name


def test_gone_names__name_nothing_and_small_vectors_have_names():
    assert [*map(GONE.fullmatch, ("kept", "Line_", "_begun"))] == [None] * 3
    found = []
    for file in (file for folder in FOLDERS[:-1] for file in sorted((ROOT / folder).rglob("*.py"))):
        tree = ast.parse(file.read_text())
        place = str(file.relative_to(ROOT))
        found += [(place, *one) for one in names_in(tree) if GONE.fullmatch(one[1])]
        if "learners" in file.parts:
            places = (node for node in ast.walk(tree) if isinstance(node, ast.Subscript))
            texts = ((node.lineno, ast.unparse(node.slice)) for node in places)
            found += [(place, *one) for one in texts if OFFSET.fullmatch(one[1])]
    assert found == []
