"""How the learners of other libraries are described and called: an adapter a library."""

import math
import re
from collections import deque
from inspect import Parameter, signature
from typing import Any

import numpy as np

from koco_stream.errors import WrongInput
from koco_stream.foreign_host.target import class_of, signature_of
from koco_stream.types import Array

# A constructor's argument that is the seed of its random numbers.
SEEDS = ("seed", "random_state")
# A probability is held within these, so that its log-odds are finite.
LEAST, MOST = 1e-15, 1.0 - 1e-15
CLASSES = np.array([-1, 1])  # for scikit-learn
# The names of our losses for scikit-learn's argument `loss`.
SCIKIT_LEARN_LOSSES = {
    "hinge": "hinge",
    "log_loss": "logistic",
    "squared_hinge": "squared_hinge",
    "squared_error": "squared",
}

# An option of Vowpal Wabbit: `--name`, `--name value`, `--name=value`, `-n`, `-n value`, `-nvalue`.
OPTION = re.compile(r"(?<!\S)-(?:-([^\s=]+)=?|([a-zA-Z]))\s*((?!--|-[a-zA-Z])\S*)")
# Those for which a sweep has other means, or that make a run depend on files, and why they are
# refused.
REFUSED = {
    **dict.fromkeys(
        "data d cache c cache_file kill_cache k passes daemon port json dsjson csv".split(),
        "the rows are the dataset's",
    ),
    **dict.fromkeys(
        "initial_regressor i final_regressor f readable_model invert_hash predictions p"
        " raw_predictions r".split(),
        "a run reads and writes no files",
    ),
    **dict.fromkeys(["hash", "hash_seed"], "features are numbers, not hashed"),
    "link": "it changes what is shown, not what is learnt, and the loss is that of the prediction"
    " without it",
}
# Those with which it draws no random numbers. Any other is taken to draw some.
DRAW_NOTHING = frozenset(
    "sgd adaptive adax invariant normalized sparse_l2 power_t learning_rate l initial_t"
    " decay_learning_rate l1 l2 no_bias_regularization loss_function quantile_tau expectile_q"
    " logistic_min logistic_max min_prediction max_prediction binary bit_precision b noconstant"
    " constant C initial_weight sparse_weights quadratic q cubic interactions permutations"
    " leave_duplicate_interactions ftrl coin pistol ftrl_alpha ftrl_beta freegrad restart project"
    " radius fepsilon flipschitz_const holdout_off quiet random_seed".split()
)


def log_odds(p: float) -> float:
    """log(p/(1 − p))."""
    p = min(max(p, LEAST), MOST)
    return math.log(p / (1.0 - p))


class Adapter:
    """A class of another library and arguments for it; after `start`, a learner.

    signature: how it takes arguments. draws: whether its random numbers may depend on the seed that
    it is then given. classifies: whether it learns from labels −1 and +1 only. loss: the name of
    ours for its predictions.
    """

    def __init__(self, found: Any, given: dict[str, Any]) -> None:
        self.found, self.given, self.signature = found, given, signature_of(found)
        self.seeds = [name for name in SEEDS if name in self.signature.parameters][:1]
        self.draws = not set(self.seeds).issubset(given)

    def start(self, seed: int, n_features: int, dense: bool) -> None:
        """Make the learner, whose rows have all their features if `dense`."""
        self.n_features, self.dense = n_features, dense
        self.learner = self.found(**dict.fromkeys(self.seeds, seed) | self.given)


class River(Adapter):
    """A class with `learn_one` and `predict_one`."""

    def __init__(self, found: Any, given: dict[str, Any]) -> None:
        super().__init__(found, given)
        self.classifies = self.has_probabilities = hasattr(found, "predict_proba_one")
        self.loss = "logistic" if self.classifies else "squared"

    def round(self, idx: Array, val: Array, label: float) -> float:
        """A row's score; the row is learnt if that is finite."""
        x = dict(zip(idx.tolist(), val.tolist(), strict=True))
        score = self._score(x)
        if math.isfinite(score):
            self.learner.learn_one(x, label > 0.0 if self.classifies else label)
        return score

    def _score(self, x: dict[int, float]) -> float:
        if self.has_probabilities:
            try:
                found = self.learner.predict_proba_one(x)
                return log_odds(float(found.get(True, 0.0))) if found else 0.0
            except NotImplementedError:  # River's classifiers all have the method
                self.has_probabilities = False
        predicted = self.learner.predict_one(x)
        if self.classifies and predicted is not None:
            return 1.0 if predicted else -1.0
        return float(predicted or 0.0)


class ScikitLearn(Adapter):
    """A class with `partial_fit`; its argument `classes` says that it classifies."""

    def __init__(self, found: Any, given: dict[str, Any]) -> None:
        super().__init__(found, given)
        self.classifies = "classes" in signature_of(found.partial_fit).parameters
        has_log_odds = hasattr(found, "predict_proba") and not hasattr(found, "decision_function")
        otherwise = "logistic" if self.classifies and has_log_odds else "squared"
        usual = getattr(self.signature.parameters.get("loss"), "default", None)
        self.loss = SCIKIT_LEARN_LOSSES.get(str(given.get("loss", usual)), otherwise)
        self.has_learnt = False

    def round(self, idx: Array, val: Array, label: float) -> float:
        """A row's score; the row is learnt if that is finite."""
        X = self._matrix(idx, val)
        try:
            score = self._score(X)
            if math.isfinite(score):
                self._learn(X, label)
        except (TypeError, ValueError) as error:
            if self.dense or "sparse" not in str(error).lower():
                raise
            raise TypeError(
                f"{self.found.__name__} takes no sparse rows, and this dataset has them; choose a"
                " learner that takes them, or a dense dataset"
            ) from error
        return score

    def _matrix(self, idx: Array, val: Array) -> Any:
        if self.dense:
            return val.reshape(1, -1)
        from scipy.sparse import csr_matrix

        return csr_matrix((val, idx, [0, val.size]), shape=(1, self.n_features))

    def _score(self, X: Any) -> float:
        if not self.has_learnt:
            return 0.0
        # Which of them there are may depend on the constructor's arguments.
        if hasattr(self.learner, "decision_function"):
            return float(np.ravel(self.learner.decision_function(X))[0])
        if self.classifies and hasattr(self.learner, "predict_proba"):
            return log_odds(float(self.learner.predict_proba(X)[0, 1]))
        return float(np.ravel(self.learner.predict(X))[0])

    def _learn(self, X: Any, label: float) -> None:
        classes = {"classes": CLASSES} if self.classifies and not self.has_learnt else {}
        labels = np.array([label], CLASSES.dtype if self.classifies else np.float64)
        self.learner.partial_fit(X, labels, **classes)
        self.has_learnt = True


class VowpalWabbit(Adapter):
    """Vowpal Wabbit with the options of its command line."""

    def __init__(self, found: Any, given: dict[str, Any]) -> None:
        super().__init__(found, given)
        self.signature = signature(lambda options="": None)
        self.text = given.get("options", "")
        if not isinstance(self.text, str):
            raise WrongInput(f"options must be a text, as on vw's command line, not {self.text!r}")
        self.options = {long or short: value for long, short, value in OPTION.findall(self.text)}
        for name, value in self.options.items():
            if name in REFUSED and (name, value) != ("link", "identity"):
                option = f"-{name}" if len(name) == 1 else f"--{name}"
                raise WrongInput(f"leave {option} out of options: {REFUSED[name]}")
        self.draws = "random_seed" not in self.options and not DRAW_NOTHING.issuperset(self.options)
        self.classifies = self.options.get("loss_function") in ("logistic", "hinge")
        self.loss = self.options["loss_function"] if self.classifies else "squared"

    def start(self, seed: int, n_features: int, dense: bool) -> None:
        """Make the learner."""
        from vowpalwabbit import LabelType, PredictionType

        seeded = [] if "random_seed" in self.options else ["--random_seed", str(seed)]
        self.learner = self.found(arg_list=[*self.text.split(), *seeded, "--quiet"])
        # It has pointers to the examples of an epoch, whose memory Python would free.
        self.in_use = deque[Any](maxlen=max(int(self.options.get("epoch_size") or 1), 1))
        self.scalar = PredictionType.SCALAR
        predicts, learns = self.learner.get_prediction_type(), self.learner.get_label_type()
        if predicts != self.scalar or learns != LabelType.SIMPLE:
            raise ValueError(
                f"with these options Vowpal Wabbit learns from labels of the type {learns.name} and"
                f" predicts {predicts.name}; only options with the types SIMPLE and SCALAR can run"
            )

    def round(self, idx: Array, val: Array, label: float) -> float:
        """The prediction for a row, made as it is learnt."""
        # The space names the namespace of features that stand behind a bare `|`.
        example = self.learner.example({" ": list(zip(idx.tolist(), val.tolist(), strict=True))})
        example.set_label_string(f"{label:.9g}")
        self.learner.learn(example)
        predicted = float(example.get_prediction(self.scalar))
        self.learner.finish_example(example)
        self.in_use.append(example)
        return predicted


def adapter_of(target: str, given: dict[str, Any]) -> River | ScikitLearn | VowpalWabbit:
    """How the class that a target names is called: its public methods say it."""
    found = class_of(target)

    def has(*names: str) -> bool:
        return all(callable(getattr(found, name, None)) for name in names)

    if has("example", "learn", "finish_example"):
        return VowpalWabbit(found, given)
    if has("learn_one", "predict_one") and _takes_a_label(found.learn_one):
        return River(found, given)
    if has("partial_fit") and (has("predict") or has("decision_function")):
        return ScikitLearn(found, given)
    raise WrongInput(
        f"{target} has neither learn_one(x, y) and predict_one(x), as River's learners have, nor"
        " partial_fit and predict or decision_function, as scikit-learn's that learn row by row"
        " have"
    )


def _takes_a_label(learn_one: Any) -> bool:
    kinds = [parameter.kind for parameter in signature_of(learn_one).parameters.values()]
    return Parameter.VAR_POSITIONAL in kinds or len(kinds) > 2
