"""Datasets and sweeps from Python and from notebooks."""

from __future__ import annotations

import linecache
import re
import sys
from collections.abc import Mapping, Sequence
from dataclasses import fields
from functools import cached_property
from inspect import stack
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq

from cluster.machine import cores
from flows.preparing.frames import OTHERS, as_table, option_of, with_columns
from flows.runtime.processes import say
from flows.sweeping.file import sweep_called, sweep_of
from flows.sweeping.request import SweepRequest
from flows.tables.text import line_width
from flows.views.answer import best_of, in_terminal
from flows.views.views import Views, runs_of
from koco_stream.errors import WrongInput
from koco_stream.io.paths import AnyPath, StorePath
from koco_stream.streams.manifest import Manifest
from storage.preparing.prepare import Preparing, check_name
from storage.sources.source import Reading
from storage.store import existing_store

if TYPE_CHECKING:
    import pandas

    from flows.comparing.comparison import Comparison

VALUED = "missing|drop|categorical|numeric|target|layout"
# how a message on a file names things, and how one on a table does
WORDS = {
    rf"--({VALUED}) (?:'([^']*)'|(?!(?:does|is)\b)([\w.]+))": r'\1="\2\3"',
    "--one-hot": "one_hot=True",
    "--hash-bits ": "hash_bits=",
    "add --replace": "give replace=True",
    r"row group \d+, ": "",
}


def sweep(
    spec: str | Path | Mapping[str, Any],
    store: AnyPath = "store",
    *,
    workers: int | None = None,
    cluster: str = "local",
    retry_failed: bool = False,
    certificates: str | None = None,
    insecure: bool = False,
    prefect: bool | None = None,
) -> SweepResult:
    """Run a sweep, as `koco sweep` does; runs that the store has are not run again.

    Parameters
    ----------
    spec : path, str or dict
        A sweep file, the name of a packaged sweep or of a prepared dataset (for the usual sweep on
        it), or the content of a sweep file, whose grids may be lists, ranges or NumPy arrays.
    store : path or str
        The store: a folder, or `s3://BUCKET/PREFIX` or `gs://BUCKET/PREFIX`.
    workers : int, optional
        Local worker processes, by default one a core; 0 to run in this process. A script that uses
        workers calls this function under `if __name__ == "__main__":`.
    cluster : str
        `local`, a scheduler's address, or a site.
    retry_failed : bool
        Whether runs that have failed, or whose windows or predictions are gone, are run again.
    certificates : str, optional
        Folder of certificates, for `tls://` addresses and sites.
    insecure : bool
        Whether `tcp://` to other machines is allowed.
    prefect : bool, optional
        Whether the sweep is a flow run of Prefect; by default, if PREFECT_API_URL names a server or
        `koco serve` has one. With True, a server is started otherwise.

    Returns
    -------
    SweepResult
        Runs that have failed are among its `runs`, with their errors.

    Raises
    ------
    WrongInput
        If the sweep, its datasets, the store or the cluster cannot be used.
    KeyboardInterrupt
        What was finished is kept: the same call goes on.

    Examples
    --------
    >>> import flows
    >>> result = flows.sweep("ill-conditioned", store="store")  # doctest: +SKIP
    >>> result.best().to_pandas()  # doctest: +SKIP
    """
    from flows.sweeping.launch import launch

    workers = cores() if workers is None else workers
    if workers and cluster == "local":
        _check_main()
    given = sweep_of(spec) if isinstance(spec, Mapping) else sweep_called(spec, store)
    summary = launch(
        SweepRequest(
            str(given.path), str(store), workers, cluster, retry_failed, certificates, insecure
        ),
        prefect,
        given,
    )
    if failed := summary["statuses"].get("failed", 0):
        say(f"{failed:,} of {summary['runs']:,} runs have failed; the result's `runs` say why")
    return SweepResult(store, given.name)


def prepare(
    name: str,
    data: Any,
    store: AnyPath = "store",
    *,
    target: str | int | None = None,
    replace: bool = False,
    prefect: bool | None = None,
    **options: Any,
) -> Manifest:
    """Prepare a dataset, as `koco prepare` does, from a table in memory.

    Parameters
    ----------
    name : str
        The dataset's name.
    data : data frame, table or array
        A data frame of pandas or Polars, an Arrow table, or a NumPy array (n, columns).
    store, prefect
        As in `sweep`.
    target : str or int, optional
        The target column, by its name or its number from 1; by default the last.
    replace : bool
        Whether an existing dataset of that name is replaced.
    **options
        Those of `koco prepare`, with underscores; those that may be repeated are lists.

    Returns
    -------
    Manifest
        What the dataset is: `n_rows`, `n_features`, `classes`, `class_names` and so on.

    Raises
    ------
    WrongInput
        If a value or an option is wrong; the store is then unchanged.

    Examples
    --------
    >>> import flows
    >>> flows.prepare("mine", frame, target="y", missing="mean")  # doctest: +SKIP
    """
    from flows.preparing.preparation import launch_preparation

    data = with_columns(data)
    unknown = options.keys() - {one.name for one in fields(Reading) + fields(Preparing)}
    if unknown:
        raise WrongInput(f"there is no option {min(unknown)!r}; `koco prepare --help` lists them")
    given = {name: option_of(name, value) for name, value in options.items()}
    given |= {} if target is None else {"target": str(target)}
    table = as_table(data, given)
    with TemporaryDirectory() as folder:
        file = Path(folder) / f"{name}.parquet"
        try:
            check_name(name)
            pq.write_table(table, file)
            return launch_preparation(
                str(store), name, [file], prefect, given=given, replace=replace, quiet=True
            )
        except WrongInput as error:
            words = str(error).replace(str(file), "the table")
            for pattern, instead in WORDS.items():
                words = re.sub(pattern, instead, words)
            raise WrongInput(words) from None
        except pa.ArrowException as error:
            raise WrongInput(f"the table: {error}; {OTHERS}") from None


class SweepResult:
    """The results of a sweep. A notebook shows its best configurations and their curves.

    Parameters
    ----------
    store : path or str
        The store.
    sweep : str
        The name of a sweep that has run on it; else `WrongInput` is raised.

    Attributes
    ----------
    runs : pyarrow.Table
        One row for each run that is done, with all columns of the table `runs`.
    curves : pyarrow.Table
        `cumulative_loss`, `mistakes` and `dictionary_size`, with `mean_loss` and `error_rate` until
        then, of each `run_id` at rounds `t` spaced evenly in log t.
    windows : pyarrow.Table
        The metrics of each window, if the sweep has a `window`; else no rows.
    predictions : pyarrow.Table
        Columns `run_id`, `t` and `prediction`, if the sweep has kept them; else no rows.
    views : Views
        The views of its results, for SQL: ``result.views.table("FROM best")``.
    report : StorePath
        The sweep's HTML report.
    """

    def __init__(self, store: AnyPath, sweep: str) -> None:
        self.store: StorePath = existing_store(store)
        self.sweep = sweep
        self.views = Views(self.store, [sweep])
        self.report: StorePath = self.store / "reports" / f"{sweep}.html"

    @cached_property
    def runs(self) -> pa.Table:
        return runs_of(self.views)

    @cached_property
    def curves(self) -> pa.Table:
        return self.views.table("FROM curves")

    @cached_property
    def windows(self) -> pa.Table:
        return self.views.table("FROM windows")

    @cached_property
    def predictions(self) -> pa.Table:
        return self.views.table("FROM predictions")

    def best(self) -> pa.Table:
        """The best configuration of each learner on each stream, the best learner first.

        They are averages over orders and seeds, compared by error rate where there are classes, and
        else by mean loss.
        """
        return best_of(self.views)

    def compare(
        self,
        select: str = "all",
        metric: str | None = None,
        alpha: float = 0.05,
        learners: Sequence[str] = (),
    ) -> Comparison:
        """Compare the learners over datasets and orders, as `koco compare` does.

        Parameters
        ----------
        select : str
            How the configuration of a learner on a block is chosen: "all", by what is compared, or
            "first-half", by the first half of the stream, of which the second half is compared.
        metric : str, optional
            `error_rate`, `mean_loss` or a metric; by default the error rate where there are
            classes, else the mean loss.
        alpha : float
            Level of the tests.
        learners : sequence of str
            Only these; all, if none are named.
        """
        from flows.comparing.comparison import compare

        return compare(
            self.store, [self.sweep], select=select, metric=metric, alpha=alpha, learners=learners
        )

    def to_pandas(self) -> pandas.DataFrame:
        """The runs as a data frame of pandas, which must be installed."""
        return self.runs.to_pandas()

    def __repr__(self) -> str:
        best = self.best()
        table = in_terminal(self.views, best, 0, line_width())[0] if best.num_rows else ""
        return f"sweep {self.sweep}: {self._summary}\n{table}"

    def _repr_html_(self) -> str:
        from flows.report.document import notebook_html

        return notebook_html(self.store, self.sweep, self._summary)

    @property
    def _summary(self) -> str:
        planned = self.views.notes[self.sweep]["run_ids"]
        return f"{self.runs.num_rows:,} of {len(planned):,} runs in {self.store}"


results = SweepResult  # of a sweep that has run


def _check_main() -> None:
    """Refuse a script that workers could not import, or that would start the sweep once more.

    Python imports it again in each of their processes, unless it is a package's.
    """
    script = getattr(sys.modules["__main__"], "__file__", None)
    calls = [
        frame.lineno
        for frame in stack(0)
        if frame.filename == script and not script.endswith("__main__.py")
    ]
    if calls and not any(
        re.match(r"if\b.*__name__", line) for line in linecache.getlines(str(script))[: calls[-1]]
    ):
        raise WrongInput(
            f"{script}, line {calls[-1]}: workers import this script again, so put it in a file,"
            ' and its calls under `if __name__ == "__main__":`, or give workers=0 to run in this'
            " process"
        )
