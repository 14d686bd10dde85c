"""What Vowpal Wabbit's options say before it runs, even if it is not installed."""

from typing import Any

from koco_stream.errors import WrongInput

# Options for which a sweep has other means, or that make a run depend on files, and why they are
# refused.
REFUSED = {
    "data d cache c cache_file kill_cache k passes daemon port json dsjson csv": "the rows are the"
    " dataset's",
    "initial_regressor i final_regressor f readable_model invert_hash predictions p"
    " raw_predictions r": "a run reads and writes no files",
    "hash hash_seed": "features are numbers, not hashed",
    "link": "it changes what is shown, not what is learnt, and the loss is that of the prediction"
    " without it",
}
# Options with which Vowpal Wabbit draws no random numbers. Any other is taken to draw some.
DRAW_NOTHING = frozenset(
    "sgd adaptive adax invariant normalized sparse_l2 power_t learning_rate l initial_t"
    " decay_learning_rate l1 l2 no_bias_regularization loss_function quantile_tau expectile_q"
    " logistic_min logistic_max min_prediction max_prediction binary bit_precision b noconstant"
    " constant C initial_weight sparse_weights quadratic q cubic interactions permutations"
    " leave_duplicate_interactions ftrl coin pistol ftrl_alpha ftrl_beta freegrad restart project"
    " radius fepsilon flipschitz_const holdout_off quiet random_seed".split()
)
# The names of our losses for Vowpal Wabbit's; predictions for others are measured by the squared.
LOSSES = {"logistic": "logistic", "hinge": "hinge"}


def options_in(text: str) -> dict[str, str | None]:
    """The options in a command line, without dashes, and their values."""
    found: dict[str, str | None] = {}
    last = None
    for word in text.split():
        if word.startswith("--"):
            last, equals, value = word[2:].partition("=")
            found[last] = value if equals else None
        elif word.startswith("-") and word[1:2].isalpha():
            last, found[word[1]] = word[1], word[2:] or None
        elif last is not None and found[last] is None:
            found[last] = word
    return found


def check_options(text: Any) -> None:
    """Raise `WrongInput` for an option that cannot stand in a sweep."""
    if not isinstance(text, str):
        raise WrongInput(f"options must be a text, as on vw's command line, not {text!r}")
    found = options_in(text)
    for name in found:
        shown = f"--{name}" if len(name) > 1 else f"-{name}"
        for names, why in REFUSED.items():
            if name in names.split() and (name, found[name]) != ("link", "identity"):
                raise WrongInput(f"leave {shown} out of options: {why}")


def loss(text: str) -> str:
    """The name of our loss for its predictions."""
    return LOSSES.get(options_in(text).get("loss_function") or "", "squared")


def draws(text: str) -> bool:
    """Whether its random numbers may depend on the given seed."""
    found = options_in(text)
    return "random_seed" not in found and not DRAW_NOTHING.issuperset(found)


def rows_in_use(text: str) -> int:
    """How many of the last rows it still uses."""
    size = options_in(text).get("epoch_size") or "1"
    return max(int(size), 1) if size.isdigit() else 1
