"""The manifests are what Kubernetes understands, and what they start can do no more than needed."""

import re
import tomllib

import pytest
import yaml

from tests.helpers.project import ROOT

HERE = ROOT / "cluster" / "deploy"
VERSION = "1.34"
DOCUMENTS = [
    pytest.param(document, id=f"{file.stem}-{document['kind']}-{document['metadata']['name']}")
    for file in sorted((HERE / "kubernetes").glob("*.yaml"))
    for document in yaml.safe_load_all(file.read_text())
]


PODS = [
    pytest.param(parameter.values[0]["spec"]["template"]["spec"], id=parameter.id)
    for parameter in DOCUMENTS
    if "template" in parameter.values[0].get("spec", {})
]


@pytest.mark.long
@pytest.mark.parametrize("document", DOCUMENTS)
def test_manifest__is_valid(document):
    schemas = pytest.importorskip(
        "kubernetes_validate", reason="needs the schemas: pip install kubernetes-validate"
    )
    schemas.validate(document, VERSION, strict=True)


@pytest.mark.parametrize("pod", PODS)
def test_pod__is_not_root_and_has_limits(pod):
    assert pod["automountServiceAccountToken"] is False
    assert pod["securityContext"]["runAsNonRoot"] is True
    assert pod["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
    assert not {"hostNetwork", "hostPID", "hostIPC"} & set(pod)
    confined = {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }
    for container in [*pod["containers"], *pod.get("initContainers", [])]:
        assert {"cpu", "memory"} <= set(container["resources"]["limits"])
        assert container["securityContext"].items() >= confined.items()
        assert not any("hostPort" in port for port in container.get("ports", []))


@pytest.mark.parametrize("document", DOCUMENTS)
def test_manifest__has_probes_no_secret_and_no_service_for_strangers(document):
    assert document["kind"] not in ("Secret", "Ingress")
    if document["kind"] in ("Deployment", "StatefulSet"):
        for container in document["spec"]["template"]["spec"]["containers"]:
            assert {"readinessProbe", "livenessProbe"} <= set(container)
    if document["kind"] == "Service":
        assert document["spec"].get("type", "ClusterIP") == "ClusterIP"
    for variable in variables(document):
        secret = re.search("PASSWORD|AUTH|SECRET|CONNECTION_URL", variable["name"])
        assert ("valueFrom" in variable) == bool(secret), variable


def variables(content):
    """All environment variables that a manifest sets."""
    if isinstance(content, dict):
        yield from content.get("env", [])
        content = list(content.values())
    if isinstance(content, list):
        for inner in content:
            yield from variables(inner)


def test_image__has_the_packages_and_the_tested_versions():
    text = (HERE / "Containerfile").read_text()
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    packages = project["tool"]["setuptools"]["packages"]["find"]["include"]
    wanted = [f"COPY {name.rstrip('*')} {name.rstrip('*')}\n" for name in packages]
    wanted += ["-c constraints.txt", "USER 10001"]
    assert [words for words in wanted if words not in text] == []
