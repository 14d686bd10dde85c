"""A user's Python files: what belongs together, its hash, and its import."""

import ast
import importlib.util
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

from koco_stream.errors import WrongInput
from koco_stream.io.files import json_text, text_hash


def source_files(path: Path) -> dict[str, str]:
    """The texts, by path, of a learner's file and of what it imports beside it."""
    files: dict[str, str] = {}
    waiting = [path.name]
    while waiting:
        name = waiting.pop()
        if name in files:
            continue
        try:
            files[name] = (path.parent / name).read_text(encoding="utf-8")
            imports = _imports(ast.parse(files[name]), Path(name).parent)
        except FileNotFoundError:
            raise WrongInput(
                f"there is no file {path}; a file is named relative to the sweep file"
            ) from None
        except (OSError, UnicodeDecodeError) as error:
            raise WrongInput(f"{path.parent / name} cannot be read: {error}") from None
        except SyntaxError as error:
            raise WrongInput(
                f"{path.parent / name}:{error.lineno}: {error.msg}: it is not Python"
            ) from None
        waiting += [
            found
            for module in imports
            if Path(module).parts[:1] != ("koco_stream",)  # beside the file in a clone of it
            for found in (f"{module}.py", f"{module}/__init__.py")
            if (path.parent / found).is_file()
        ]
    return dict(sorted(files.items()))


def _imports(tree: ast.AST, inside: Path) -> Iterator[str]:
    for node in ast.walk(tree):
        if not isinstance(node, ast.Import | ast.ImportFrom):
            continue
        level = getattr(node, "level", 0)
        base = inside.joinpath(*[".."] * (level - 1)) if level else Path()
        of = [node.module or ""] if isinstance(node, ast.ImportFrom) else []
        for name in (*of, *(".".join([*of, alias.name]).lstrip(".") for alias in node.names)):
            parts = name.split(".")
            for end in range(1, len(parts) + 1):  # a package's own file is imported as well
                yield Path(os.path.normpath(base.joinpath(*parts[:end]))).as_posix()


def hash_of(files: dict[str, str]) -> str:
    """A hash (16 hexadecimal digits) of a learner's files."""
    return text_hash(json_text(sorted(files.items())))[:16]


def import_file(name: str, path: Path) -> ModuleType:
    """Import a file as the module `name`, and what it imports beside it."""
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = sys.modules[name] = importlib.util.module_from_spec(spec)
    sys.path.insert(0, str(path.parent))
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[name]
        raise
    finally:
        sys.path.remove(str(path.parent))
    return module
