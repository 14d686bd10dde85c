"""The koco command's first step: it checks that the command can be imported."""

import importlib.util
import sys
from pathlib import Path

from koco_stream.extras import remedy

NOT_LINUX = "koco-stream runs on Linux, for which a container or a WSL 2 will do, and not on"


def main() -> None:
    message = _shadowed() if sys.platform == "linux" else f"{NOT_LINUX} {sys.platform}"
    try:
        if not message:
            from flows import cli
    except ModuleNotFoundError as error:
        message = remedy(error)
        if not message:
            raise
    if message:
        print(f"koco: {message}", file=sys.stderr)
        sys.exit(2)
    cli.main()


def _shadowed() -> str | None:
    ours = Path(__file__).parent.parent
    for name in ("cluster", "storage"):
        spec = importlib.util.find_spec(name)
        found = spec and (spec.origin or next(iter(spec.submodule_search_locations or ()), None))
        if found and ours / name not in (Path(found), Path(found).parent):
            return (
                f"Python finds {found} under the name {name}, which koco-stream uses too; rename"
                " it, or take its folder off PYTHONPATH"
            )
    return None


if __name__ == "__main__":
    main()
