"""Dask workers as Kubernetes pods, through dask-kubernetes and Dask's operator."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from typing import Any

from distributed import Client

from cluster.site import OF_SCHEDULERS, OF_WORKERS, PRELOADS, KubernetesSite, environment
from koco_stream.errors import WrongInput

NAME = "koco"
USER = 10001  # the image's user id: see cluster/deploy/Containerfile


def manifest(site: KubernetesSite, mapped_bytes: int = 0) -> dict[str, Any]:
    """The `DaskCluster` resource. It has no secrets: pods take keys from the site's secret."""
    from dask_kubernetes import operator  # slow, and an extra

    cache = site.cache or "/cache"
    memory = str(site.worker_bytes + mapped_bytes)
    command = f"dask-worker --nthreads 1 --memory-limit {memory} --local-directory".split()
    made: dict[str, Any] = operator.make_cluster_spec(
        NAME,
        image=site.image,
        n_workers=site.workers.max,
        worker_command=[*command, f"{cache}/dask", *PRELOADS],
    )
    worker = made["spec"]["worker"]["spec"]
    scheduler = made["spec"]["scheduler"]["spec"]
    args = worker["containers"][0]["args"]
    args[args.index("--dashboard-address") + 1] = "127.0.0.1:8788"
    worker["containers"][0].pop("ports")
    for pod, prefixes, share in (
        (worker, OF_WORKERS, {"cpu": "1", "memory": str(site.worker_bytes)}),
        (scheduler, OF_SCHEDULERS, {"cpu": "1", "memory": "1Gi"}),
    ):
        variables = {**environment(site, prefixes), "KOCO_CACHE": cache}
        variables.pop("PYTHONPATH", None)  # it is this machine's, and wrong in the image
        pod["containers"][0]["env"] = [
            {"name": name, "value": value} for name, value in variables.items()
        ]
        _secured(pod, site, share, cache)
    return {**made, "metadata": {"name": NAME, "namespace": site.namespace}}


def _secured(pod: dict[str, Any], site: KubernetesSite, share: dict[str, str], cache: str) -> None:
    """Restrict a pod: no root, limited CPU and memory, read-only except for cache and store."""
    container = pod["containers"][0]
    pod |= {
        "automountServiceAccountToken": False,
        "securityContext": {
            "runAsNonRoot": True,
            "runAsUser": USER,
            "fsGroup": USER,
            "seccompProfile": {"type": "RuntimeDefault"},
        },
        "volumes": [{"name": "cache", "emptyDir": {}}, {"name": "tmp", "emptyDir": {}}],
    }
    container |= {
        "securityContext": {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        },
        "resources": {"requests": dict(share), "limits": dict(share)},
        "volumeMounts": [
            {"name": "cache", "mountPath": cache},
            {"name": "tmp", "mountPath": "/tmp"},
        ],
    }
    if site.secret:
        container["envFrom"] = [{"secretRef": {"name": site.secret}}]
    if site.store_claim:
        pod["volumes"].append(
            {"name": "store", "persistentVolumeClaim": {"claimName": site.store_claim}}
        )
        container["volumeMounts"].append({"name": "store", "mountPath": site.store_path})


def pod_cluster(
    site: KubernetesSite, mapped_bytes: int = 0, insecure: bool = False
) -> Callable[[], AbstractContextManager[Client]]:
    """Refused unless `insecure` is set: the operator has no certificates between pods."""
    if not insecure:
        raise WrongInput(
            "Dask's operator starts a scheduler without certificates, on which any pod that can"
            " connect can run code; start one with certificates from cluster/deploy/kubernetes"
            " and give its tls:// address"
        )
    return partial(running_pods, manifest(site, mapped_bytes), site.namespace)


@contextmanager
def running_pods(made: dict[str, Any], namespace: str) -> Iterator[Client]:
    from dask_kubernetes.operator import KubeCluster

    with (
        KubeCluster(custom_cluster_spec=made, namespace=namespace, quiet=True) as cluster,
        Client(cluster, set_as_default=False) as client,
    ):
        yield client
