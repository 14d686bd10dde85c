"""TLS certificates of a Dask cluster: creating a folder of them, and using it."""

import os
import shlex
import socket
import stat
from collections.abc import Sequence
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID
from distributed import Security

from cluster.site import LOOPBACK_PAGE, PRELOADS, settings_of, variables_of
from koco_stream.errors import WrongInput

AUTHORITY = "authority.pem"
ROLES = ("scheduler", "worker", "client")
EARLIER = timedelta(minutes=10)  # validity starts earlier, because clocks of a cluster differ
MAKE = "koco cluster certificates"


def make_certificates(folder: Path, hosts: Sequence[str] = (), days: float = 7) -> datetime:
    """Only the owner can access the folder (mode 0700) and its files (0600)."""
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise WrongInput(
            f"{folder} exists already; name a new folder, or remove it first: certificates are"
            " not replaced one by one"
        )
    names = x509.SubjectAlternativeName(
        map(_general_name, dict.fromkeys([*hosts, "localhost", "127.0.0.1", socket.gethostname()]))
    )
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    folder.chmod(0o700)
    begin = datetime.now(UTC) - EARLIER
    end = begin + EARLIER + timedelta(days=days)
    authority_key = ec.generate_private_key(ec.SECP256R1())
    signs = x509.KeyUsage(
        digital_signature=False,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=True,
        crl_sign=True,
        encipher_only=False,
        decipher_only=False,
    )
    authority = (
        _builder("cluster", authority_key, begin, end)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(signs, critical=True)
        .sign(authority_key, hashes.SHA256())
    )
    _write(folder / AUTHORITY, authority.public_bytes(serialization.Encoding.PEM))
    issuer = x509.AuthorityKeyIdentifier.from_issuer_public_key(authority_key.public_key())
    # both usages, because a worker listens and connects
    usage = x509.ExtendedKeyUsage(
        [ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH]
    )
    for role in ROLES:
        key = ec.generate_private_key(ec.SECP256R1())
        certificate = (
            _builder(role, key, begin, end)
            .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
            .add_extension(names, critical=False)
            .add_extension(usage, critical=False)
            .add_extension(issuer, critical=False)
            .sign(authority_key, hashes.SHA256())
        )
        private = key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
        _write(folder / f"{role}.pem", certificate.public_bytes(serialization.Encoding.PEM))
        _write(folder / f"{role}-key.pem", private)
    return end


def security_of(folder: Path, roles: Sequence[str] = ("client",)) -> Security:
    """Dask's TLS settings, with the keys of these roles only."""
    for role in roles:
        check_folder(folder, role)
    files = {
        f"tls_{role}_{what}": str(folder / f"{role}{ending}.pem")
        for role in roles
        for what, ending in (("cert", ""), ("key", "-key"))
    }
    return Security(require_encryption=True, tls_ca_file=str(folder / AUTHORITY), **files)


def check_folder(folder: Path, role: str = "client") -> None:
    if not folder.is_dir():
        raise WrongInput(
            f"there is no folder {folder}; create one with {MAKE} {folder}, or name another with"
            " --certificates"
        )
    certificates = [folder / AUTHORITY, folder / f"{role}.pem"]
    needed = [*certificates, folder / f"{role}-key.pem"]
    missing = [path.name for path in needed if not path.is_file()]
    if missing:
        raise WrongInput(
            f"{folder} has no {', '.join(missing)}; use a folder that {MAKE} created, with all"
            f" files that the {role} needs"
        )
    for path in [folder, *folder.glob("*-key.pem")]:
        found = path.stat()
        if found.st_uid != os.getuid() or stat.S_IMODE(found.st_mode) & 0o077:
            raise WrongInput(
                f"other users can read {path} (mode {stat.S_IMODE(found.st_mode):04o}), and"
                " anyone with a key can run code on the cluster; if nobody has copied it, run"
                f" chmod -R go= {folder}, otherwise create new certificates: {MAKE} NEW_FOLDER"
            )
    for path in certificates:
        try:
            certificate = x509.load_pem_x509_certificate(path.read_bytes())
        except ValueError:
            raise WrongInput(
                f"{path} is not a certificate; create new ones: {MAKE} NEW_FOLDER"
            ) from None
        end = certificate.not_valid_after_utc
        if end <= datetime.now(UTC):
            raise WrongInput(
                f"the certificate {path} expired on {end:%Y-%m-%d at %H:%M} UTC; create new ones"
                f" with {MAKE} NEW_FOLDER, and restart the scheduler and the workers with them"
            )
    with suppress(ValueError, TypeError):
        key = serialization.load_pem_private_key(needed[2].read_bytes(), password=None)
        if key.public_key() == certificate.public_key():
            return
    raise WrongInput(
        f"{needed[2]} is not the key of {needed[1].name}; use a folder as {MAKE} made it"
    )


def _builder(
    name: str, key: ec.EllipticCurvePrivateKey, begin: datetime, end: datetime
) -> x509.CertificateBuilder:
    subject, issuer = (
        x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, f"koco-stream {one}")])
        for one in (name, "cluster")
    )
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(begin)
        .not_valid_after(end)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
    )


def _general_name(host: str) -> x509.GeneralName:
    with suppress(ValueError):
        return x509.IPAddress(ip_address(host))
    try:
        return x509.DNSName(host)
    except ValueError:
        raise WrongInput(f"{host!r} is neither an address nor a host name in ASCII") from None


def _write(path: Path, content: bytes) -> None:
    """Only its owner can read the file, from the moment it exists."""
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
        file.write(content)


PORT = 8786
LINKS: dict[str, object] = {
    "distributed.comm.require-encryption": True,
    # a connection may fail for so long without loss; then the worker's cohorts are run by others
    "distributed.comm.timeouts.tcp": "60s",
}


def start_commands(folder: Path, host: str, port: int = PORT) -> dict[str, str]:
    address = f"tls://{host}:{port}"
    scheduler = (
        f"dask scheduler --host {host} --port {port} --protocol tls"
        " --dashboard-address 127.0.0.1:8787"
    )
    worker = (
        f"dask worker {address} --protocol tls --nthreads 1 --nworkers WORKERS"
        " --memory-limit MEMORY --host ITS_ADDRESS"
    )
    return {
        "scheduler": shown(
            {
                **LINKS,
                **settings_of(("distributed.scheduler.worker-saturation",)),
                # the scheduler gives up a worker that sends no heartbeat for so long
                "distributed.scheduler.worker-ttl": "5 minutes",
            },
            [*scheduler.split(), *tls_words(folder, "scheduler")],
        ),
        "worker": shown(
            {**LINKS, **settings_of(("distributed.worker.memory.",))},
            [*worker.split(), *LOOPBACK_PAGE, *PRELOADS, *tls_words(folder, "worker")],
        ),
        "sweep": f"koco sweep SPEC --store STORE --cluster {shlex.quote(address)} --certificates"
        f" {shlex.quote(str(folder))}",
    }


def tls_words(folder: Path, role: str) -> list[str]:
    files = {"ca-file": AUTHORITY, "cert": f"{role}.pem", "key": f"{role}-key.pem"}
    return [word for name, file in files.items() for word in (f"--tls-{name}", str(folder / file))]


def shown(settings: dict[str, object], words: list[str]) -> str:
    variables = [f"{name}={shlex.quote(value)}" for name, value in variables_of(settings).items()]
    return " ".join([*variables, shlex.join(words)])
