"""The claims of a benchmark that do not hold, from the file of `python -m tests.bench --json`."""

import json
from pathlib import Path
from typing import Any

from koco_stream.errors import WrongInput


def broken_claims(file: str) -> list[str]:
    """A sentence for each claim that was measured on a quiet machine and does not hold.

    Raises `WrongInput` for a file that cannot be read or is no such file.
    """
    try:
        claims = json.loads(Path(file).read_text(encoding="utf-8"))["claims"]
        return [_words(**claim) for claim in claims if _is_broken(claim)]
    except OSError as error:
        raise WrongInput(f"{file} cannot be read: {error.strerror}") from error
    except (ValueError, TypeError, KeyError) as error:
        raise WrongInput(
            f"{file} has no claims of a benchmark ({type(error).__name__}: {error}); write it with"
            " python -m tests.bench --json FILE"
        ) from error


def _is_broken(claim: dict[str, Any]) -> bool:
    return claim["holds"] is False and not claim["disturbed"]


def _words(claim: str, bound: float, measured: float, **_: Any) -> str:
    most = "least" if bound > 0 else "most"
    return f"{claim}: {measured:.4g}, and not at {most} {abs(bound):g}"
