"""Programs that tests need and pip does not have, from Debian's packages: installed when a test
asks for them, where that is possible.
"""

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterable
from pathlib import Path

from koco_stream.io.files import locked

INSTALLS_WITHIN = 400.0  # seconds


def installed(packages: Iterable[str]) -> str | None:
    """Install packages; None if they are there now, else why they are not. Two at once wait for
    each other.
    """
    wanted = sorted(set(packages))
    if not wanted:
        return None
    if os.getuid() != 0 or shutil.which("apt-get") is None:
        return f"needs {', '.join(wanted)}: apt-get install {' '.join(wanted)}"
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    commands = [
        ["apt-get", "update", "-qq"],
        ["apt-get", "install", "-y", "-qq", "--no-install-recommends", *wanted],
    ]
    with locked(Path(tempfile.gettempdir()) / "koco-tests-apt.lock"):
        try:
            for words in commands:
                subprocess.run(
                    words, env=environment, check=True, capture_output=True, timeout=INSTALLS_WITHIN
                )
        except (subprocess.SubprocessError, OSError) as error:
            return f"needs {', '.join(wanted)}, which could not be installed: {error}"
    return None
