"""The tables of a sweep file, and what each key may be."""

from typing import Annotated, Any, Literal

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    Discriminator,
    Field,
    FiniteFloat,
    PositiveInt,
    Tag,
)

from cluster.site import Clock, clock_seconds, written
from flows.sweeping.halving import Halving, Race
from flows.sweeping.search import Search
from flows.sweeping.toml_file import Name
from koco_stream.metrics import SEGMENT
from koco_stream.streams.stream import WINDOW_ROWS


def _listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


Classes = Annotated[list[FiniteFloat | str | None], Field(min_length=1), BeforeValidator(_listed)]
Seconds = Annotated[
    Annotated[FiniteFloat, Field(gt=0), Tag("number")]
    | Annotated[
        Clock, BeforeValidator(str), AfterValidator(clock_seconds), Field(gt=0), Tag("text")
    ],
    Discriminator(lambda value: "number" if isinstance(value, int | float) else "text"),
]
Seeds = Annotated[
    Annotated[int, Field(gt=0, lt=2**63), Tag("int")]
    | Annotated[list[Annotated[int, Field(ge=0, lt=2**63)]], Field(min_length=1), Tag("list")],
    Discriminator(lambda value: "list" if isinstance(value, list) else "int"),
]


class DatasetTable(BaseModel, extra="allow", strict=True):
    name: Annotated[
        str,
        written(
            r"[A-Za-z0-9][A-Za-z0-9._=,-]*",
            "a dataset has a name of letters, digits and . _ - = , which koco prepare NAME --from"
            " FILE gives it",
        ),
    ]
    positive_class: Classes = [None]
    multiclass: Literal["one-vs-rest"] | None = None
    order: Literal["as-stored", "shuffled", "shuffled-in-windows"] = "as-stored"
    order_seeds: Seeds = 1
    window_rows: PositiveInt = WINDOW_ROWS
    max_rows: PositiveInt | None = None


class LearnerTable(BaseModel, extra="allow", strict=True):
    name: str


class ReportTable(BaseModel, extra="forbid", strict=True):
    figure: Annotated[
        list[
            Literal[
                "son-figure-1",
                "son-figure-2",
                "son-figure-3",
                "sketch-start",
                "poster-tables",
                "kons-adversary",
                "defaults",
                "sampling-floor",
            ]
        ],
        BeforeValidator(_listed),
    ] = []


class SweepFile(BaseModel, extra="forbid", strict=True):
    name: Name
    learner_seeds: Seeds = 1
    metrics: list[str] = []
    window: PositiveInt | None = Field(None, le=SEGMENT)
    keep_predictions: bool = False
    time_limit: Seconds | None = None
    dataset: list[DatasetTable] = Field(min_length=1)
    learner: list[LearnerTable] = Field(min_length=1)
    report: ReportTable = ReportTable()
    halving: Halving | None = None
    race: Race | None = None
    search: Search | None = None


TABLES: dict[str, type[BaseModel]] = {
    "dataset": DatasetTable,
    "learner": LearnerTable,
    "report": ReportTable,
    "halving": Halving,
    "race": Race,
    "search": Search,
}


# by a key that stands in the table of another thing
PLACES = {
    **{
        key: f"{key} is for all runs; give it above the first table"
        for key in SweepFile.model_fields
    },
    **{
        key: f"{key} is of a dataset; give it in a [[dataset]] table"
        for key in DatasetTable.model_fields
    },
    "member": 'only a Mixture has members; give the [[learner]] name = "Mixture"',
}
