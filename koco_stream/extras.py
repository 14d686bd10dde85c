"""The optional parts of the installation, called extras."""

# the extra that installs a module, by the module's name
EXTRAS = {
    "click": "sweep",
    "dask": "sweep",
    "distributed": "sweep",
    "duckdb": "sweep",
    "httpx": "sweep",
    "jinja2": "sweep",
    "markupsafe": "sweep",
    "psutil": "sweep",
    "pydantic": "sweep",
    "rich": "sweep",
    "sparse": "sweep",
    "tomli_w": "sweep",
    "vl_convert": "sweep",
    "yaml": "sweep",
    "bokeh": "dashboard",
    "prefect": "prefect",
    "sklearn": "documents",
    "cryptography": "tls",
    "dask_jobqueue": "jobqueue",
    "dask_kubernetes": "kubernetes",
    "river": "river",
    "vowpalwabbit": "vw",
    "optuna": "search",
}


def remedy(error: ModuleNotFoundError) -> str | None:
    """What to install for a missing module, if an extra has it."""
    extra = EXTRAS.get((error.name or "").partition(".")[0])
    return extra and f"{error.name} is not installed: pip install 'koco-stream[{extra}]'"
