"""Site files: those that come with the package, and the user's own; read and checked."""

import re
from pathlib import Path

import yaml
from pydantic import ValidationError

from cluster.site import KINDS, JobSite, KubernetesSite
from koco_stream.errors import WrongInput, nearest

HERE = Path(__file__).parent


def shipped() -> dict[str, Path]:
    """The site files that come with the package, by name."""
    return {path.stem: path for path in sorted(HERE.glob("*.yaml"))}


def may_be_site(name: str) -> bool:
    """Whether the name is one that comes with the package, or looks like a path."""
    return name in shipped() or name.endswith((".yaml", ".yml")) or "/" in name


def site_file(name: str) -> Path:
    """The file of the site called `name`: one that comes with the package, or a path to the user's
    own. Raises `WrongInput`.
    """
    known = shipped()
    if name in known:
        return known[name]
    if not may_be_site(name):
        raise WrongInput(
            f"no site is called {name!r} (your own file is named by its path,"
            f" ./mine.yaml){nearest(name, list(known))}"
        )
    path = Path(name)
    if not path.is_file():
        raise WrongInput(f"{name}: there is no such site file; copy one of {HERE} and change it")
    return path


def read_site(name: str) -> JobSite | KubernetesSite:
    """The site called `name`, checked. Raises `WrongInput` with the file, the key and the
    remedy.
    """
    path = site_file(name)
    try:
        text = path.read_text(encoding="utf-8")
        content = yaml.safe_load(text)
    except (OSError, UnicodeDecodeError) as error:
        raise WrongInput(f"{path}: the site file cannot be read: {error}") from None
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        line = f", line {mark.line + 1}, column {mark.column + 1}" if mark else ""
        raise WrongInput(
            f"{path}{line}: this is not YAML: {getattr(error, 'problem', error)}"
        ) from None
    if not isinstance(content, dict):
        raise WrongInput(
            f"{path}: a site file has keys and values, such as kind: slurm; see {HERE} for examples"
        )
    kind = content.get("kind")
    if not isinstance(kind, str) or kind not in KINDS:
        found = (
            f"{kind!r} is no kind of site{nearest(str(kind), list(KINDS))}"
            if "kind" in content
            else _missing(list(KINDS))
        )
        raise WrongInput(f"{_spot(path, text, 'kind')}: {found}")
    try:
        return KINDS[kind].model_validate(content)
    except ValidationError as error:
        raise WrongInput(_explain(path, text, KINDS[kind], error)) from None


def _missing(choice: list[str]) -> str:
    return f"this key is missing; give one of {', '.join(choice)}"


def _spot(path: Path, text: str, *keys: str) -> str:
    """`FILE, line N, workers.max`: where a key is written; without the line if it is not there."""
    line = next(
        (
            n
            for n, line in enumerate(text.splitlines(), 1)
            if keys and re.match(rf"[\s{{]*{re.escape(keys[-1])}\s*:", line)
        ),
        None,
    )
    return f"{path}{f', line {line}' if line else ''}{', ' if keys else ''}{'.'.join(keys)}"


def _explain(
    path: Path, text: str, model: type[JobSite | KubernetesSite], error: ValidationError
) -> str:
    """The first of pydantic's complaints, with the line and the nearest name: a key that is unknown
    before one that is missing.
    """
    first = min(error.errors(), key=lambda complaint: complaint["type"] != "extra_forbidden")
    keys = [str(key) for key in first["loc"] if isinstance(key, str) and key != "[key]"]
    spot = _spot(path, text, *keys)
    if first["type"] == "missing":
        return f"{spot}: this key is missing; see {HERE} for examples"
    if first["type"] == "extra_forbidden":
        known = (
            ["min", "max"] if keys[0] == "workers" and len(keys) > 1 else list(model.model_fields)
        )
        return f"{spot}: unknown key{nearest(keys[-1], known)}"
    said = first["msg"].removeprefix("Value error, ")
    found = first.get("input")
    return f"{spot}: {said[0].lower()}{said[1:]}" + (
        "" if isinstance(found, dict | list | BaseException) else f", not {found!r}"
    )
