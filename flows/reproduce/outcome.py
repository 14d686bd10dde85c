"""Outcome of a reproduction: what its page and the terminal say."""

from dataclasses import dataclass
from typing import Any

from flows.report.drawing import Claim, Figure, Flag
from flows.report.pages import CLAIM_COLUMNS, claim_rows
from flows.reproduce.targets import Target

SETS = ("dataset", "rows in the paper", "rows here", "state")


@dataclass(frozen=True)
class Reproduction:
    """Outcome of reproducing a target.

    `sets` are rows on its datasets, with the columns of `SETS`. `figures` are those of the target's
    sweeps, each with the name of the sweep. `failed` is the number of failed runs.
    """

    target: Target
    flags: list[Flag]
    sets: list[list[Any]]
    figures: list[tuple[str, Figure]]
    failed: int

    @property
    def sweeps(self) -> list[str]:
        """The names of the sweeps that were run."""
        return list(dict.fromkeys(sweep for sweep, _ in self.figures))

    @property
    def name(self) -> str:
        """Name of the page, without a suffix."""
        return f"reproduce-{self.target.name}"

    @property
    def title(self) -> str:
        """Title of the page."""
        return "The benchmark" if self.is_ours else f"Reproducing {self.target.name}"

    @property
    def is_ours(self) -> bool:
        """Whether its claims are those of this project's pages, and not of a paper."""
        return not self.target.figure

    @property
    def claim_columns(self) -> tuple[str, ...]:
        """The columns of `claim_rows`."""
        holds, says, *others = CLAIM_COLUMNS
        return holds, "The documentation says" if self.is_ours else says, *others, "sweep"

    @property
    def chosen(self) -> str:
        """How the configurations of the benchmark were chosen, which its sweeps' reports do not."""
        return (
            "Configurations are chosen by the first half of each stream and judged on the second."
            " The sweeps' own reports choose by the rounds on which they judge, so that their"
            " numbers differ."
        )

    @property
    def set_columns(self) -> tuple[str, ...]:
        """The columns of `sets`."""
        name, rows, *others = SETS
        return name, "rows of the whole" if self.is_ours else rows, *others

    @property
    def claims(self) -> list[tuple[str, Claim]]:
        """The claims of all figures, each with the name of its sweep."""
        return [(sweep, claim) for sweep, figure in self.figures for claim in figure.claims]

    @property
    def claim_rows(self) -> list[list[Any]]:
        """The claims as rows of `flows.report.pages.claim_rows`, each with its sweep's name."""
        return [[*claim_rows([claim])[0], sweep] for sweep, claim in self.claims]

    @property
    def summary(self) -> str:
        """Sentence on how many claims are reproduced."""
        judged = [claim.holds for _, claim in self.claims if claim.holds is not None]
        found = f"{sum(judged)} of {len(judged)} claims reproduced"
        return found if judged else "no claim could be tested"

    @property
    def lines(self) -> list[str]:
        """Lines for the terminal: claims, figures that could not be tested, and the summary."""
        words = {True: "reproduced", False: "not reproduced", None: "remark"}
        return [
            *(
                f"{words[one.holds]}: {one.claim} | criterion: {one.criterion}"
                f" | came out: {one.came_out}"
                for _, one in self.claims
            ),
            *(
                f"not tested: {figure.title} ({sweep})"
                for sweep, figure in self.figures
                if not figure.claims and not self.is_ours
            ),
            f"{self.target.name}: {self.summary}",
        ]
