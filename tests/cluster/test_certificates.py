"""Certificates: private, short-lived, refused with the remedy when they are not; addresses that
others reach need them.
"""

import stat
import subprocess
from datetime import UTC, datetime

import pytest
from distributed import Client

from cluster.certificates import check_folder, key_file, make_certificates, security_of
from cluster.clusters import cluster_named
from cluster.commands import tls_words
from koco_stream.errors import WrongInput
from tests.helpers.dask_processes import processes
from tests.helpers.project import command, environment, free_port

TLS = "tls://127.0.0.1:8786"


@pytest.fixture
def folder(tmp_path):
    make_certificates(tmp_path / "certificates", ["10.0.0.1", "node.example"])
    return tmp_path / "certificates"


def test_folder__is_for_its_owner_only_and_never_written_twice(folder):
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert {stat.S_IMODE(path.stat().st_mode) for path in folder.iterdir()} == {0o600}
    assert (
        len(list(folder.iterdir())) == 7
    )  # the authority's certificate, three pairs; not the authority's key
    with pytest.raises(WrongInput, match="is there already"):
        make_certificates(folder)


def test_they_are_valid__for_a_week_and_by_openssl_s_strict_rules(folder):
    authority = ["-CAfile", folder / "authority.pem"]
    for role in ("scheduler", "worker", "client"):
        words = ["openssl", "verify", "-x509_strict", *authority, folder / f"{role}.pem"]
        assert subprocess.run(words, capture_output=True).returncode == 0
    text = subprocess.run(
        ["openssl", "x509", "-in", folder / "worker.pem", "-noout", "-text"],
        capture_output=True,
        text=True,
    ).stdout
    assert "IP Address:10.0.0.1" in text
    assert "DNS:node.example" in text
    assert (
        6.9
        < (make_certificates(folder.with_name("more")) - datetime.now(UTC)).total_seconds() / 86400
        < 7.1
    )


@pytest.mark.parametrize("name", ["client-key.pem", "worker-key.pem", "."])
def test_files_that_others_can_read__are_refused(folder, name):
    (folder / name).chmod(0o750 if name == "." else 0o640)
    with pytest.raises(WrongInput, match=r"others can read .* \(mode 0.* chmod -R go= "):
        cluster_named(TLS, 0, 0, str(folder))


def test_expired__is_said_with_the_date(tmp_path):
    make_certificates(tmp_path / "old", days=-1 / 24 / 12)
    with pytest.raises(
        WrongInput,
        match=r"expired on 20.* UTC; make new ones with koco cluster certificates NEW_FOLDER",
    ):
        cluster_named(TLS, 0, 0, str(tmp_path / "old"))


def test_folder_that_is_not_there_or_not_whole(folder, tmp_path):
    with pytest.raises(WrongInput, match="there is no folder"):
        check_folder(tmp_path / "nowhere")
    key_file(folder, "scheduler").unlink()
    check_folder(folder)  # a client needs no other's key
    key_file(folder, "client").unlink()
    with pytest.raises(WrongInput, match=r"has no client-key\.pem"):
        check_folder(folder)
    (folder / "worker.pem").write_text("nothing")
    with pytest.raises(WrongInput, match="is not a certificate"):
        check_folder(folder, "worker")


def test_host_that_is_none(tmp_path):
    with pytest.raises(WrongInput, match="neither an address nor a host name"):
        make_certificates(tmp_path / "new", ["knödel"])
    assert not (tmp_path / "new").exists()


def test_address__that_others_reach_is_used_without_certificates_only_if_that_is_said():
    assert cluster_named("tcp://node.example:8786", 0, 0, insecure=True) is not None
    with pytest.raises(WrongInput, match="--certificates or KOCO_CERTIFICATES"):
        cluster_named(TLS, 0, 0)


def test_command__says_how_long_and_finds_the_folder_in_the_environment(tmp_path, small_store):
    made = subprocess.run(
        command("cluster", "certificates", "new", "--host", "127.0.0.1"),
        env=environment(),
        cwd=tmp_path,
        capture_output=True,
        text=True,
    )
    assert made.returncode == 0, made.stderr
    assert "(7 days)" in made.stdout
    assert "--dashboard-address 127.0.0.1:" in made.stdout
    (tmp_path / "new" / "client-key.pem").chmod(0o644)
    spec = tmp_path / "try.toml"
    spec.write_text('name = "try"\n[[dataset]]\nname = "real"\n[[learner]]\nname = "OGD"\n')
    sweep = subprocess.run(
        command("sweep", spec, "--store", small_store, "--cluster", TLS),
        env=environment(KOCO_CERTIFICATES=str(tmp_path / "new")),
        capture_output=True,
        text=True,
    )
    assert sweep.returncode == 2
    assert "others can read" in sweep.stderr
    assert "Traceback" not in sweep.stderr


def test_scheduler__admits_its_own_client_only(folder, tmp_path):
    other = tmp_path / "other"
    make_certificates(other)
    with processes(tmp_path / "processes") as started:
        address = f"tls://127.0.0.1:{free_port()}"
        where = ["--host", "127.0.0.1", "--port", address.rpartition(":")[2], "--protocol", "tls"]
        started.scheduler(*where, *tls_words(folder, "scheduler"))
        with Client(address, security=security_of(folder), set_as_default=False) as client:
            assert client.status == "running"
        with pytest.raises(OSError):  # noqa: PT011  (Dask's message is its own)
            Client(address, security=security_of(other), timeout=3, set_as_default=False)
