"""Vowpal Wabbit, by its Python package `vowpalwabbit`.

Feature j of a row is what `j:value` is in Vowpal Wabbit's text form: numbers are not hashed.
"""

from collections import deque
from typing import Any

from koco_stream.foreign_host.model import Model, Row
from koco_stream.foreign_host.vowpal_wabbit_options import rows_in_use


class VowpalWabbitModel(Model):
    """Vowpal Wabbit with the options of its command line.

    The prediction of a round is the one that Vowpal Wabbit makes as it learns, and that its own
    program writes with `-p`.
    """

    def __init__(self, options: str, seed: int) -> None:
        from vowpalwabbit import LabelType, PredictionType, Workspace

        words = options.split()
        if not any(word.partition("=")[0] == "--random_seed" for word in words):
            words += ["--random_seed", str(seed)]
        self.workspace = Workspace(arg_list=[*words, "--quiet"])
        # It has pointers to the examples of an epoch, whose memory Python would free.
        self.in_use = deque[Any](maxlen=rows_in_use(options))
        self.scalar = PredictionType.SCALAR
        predicts, learns = self.workspace.get_prediction_type(), self.workspace.get_label_type()
        if predicts != self.scalar or learns != LabelType.SIMPLE:
            raise ValueError(
                f"with these options Vowpal Wabbit learns from labels of the type {learns.name} and"
                f" predicts {predicts.name}; only options with the types SIMPLE and SCALAR can run"
            )

    def predict(self, row: Row) -> float:
        """The prediction for a row. Nothing is learnt."""
        example = self._example(row)
        example.setup_example()
        predicted = float(self.workspace.predict(example, self.scalar))
        self.workspace.finish_example(example)
        return predicted

    def learn(self, rows: list[Row], labels: list[float]) -> None:
        """Learn rows in order."""
        for row, label in zip(rows, labels, strict=True):
            self.round(row, label)

    def round(self, row: Row, label: float) -> float:
        """The prediction for a row, made as it is learnt."""
        example = self._example(row)
        example.set_label_string(f"{label:.9g}")
        self.workspace.learn(example)
        predicted = float(example.get_prediction(self.scalar))
        self.workspace.finish_example(example)
        self.in_use.append(example)
        return predicted

    def _example(self, row: Row) -> Any:
        idx, val = row
        numbers = range(val.size) if idx is None else idx.tolist()
        # The space names the namespace of features that stand behind a bare `|`.
        return self.workspace.example({" ": list(zip(numbers, val.tolist(), strict=True))})
