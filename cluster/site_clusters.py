"""Starting the cluster that a site describes, and showing what would be submitted."""

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

from distributed import Client

from cluster.jobs import job_cluster, job_script
from cluster.kubernetes import manifest_text, pod_cluster
from cluster.site import JobSite, KubernetesSite


def site_cluster(
    site: JobSite | KubernetesSite, mapped_bytes: int, security: Any = None, insecure: bool = False
) -> Callable[[], AbstractContextManager[Client]]:
    """How to start the site's cluster; with `security` off the loopback interface, or `insecure`
    where nobody else can reach it.
    """
    if isinstance(site, JobSite):
        return job_cluster(site, mapped_bytes, security, insecure)
    return pod_cluster(site, mapped_bytes, insecure)


def submission(site: JobSite | KubernetesSite) -> str:
    """The job script or the manifest that would be submitted. Nothing is started."""
    return job_script(site) if isinstance(site, JobSite) else manifest_text(site)
