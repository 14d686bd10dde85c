"""The koco command within this process: no server of Prefect's, no workers, nothing to wait for."""

import os

import pytest
from click.testing import CliRunner


@pytest.fixture
def koco(monkeypatch):
    """Run `koco WORDS`; gives what click's runner does: exit_code, stdout, stderr."""
    monkeypatch.setenv("PREFECT_HOME", os.path.join(os.environ["KOCO_CACHE"], "prefect"))
    monkeypatch.setenv("PREFECT_LOGGING_LEVEL", "CRITICAL")
    import flows.launch
    import flows.startup
    from flows.cli import koco as command
    from flows.steps import PLAIN, Work, run_sweep

    def plain(*options):
        *options, certificates, insecure = options
        return run_sweep(Work(*options), PLAIN, certificates, insecure)

    monkeypatch.setattr(flows.startup, "configure_prefect", lambda: None)
    monkeypatch.setattr(flows.launch, "_flow", lambda: plain)

    def run(*words):
        words = [str(word) for word in words]
        return CliRunner().invoke(
            command, [*words, "--workers", "0"] if words[0] == "sweep" else words
        )

    return run
