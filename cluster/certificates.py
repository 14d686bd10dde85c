"""Certificates for a cluster: an authority made for the purpose, and a key for the scheduler, the
workers and the client.

The authority's own key is forgotten as soon as it has signed, so that the folder can admit nobody
else; when the certificates expire, a new folder takes the old one's place. Dask's scheduler,
workers and clients admit whoever shows a certificate of the same authority.
"""

import os
import socket
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from koco_stream.errors import WrongInput

AUTHORITY = "authority.pem"
ROLES = ("scheduler", "worker", "client")
DAYS = 7
EARLIER = timedelta(minutes=10)  # valid from: the clocks of a cluster differ


def certificate_file(folder: Path, role: str) -> Path:
    """Where the certificate of a role is."""
    return folder / f"{role}.pem"


def key_file(folder: Path, role: str) -> Path:
    """Where the private key of a role is."""
    return folder / f"{role}-key.pem"


def make_certificates(folder: Path, hosts: Sequence[str] = (), days: float = DAYS) -> datetime:
    """Write certificates for these host names and addresses, and this machine's, into the new
    folder `folder`; returns until when they are valid.

    The folder is for its owner only (0700), and so are the files (0600). Raises `WrongInput` if the
    folder is there and not empty.
    """
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise WrongInput(
            f"{folder} is there already; name a new folder, or remove it first: certificates are"
            " never replaced one by one"
        )
    names = x509.SubjectAlternativeName(
        [
            _general_name(host)
            for host in dict.fromkeys([*hosts, "localhost", "127.0.0.1", socket.gethostname()])
        ]
    )
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    folder.chmod(0o700)
    begin = datetime.now(UTC) - EARLIER
    end = datetime.now(UTC) + timedelta(days=days)
    authority_key = ec.generate_private_key(ec.SECP256R1())
    signs = x509.KeyUsage(
        False,
        False,
        False,
        False,
        False,
        key_cert_sign=True,
        crl_sign=True,
        encipher_only=False,
        decipher_only=False,
    )
    authority = (
        _begun("cluster", authority_key, begin, end)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(signs, critical=True)
        .sign(authority_key, hashes.SHA256())
    )
    _write(folder / AUTHORITY, authority.public_bytes(serialization.Encoding.PEM))
    issuer = x509.AuthorityKeyIdentifier.from_issuer_public_key(authority_key.public_key())
    both = x509.ExtendedKeyUsage(
        [ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH]
    )  # a worker listens, and connects
    for role in ROLES:
        key = ec.generate_private_key(ec.SECP256R1())
        certificate = (
            _begun(role, key, begin, end)
            .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
            .add_extension(names, critical=False)
            .add_extension(both, critical=False)
            .add_extension(issuer, critical=False)
            .sign(authority_key, hashes.SHA256())
        )
        _write(certificate_file(folder, role), certificate.public_bytes(serialization.Encoding.PEM))
        private = key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
        _write(key_file(folder, role), private)
    return end


def valid_until(certificate: Path) -> datetime:
    """When a certificate expires. Raises `WrongInput` if it is not one."""
    try:
        return x509.load_pem_x509_certificate(certificate.read_bytes()).not_valid_after_utc
    except ValueError:
        raise WrongInput(
            f"{certificate} is not a certificate; make new ones: koco cluster certificates"
            " NEW_FOLDER"
        ) from None


def _begun(
    name: str, key: ec.EllipticCurvePrivateKey, begin: datetime, end: datetime
) -> x509.CertificateBuilder:
    """A certificate of our authority, as far as all are alike: whose key, and for how long."""
    return (
        x509.CertificateBuilder()
        .subject_name(_name(name))
        .issuer_name(_name("cluster"))
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(begin)
        .not_valid_after(end)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
    )


def _name(name: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, f"koco-stream {name}")])


def _general_name(host: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ip_address(host))
    except ValueError:
        pass
    try:
        return x509.DNSName(host)
    except ValueError:
        raise WrongInput(f"{host!r} is neither an address nor a host name in ASCII") from None


def _write(path: Path, content: bytes) -> None:
    """A new file that only its owner can read, from the beginning."""
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
        file.write(content)
