"""Messages are whole."""

import ast

from tests.helpers.project import ROOT

FOLDERS = ("cluster", "flows", "koco_stream", "storage", "tests")
WITH_DOCSTRING = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)


def alone(tree):
    """The lines of strings that are statements and no docstrings: nothing has their text."""
    for node in ast.walk(tree):
        for field in ("body", "orelse", "finalbody"):
            first = field == "body" and isinstance(node, WITH_DOCSTRING)
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
