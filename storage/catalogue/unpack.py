"""Extraction of one file from a zip archive."""

import hashlib
import zipfile
import zlib
from pathlib import Path

from koco_stream.errors import WrongInput
from koco_stream.io.files import written_atomically

CHUNK = 1 << 20
# zipfile raises the last two for an unknown compression and for an encrypted file
DAMAGE = (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError)


def unpack(
    archive: Path, name: str, target: Path, expected_sha256: str | None = None, skip_lines: int = 0
) -> Path:
    """Extract the file `name` of an archive to a file, atomically; zip verifies its checksum.

    Parameters
    ----------
    archive : Path
        The archive.
    name : str
        Path of the file in the archive.
    target : Path
        File to write; also returned.
    expected_sha256 : str, optional
        Checksum of the file, if known.
    skip_lines : int
        Number of leading lines that are left out.

    Raises
    ------
    WrongInput
        If the archive is damaged, if the file is missing, or if its checksum is wrong.
    """
    digest = hashlib.sha256()
    try:
        with (
            written_atomically(target) as temporary,
            zipfile.ZipFile(archive) as opened,
            opened.open(name) as inside,
            temporary.open("wb") as out,
        ):
            for _ in range(skip_lines):
                digest.update(inside.readline())
            while chunk := inside.read(CHUNK):
                digest.update(chunk)
                out.write(chunk)
            if expected_sha256 not in (None, digest.hexdigest()):
                raise WrongInput(
                    f"{archive}: {name} has the sha256 {digest.hexdigest()}, but"
                    f" {expected_sha256} is expected"
                )
    except KeyError:
        raise WrongInput(
            f"{archive} does not have the file {name}; the archive is another version"
        ) from None
    except DAMAGE as error:
        raise WrongInput(
            f"{archive}: damaged, or not an archive that can be read ({error}); delete it and fetch"
            " it again"
        ) from None
    return target
