"""The manifests are what Kubernetes understands, and what they start can do no more than needed."""

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


def pods():
    """The pods that the manifests describe, with names."""
    for parameter in DOCUMENTS:
        template = parameter.values[0].get("spec", {}).get("template")
        if template:
            yield pytest.param(template["spec"], id=parameter.id)


@pytest.mark.parametrize("document", DOCUMENTS)
def test_manifest__is_valid(document):
    schemas = pytest.importorskip(
        "kubernetes_validate", reason="needs the schemas: pip install kubernetes-validate"
    )
    schemas.validate(document, VERSION, strict=True)


@pytest.mark.parametrize("pod", list(pods()))
def test_pod__is_not_root_and_has_limits(pod):
    assert pod["automountServiceAccountToken"] is False
    assert pod["securityContext"]["runAsNonRoot"] is True
    assert pod["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
    for container in [*pod["containers"], *pod.get("initContainers", [])]:
        assert {"cpu", "memory"} <= set(container["resources"]["limits"])
        assert container["securityContext"]["allowPrivilegeEscalation"] is False
        assert container["securityContext"]["readOnlyRootFilesystem"] is True
        assert container["securityContext"]["capabilities"] == {"drop": ["ALL"]}
        assert not {"hostPort"} & {key for port in container.get("ports", []) for key in port}
    assert not {"hostNetwork", "hostPID", "hostIPC"} & set(pod)


@pytest.mark.parametrize("document", DOCUMENTS)
def test_manifest__has_probes_no_secret_and_no_service_for_strangers(document):
    assert document["kind"] not in ("Secret", "Ingress")
    if document["kind"] in ("Deployment", "StatefulSet"):
        for container in document["spec"]["template"]["spec"]["containers"]:
            assert {"readinessProbe", "livenessProbe"} <= set(container)
    if document["kind"] == "Service":
        assert document["spec"].get("type", "ClusterIP") == "ClusterIP"
    for variable in variables(document):
        secret = any(
            word in variable["name"] for word in ("PASSWORD", "AUTH", "SECRET", "CONNECTION_URL")
        )
        assert ("valueFrom" in variable) == secret


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
    packages = tomllib.loads((HERE.parent.parent / "pyproject.toml").read_text())["tool"][
        "setuptools"
    ]["packages"]
    for package in {name.partition(".")[0] for name in packages}:
        assert f"COPY {package} {package}\n" in text
    assert "-c constraints.txt" in text
    assert "USER 10001" in text
