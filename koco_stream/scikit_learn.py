"""What scikit-learn expects of an estimator: arguments by name, tags, feature names, and its own
exceptions where it is installed.

All of its checks (`sklearn.utils.estimator_checks`) are passed. What the tags exempt from is said
here, and nowhere else:

- `poor_score` of regressors: a learner sees each row once, in order, and its predictions are held
  within [−clip, clip]. The check wants R² > 0.5 with the default parameters after `fit`, on 200
  rows with labels beyond 1; that is the promise of a solver that goes on until it has converged.
- `required = False` of KORS's target: it predicts nothing, so it may be given no labels.
- `multi_class = False` of `Classifier`: the losses are those of two classes.
"""

import inspect
import warnings
from functools import cache
from typing import Any, Self

import numpy as np

from koco_stream.errors import WrongInput, nearest
from koco_stream.types import Array


class Estimator:
    """An estimator's constructor arguments by name, as its attributes have them."""

    @classmethod
    @cache
    def _defaults(cls) -> dict[str, Any]:
        return {name: q.default for name, q in inspect.signature(cls).parameters.items()}

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """The constructor's arguments by name."""
        return {name: getattr(self, name) for name in self._defaults()}

    def set_params(self, **params: Any) -> Self:
        """Change constructor arguments.

        Raises `WrongInput` with the nearest name for an unknown one.
        """
        names = list(self.get_params())
        for name, value in params.items():
            if name not in names:
                raise WrongInput(
                    f"{type(self).__name__} has no parameter {name!r}{nearest(name, names)}"
                )
            setattr(self, name, value)
        return self

    def __repr__(self) -> str:
        defaults = self._defaults()
        given = [f"{n}={v!r}" for n, v in self.get_params().items() if v != defaults[n]]
        return f"{type(self).__name__}({', '.join(given)})"


def regressor_tags(target_required: bool) -> Any:
    """The tags of a learner. Only scikit-learn asks for them."""
    from sklearn.utils import InputTags, RegressorTags, Tags, TargetTags

    return Tags(
        estimator_type="regressor",
        target_tags=TargetTags(required=target_required),
        regressor_tags=RegressorTags(poor_score=True),
        input_tags=InputTags(sparse=True),
    )


def classifier_tags() -> Any:
    """The tags of `Classifier`. Only scikit-learn asks for them."""
    from sklearn.utils import ClassifierTags, InputTags, Tags, TargetTags

    return Tags(
        estimator_type="classifier",
        target_tags=TargetTags(required=True),
        classifier_tags=ClassifierTags(multi_class=False),
        input_tags=InputTags(sparse=True),
    )


def not_fitted(model: Any) -> Exception:
    """scikit-learn's NotFittedError (a ValueError and an AttributeError), or an AttributeError
    where it is not installed.
    """
    message = (
        f"This {type(model).__name__} instance is not fitted yet: call progressive, partial_fit or"
        " fit first"
    )
    try:
        from sklearn.exceptions import NotFittedError
    except ImportError:
        return AttributeError(message)
    return NotFittedError(message)


def warn_of_column_vector() -> None:
    """y is (n, 1) and was read as (n,): by scikit-learn's DataConversionWarning (a UserWarning)
    where it is installed.
    """
    message = (
        "A column-vector y was passed when a 1d array was expected; it is read as one, y.ravel()"
        " says the same"
    )
    try:
        from sklearn.exceptions import DataConversionWarning
    except ImportError:
        warnings.warn(message, stacklevel=4)
    else:
        warnings.warn(message, DataConversionWarning, stacklevel=4)


def feature_names(X: Any) -> Array | None:
    """The names (d,) of the columns of a data frame, as objects; None for what is no data frame, or
    where names are not all text.
    """
    columns = getattr(X, "columns", None)
    if columns is None:
        return None
    names = list(columns)
    return (
        np.array(names, object) if names and all(isinstance(name, str) for name in names) else None
    )


def check_feature_names(model: str, known: Array | None, X: Any) -> None:
    """Raise `WrongInput` if X has other names of features than learning began with, `known`; warn
    where only one of the two has names.
    """
    names = feature_names(X)
    if names is None and known is not None:
        warnings.warn(
            f"X does not have valid feature names, but {model} was fitted with feature names",
            stacklevel=5,
        )
    if names is not None and known is None:
        warnings.warn(
            f"X has feature names, but {model} was fitted without feature names", stacklevel=5
        )
    if names is None or known is None or (names.size == known.size and (names == known).all()):
        return
    unseen, missing = sorted(set(names) - set(known)), sorted(set(known) - set(names))
    message = "The feature names should match those that were passed during fit.\n"
    for title, found in (
        ("Feature names unseen at fit time:", unseen),
        ("Feature names seen at fit time, yet now missing:", missing),
    ):
        if found:
            message += "\n".join(
                [
                    title,
                    *(f"- {name}" for name in found[:5]),
                    *(["- ..."] if len(found) > 5 else []),
                    "",
                ]
            )
    if not unseen and not missing:
        message += "Feature names must be in the same order as they were in fit.\n"
    raise WrongInput(message)
