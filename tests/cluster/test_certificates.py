"""Certificates: private, short-lived, refused with the remedy when they are not; addresses that
others reach need them.
"""

import socket
import ssl
import stat
import subprocess
import threading
from contextlib import suppress
from datetime import UTC, datetime, timedelta

import pytest

from cluster.certificates import check_folder, make_certificates
from cluster.clusters import cluster_named
from koco_stream.errors import WrongInput

TLS = "tls://127.0.0.1:8786"


@pytest.fixture
def folder(tmp_path):
    make_certificates(tmp_path / "certificates", ["10.0.0.1", "node.example"])
    return tmp_path / "certificates"


def test_folder__is_for_its_owner_only_and_never_written_twice(folder):
    modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in folder.iterdir()}
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    # the authority's certificate and three pairs; not the authority's key
    assert list(modes.values()) == [0o600] * 7
    with pytest.raises(WrongInput, match="exists already"):
        make_certificates(folder)


def test_they_are_valid__for_a_week_and_by_openssl_s_strict_rules(folder):
    signed = [folder / f"{role}.pem" for role in ("scheduler", "worker", "client")]
    words = ["openssl", "verify", "-x509_strict", "-CAfile", folder / "authority.pem", *signed]
    assert subprocess.run(words).returncode == 0
    words = ["openssl", "x509", "-in", folder / "worker.pem", "-noout", "-text"]
    text = subprocess.run(words, capture_output=True, text=True).stdout
    assert "IP Address:10.0.0.1" in text
    assert "DNS:node.example" in text
    ends = make_certificates(folder.with_name("more"))
    assert 6.9 < (ends - datetime.now(UTC)) / timedelta(days=1) < 7.1


@pytest.mark.parametrize("name", ["client-key.pem", "worker-key.pem", "."])
def test_files_that_others_can_read__are_refused(folder, name):
    (folder / name).chmod(0o750 if name == "." else 0o640)
    with pytest.raises(WrongInput, match=r"other users can read .* \(mode 0.* chmod -R go= "):
        cluster_named(TLS, 0, 0, str(folder))


def test_expired__is_said_with_the_date(tmp_path):
    make_certificates(tmp_path / "old", days=-1 / 24 / 12)
    said = r"expired on 20.* UTC; create new ones with koco cluster certificates NEW_FOLDER"
    with pytest.raises(WrongInput, match=said):
        cluster_named(TLS, 0, 0, str(tmp_path / "old"))


def test_folder_that_is_not_there_or_not_whole(folder, tmp_path):
    def refused(said, *where):
        with pytest.raises(WrongInput, match=said):
            check_folder(*where)

    refused("there is no folder", tmp_path / "nowhere")
    (folder / "scheduler-key.pem").unlink()
    check_folder(folder)  # a client needs no other's key
    (folder / "client-key.pem").unlink()
    refused(r"has no client-key\.pem", folder)
    (folder / "worker.pem").write_text("nothing")
    refused("is not a certificate", folder, "worker")


@pytest.mark.parametrize("text", ["other's", "", "no key"])
def test_key__that_is_not_the_certificates__is_refused(text, folder, tmp_path):
    make_certificates(tmp_path / "other")
    other = (tmp_path / "other" / "client-key.pem").read_text()
    (folder / "client-key.pem").write_text(other if text == "other's" else text)
    with pytest.raises(WrongInput, match=r"client-key\.pem is not the key of client\.pem; use a"):
        cluster_named(TLS, 0, 0, str(folder))


@pytest.mark.parametrize("plain", [True, False])
def test_listener__without_tls_or_of_another_authority__is_refused_at_once(plain, folder, tmp_path):
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    make_certificates(tmp_path / "other")
    own = [tmp_path / "other" / f"scheduler{ending}.pem" for ending in ("", "-key")]
    context.load_cert_chain(*own)
    with socket.create_server(("127.0.0.1", 0)) as server:

        def answer():
            accepted, _ = server.accept()
            with accepted, suppress(OSError):
                if plain:
                    accepted.sendall(b"a scheduler without TLS speaks first")
                else:
                    context.wrap_socket(accepted, server_side=True).close()

        answering = threading.Thread(target=answer)
        answering.start()
        address = f"tls://127.0.0.1:{server.getsockname()[1]}"
        cluster = cluster_named(address, 0, 0, str(folder))
        with pytest.raises(WrongInput, match=f"who listens at {address} has no certificate of"):
            cluster().__enter__()
        answering.join()


def test_address__that_others_reach_is_used_without_certificates_only_if_that_is_said():
    assert cluster_named("tcp://node.example:8786", 0, 0, insecure=True) is not None
    with pytest.raises(WrongInput, match="--certificates or KOCO_CERTIFICATES"):
        cluster_named(TLS, 0, 0)


def test_command__says_how_long_and_finds_the_folder_in_the_environment(
    koco, small_store, tmp_path, monkeypatch
):
    made = koco("cluster", "certificates", tmp_path / "new", "--host", "127.0.0.1")
    assert made.exit_code == 0, made.stderr
    assert "(7 days)" in made.stdout
    assert "--dashboard-address 127.0.0.1:" in made.stdout
    (tmp_path / "new" / "client-key.pem").chmod(0o644)
    monkeypatch.setenv("KOCO_CERTIFICATES", str(tmp_path / "new"))
    spec = tmp_path / "try.toml"
    spec.write_text('name = "try"\n[[dataset]]\nname = "real"\n[[learner]]\nname = "OGD"\n')
    sweep = koco("sweep", spec, "--store", small_store, "--cluster", TLS)
    assert sweep.exit_code == 2
    assert "other users can read" in sweep.stderr
    assert "Traceback" not in sweep.stderr
