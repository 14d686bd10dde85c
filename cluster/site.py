"""Site files (YAML): workers that a sweep requests of a queue or Kubernetes. Dask's settings."""

import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Literal, Self, get_origin

import yaml
from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError, model_validator

from koco_stream.errors import WrongInput, nearest
from koco_stream.io.cache import cache_folder
from koco_stream.io.files import json_text

HERE = Path(__file__).parent / "sites"
LOCAL = "local"
ADDRESS = re.compile(r"(tcp|tls)://(\[[0-9a-fA-F:]+\]|[^:/]+):(\d+)")  # of a scheduler


def clock_seconds(text: str) -> int:
    """Convert `HH:MM:SS` or `D-HH:MM:SS` to seconds."""
    days, _, clock = text.rpartition("-")
    hours, minutes, seconds = map(int, clock.split(":"))
    return (int(days or 0) * 24 + hours) * 3600 + minutes * 60 + seconds


def written(pattern: str, message: str) -> AfterValidator:
    def check(text: str) -> str:
        if not re.fullmatch(pattern, text):
            raise ValueError(message)
        return text

    return AfterValidator(check)


def _port_range(text: str) -> str:
    first, last = map(int, text.split(":"))
    if not 1024 <= first < last <= 65535:
        raise ValueError(PORTS)
    return text


PORTS = 'ports are written "FIRST:LAST", in quotation marks, between 1024 and 65535'
Clock = Annotated[
    str,
    written(
        r"(\d+-)?\d+:[0-5]\d:[0-5]\d",
        'a time is written "HH:MM:SS" or "D-HH:MM:SS", in quotation marks',
    ),
]
# queues have no shorter walltime
Walltime = Annotated[Clock, written(r"(?!(0+-)?0+:00:).*", "a job has at least a minute")]
Memory = Annotated[
    str, written(r"(?i)[1-9]\d*(\.\d+)?\s*[MGTP]i?B?", 'memory is written with its unit: "8 GiB"')
]
PortRange = Annotated[str, written(r"\d{4,5}:\d{4,5}", PORTS), AfterValidator(_port_range)]
Text = Annotated[str, written(r".*\S.*", "one line of text, not empty")]
Directive = Annotated[str, written(r"-{1,2}\w.*", 'a directive as it begins, such as "--mem"')]
Word = Annotated[str, written(r"[\w.@:/+-]+", "one word of letters, digits and . _ @ : / + -")]
Variable = Annotated[str, written(r"(?a)[A-Za-z_]\w*", "a variable has letters, digits and _")]


class Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


class Workers(Strict):
    """A sweep requests `max`, and releases idle ones, down to `min`."""

    min: int = Field(1, ge=1)
    max: int = Field(ge=1)

    @model_validator(mode="after")
    def _ordered(self) -> Self:
        if self.min > self.max:
            raise ValueError(
                f"min is {self.min} and max is {self.max}; give a min that is not larger than max"
            )
        return self


class Site(Strict):
    workers: Workers
    memory: Memory
    patience: Clock = "24:00:00"
    cache: Text | None = None
    environment: dict[Variable, str] = {}

    @property
    def worker_bytes(self) -> int:
        from dask.utils import parse_bytes  # slow

        return int(parse_bytes(self.memory))

    @property
    def patience_seconds(self) -> int:
        return clock_seconds(self.patience)


class JobSite(Site):
    """A job has `cores` single-threaded workers on one machine."""

    kind: Literal["slurm", "pbs", "sge", "lsf"]
    cores: int = Field(ge=1)
    walltime: Walltime
    interface: Word
    queue: Word | None = None
    account: Word | None = None
    job_extra: list[Text] = []
    job_skip: list[Directive] = []
    setup: list[Text] = []
    scheduler_port: int = Field(0, ge=0, le=65535)
    worker_ports: PortRange | None = None
    nanny_ports: PortRange | None = None

    @model_validator(mode="after")
    def _whole_jobs(self) -> Self:
        if self.workers.max % self.cores:
            raise ValueError(
                f"workers.max is {self.workers.max}, which is not a multiple of cores"
                f" ({self.cores}): a job has one worker per core"
            )
        return self

    @property
    def jobs(self) -> tuple[int, int]:
        return -(-self.workers.min // self.cores), self.workers.max // self.cores

    @property
    def worker_bytes(self) -> int:
        return super().worker_bytes // self.cores


class KubernetesSite(Site):
    """A pod has one worker."""

    kind: Literal["kubernetes"]
    image: Word
    namespace: Word = "default"
    secret: Word | None = None
    store_claim: Word | None = None
    store_path: Text | None = None

    @model_validator(mode="after")
    def _claim_has_path(self) -> Self:
        if (self.store_claim is None) != (self.store_path is None):
            raise ValueError(
                "store_claim (the volume) and store_path (where it is in a pod) go together; give"
                " both, or neither"
            )
        return self


AnySite = JobSite | KubernetesSite
KINDS: dict[str, type[AnySite]] = {
    **dict.fromkeys(("slurm", "pbs", "sge", "lsf"), JobSite),
    "kubernetes": KubernetesSite,
}


def shipped() -> dict[str, Path]:
    return {path.stem: path for path in sorted(HERE.glob("*.yaml"))}


def check_where(name: str) -> None:
    """Raise `WrongInput` unless `name` is local, an address, or may be that of a site."""
    site = name in shipped() or name.endswith((".yaml", ".yml")) or "/" in name
    if not (name == LOCAL or ADDRESS.fullmatch(name) or (site and "://" not in name)):
        raise WrongInput(
            f"no cluster is called {name!r}; give local, or a scheduler's address such as"
            f" tls://HOST:8786, or a site{nearest(name, [LOCAL, *shipped()])}"
        )


def read_site(name: str) -> AnySite:
    path = shipped().get(name, Path(name))
    if not path.is_file():
        raise WrongInput(
            f"no site is called {name!r} (your own file is named by its path, ./mine.yaml; copy one"
            f" of {HERE} and change it){nearest(name, list(shipped()))}"
        )
    try:
        text = path.read_text(encoding="utf-8")
        content = yaml.safe_load(text)
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        why = " ".join(str(error).split())  # of YAML it names the line and the column
        raise WrongInput(f"{path}: this is not YAML, or cannot be read: {why}") from None
    if not isinstance(content, dict):
        raise WrongInput(
            f"{path}: a site file has keys and values, such as kind: slurm; see {HERE} for examples"
        )
    kind = str(content.get("kind"))
    if kind not in KINDS:
        found = (
            f"{kind!r} is not a kind of site{nearest(kind, list(KINDS))}"
            if "kind" in content
            else f"this key is missing; give one of {', '.join(KINDS)}"
        )
        raise WrongInput(f"{_location(path, text, ['kind'])}: {found}")
    try:
        return KINDS[kind].model_validate(content)
    except ValidationError as error:
        at, wrong = first_error(
            error, KINDS[kind], {"workers": Workers}, f"see {HERE} for examples"
        )
    keys = [key for key in at if isinstance(key, str) and key != "[key]"]
    raise WrongInput(f"{_location(path, text, keys)}: {wrong}")


KINDS_OF_VALUE = {
    "string_type": "one text in quotation marks",
    "int_type": "a whole number",
    "float_type": "a number",
    "bool_type": "true or false",
    "list_type": "a list",
    "too_short": "at least one value",
}


def first_error(
    error: ValidationError,
    model: type[BaseModel],
    tables: Mapping[str, type[BaseModel]],
    examples: str,
) -> tuple[tuple[str | int, ...], str]:
    """Key and message of a file's first error, unknown keys before others."""
    first = min(error.errors(), key=lambda found: found["type"] != "extra_forbidden")
    keys = first["loc"]
    found = first["input"]
    message = first["msg"].removeprefix("Value error, ")
    message = (message[0].lower() + message[1:]).replace("input should be", "it must be")
    kind = {"list": "a list" if found else "an empty list", "dict": "a table"}.get(
        type(found).__name__
    )
    each = f"; write [[{keys[0]}]] for each" if kind == "a list" and len(keys) > 2 else ""
    shown = (kind or (repr(found) if isinstance(found, str) else str(found))) + each
    if first["type"] == "extra_forbidden":
        known = tables.get(str(keys[0]), model) if len(keys) > 1 else model
        message = f"unknown key{nearest(str(keys[-1]), list(known.model_fields))}"
    elif (
        first["type"] in ("list_type", "model_type", "missing", "too_short")
        and keys[0] in tables
        and {*map(type, keys[1:])} <= {int}
    ):
        names = ", ".join(tables[str(keys[0])].model_fields)
        message = (
            f"give tables with the keys {names}; each begins with [[{keys[0]}]] on its own line"
            if get_origin(model.model_fields[str(keys[0])].annotation) is list
            else f"this is one table, with the keys {names}"
        )
    elif first["type"] == "missing":
        message = f"this key is missing; {examples}"
    elif first["type"] in KINDS_OF_VALUE:
        message = f"give {KINDS_OF_VALUE[first['type']]}, not {shown}"
    elif kind != "a table":
        message += f", not {shown}"
    return keys, message


def _location(path: Path, text: str, keys: list[str]) -> str:
    """`FILE, line N, workers.max`, without the line if it is unknown."""
    if not keys:
        return str(path)
    written = re.compile(rf"[\s{{]*{re.escape(keys[-1])}\s*:")
    lines = [f", line {n}" for n, line in enumerate(text.splitlines(), 1) if written.match(line)]
    return f"{path}{''.join(lines[:1])}, {'.'.join(keys)}"


ONE_THREAD = {
    name: "1"
    for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS")
}
# Dask's log would repeat the errors of tasks, which the client raises
QUIET = {"DASK_DISTRIBUTED__LOGGING__DISTRIBUTED": "critical"}

SETTINGS = {
    "distributed.nanny.pre-spawn-environ": {**ONE_THREAD, **QUIET},
    "distributed.worker.use-file-locking": False,
    "distributed.logging.distributed": "error",
    # a task that has lost two workers fails
    "distributed.scheduler.allowed-failures": 1,
    # no tasks queue on a worker, so that its death is blamed on the one cohort that ran
    "distributed.scheduler.worker-saturation": 1.0,
    # by default Dask samples its tasks 100 times a second, which costs the scan some per cent
    "distributed.worker.profile.enabled": False,
    "distributed.admin.tick.interval": "1s",
    "distributed.admin.system-monitor.interval": "5s",
    "distributed.worker.memory.target": False,  # Dask has nothing to spill: it holds no states
    "distributed.worker.memory.spill": False,
    # a paused worker would wait forever for memory that its own cohort holds
    "distributed.worker.memory.pause": False,
    # After this time Dask gives up a lost worker for good, even while it is being restarted.
    "distributed.deploy.lost-worker-timeout": "87600h",
}
OF_SCHEDULERS = ("distributed.scheduler.", "distributed.admin.", "distributed.logging.")
OF_WORKERS = ("distributed.nanny.", "distributed.worker.", *OF_SCHEDULERS[1:])
# of workers on other machines; those on this one preload only `cluster.reporting`
PRELOADS = ("--preload", "cluster.preemption", "--preload-nanny", "cluster.preemption")
LOOPBACK_PAGE = ("--dashboard-address", "127.0.0.1:0")  # at any port


def cache_of(site: Site) -> str:
    return site.cache or str(cache_folder())


def settings_of(prefixes: tuple[str, ...]) -> dict[str, object]:
    return {name: value for name, value in SETTINGS.items() if name.startswith(prefixes)}


def variables_of(settings: Mapping[str, object]) -> dict[str, str]:
    return {
        f"DASK_{name.replace('.', '__').replace('-', '_').upper()}": json_text(value)
        if isinstance(value, dict)
        else str(value)
        for name, value in settings.items()
    }


def environment(site: Site, prefixes: tuple[str, ...] = OF_WORKERS) -> dict[str, str]:
    """No secrets are included, because others can read job scripts."""
    passed_on = {
        name: os.environ[name] for name in ("PYTHONPATH", "KOCO_CACHE_BYTES") if name in os.environ
    }
    settings = variables_of(settings_of(prefixes))
    return {"KOCO_CACHE": cache_of(site), **passed_on, **settings, **site.environment}
