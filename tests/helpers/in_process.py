"""The koco command within this process: no server of Prefect's, no workers, nothing to wait for."""

import os

import pytest
from click.testing import CliRunner


@pytest.fixture
def koco(monkeypatch):
    """Run `koco WORDS`; gives what click's runner does: exit_code, stdout, stderr. With `status`,
    the exit code must be that.
    """
    monkeypatch.setenv("PREFECT_HOME", os.path.join(os.environ["KOCO_CACHE"], "prefect"))
    monkeypatch.setenv("PREFECT_LOGGING_LEVEL", "CRITICAL")
    import flows.sweeping.launch
    from flows.cli import koco as command
    from flows.sweeping.steps import run_sweep

    monkeypatch.setattr(flows.sweeping.launch, "configure_prefect", lambda: None)
    monkeypatch.setattr(
        flows.sweeping.launch, "through_prefect", lambda checked, start: run_sweep(checked)
    )

    def run(*words, status=None):
        words = [str(word) for word in words]
        done = CliRunner().invoke(
            command, [*words, "--workers", "0"] if words[0] == "sweep" else words
        )
        assert status in (None, done.exit_code), (words, done.output)
        return done

    return run
