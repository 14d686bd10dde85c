"""Containers for tests: a Podman whose images, containers and network are all in one folder, the
image of this project, and a base for it that is made from Debian's packages.
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

import yaml

from tests.helpers.project import ROOT

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
SOURCES = ("pyproject.toml", "setup.py", "constraints.txt", "README.md", "LICENSE")
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
            file = folder / f"{variable.lower()}.toml"
            file.write_text(text.format(folder=folder))
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
        for name in SOURCES:
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
