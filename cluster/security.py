"""How a client shows a scheduler that it may use it: TLS with a folder of certificates, which must
be whole, private and not expired.
"""

import os
import stat
from datetime import UTC, datetime
from pathlib import Path

from distributed import Security

from cluster.certificates import AUTHORITY, ROLES, certificate_file, key_file, valid_until
from koco_stream.errors import WrongInput

MAKE = "koco cluster certificates"


def security_of(folder: Path, role: str = "client") -> Security:
    """What Dask needs to connect as `role`, and no other role's key. Raises `WrongInput` with the
    remedy if the folder cannot be used.
    """
    check_folder(folder, role)
    files = {
        f"tls_{role}_cert": str(certificate_file(folder, role)),
        f"tls_{role}_key": str(key_file(folder, role)),
    }
    return Security(require_encryption=True, tls_ca_file=str(folder / AUTHORITY), **files)


def security_of_all(folder: Path) -> Security:
    """What Dask needs to be scheduler, worker and client at once: for sites, whose scheduler is
    started here. Raises as `security_of`.
    """
    files: dict[str, str] = {}
    for role in ROLES:
        check_folder(folder, role)
        files |= {
            f"tls_{role}_cert": str(certificate_file(folder, role)),
            f"tls_{role}_key": str(key_file(folder, role)),
        }
    return Security(require_encryption=True, tls_ca_file=str(folder / AUTHORITY), **files)


def check_folder(folder: Path, role: str = "client") -> None:
    """Raise `WrongInput` if a file that `role` needs is missing, open to others or expired. Keys of
    other roles need not be there.
    """
    if not folder.is_dir():
        raise WrongInput(
            f"there is no folder {folder}; make one with {MAKE} {folder}, or name another with"
            " --certificates"
        )
    needed = [folder / AUTHORITY, certificate_file(folder, role), key_file(folder, role)]
    missing = [path.name for path in needed if not path.is_file()]
    if missing:
        raise WrongInput(
            f"{folder} has no {', '.join(missing)}; use a folder that {MAKE} made, with all that"
            f" {role} needs"
        )
    keys = [key_file(folder, other) for other in ROLES]
    for path in [folder, *(path for path in keys if path.exists())]:
        found = path.stat()
        if found.st_uid != os.getuid() or stat.S_IMODE(found.st_mode) & 0o077:
            raise WrongInput(
                f"others can read {path} (mode {stat.S_IMODE(found.st_mode):04o}): who has a key"
                f" runs code on the cluster; if nobody has copied it run chmod -R go= {folder},"
                f" else make new certificates: {MAKE} NEW_FOLDER"
            )
    for path in (needed[0], needed[1]):
        end = valid_until(path)
        if end <= datetime.now(UTC):
            raise WrongInput(
                f"the certificate {path} expired on {end:%Y-%m-%d at %H:%M} UTC; make new ones with"
                f" {MAKE} NEW_FOLDER, and start the scheduler and the workers again with them"
            )
