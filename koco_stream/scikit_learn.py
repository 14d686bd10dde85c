"""The protocol of scikit-learn estimators: arguments by name, tags, feature names, exceptions.

All of scikit-learn's estimator checks pass, but for those that tags exempt: `poor_score` of
regressors (R² > 0.5 after one pass over 200 rows with labels beyond `clip`), the target of KORS,
and `multi_class` of `Classifier`; of a `Classifier` of `Constant`, those of accuracy and ties fail.
"""

import inspect
from collections.abc import Callable
from functools import cache, wraps
from typing import Any, Self

import numpy as np

from koco_stream.errors import WrongInput, WrongType, nearest, warn
from koco_stream.one_at_a_time import OneAtATime
from koco_stream.types import Array


class Estimator(OneAtATime):
    """An estimator whose constructor's arguments are attributes of the same names."""

    def __init_subclass__(cls, **words: Any) -> None:
        super().__init_subclass__(**words)
        if "__init__" in vars(cls):
            cls.__init__ = _checking_names(cls.__init__)  # type: ignore[method-assign]

    @classmethod
    @cache
    def _defaults(cls) -> dict[str, Any]:
        return {name: q.default for name, q in inspect.signature(cls).parameters.items()}

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """The constructor's arguments by name."""
        return {name: getattr(self, name) for name in self._defaults()}

    def set_params(self, **params: Any) -> Self:
        """Set constructor arguments by name."""
        names = list(self.get_params())
        for name, value in params.items():
            if name not in names:
                raise WrongInput(
                    f"{type(self).__name__} has no parameter {name!r}{nearest(name, names)}"
                )
            setattr(self, name, value)
        return self

    def __getattr__(self, name: str) -> Any:
        # Python calls this for missing attributes only, such as those that learning creates.
        if name in ("_state", "_params") or (name.endswith("_") and not name.startswith("_")):
            raise not_fitted(self)
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    def __repr__(self) -> str:
        defaults = self._defaults()
        given = [f"{n}={v!r}" for n, v in self.get_params().items() if v != defaults[n]]
        return f"{type(self).__name__}({', '.join(given)})"

    def _repr_html_(self) -> str | None:
        try:
            from sklearn.utils import estimator_html_repr
        except ImportError:
            return None
        return str(estimator_html_repr(self))


def _checking_names(constructor: Callable[..., None]) -> Callable[..., None]:
    arguments = inspect.signature(constructor).parameters
    if any(one.kind is one.VAR_KEYWORD for one in arguments.values()):
        return constructor
    names = list(arguments)[1:]

    @wraps(constructor)
    def checking(self: Any, *given: Any, **named: Any) -> None:
        for name in named:
            if name not in names:
                raise WrongType(
                    f"{type(self).__name__} has no parameter {name!r}{nearest(name, names)}"
                )
        constructor(self, *given, **named)

    return checking


def estimator_tags(kind: str, target_required: bool = True) -> Any:
    """scikit-learn's tags of a "regressor", as learners are, or a "classifier"."""
    from sklearn.utils import ClassifierTags, InputTags, RegressorTags, Tags, TargetTags

    return Tags(
        estimator_type=kind,
        target_tags=TargetTags(required=target_required),
        regressor_tags=RegressorTags(poor_score=True) if kind == "regressor" else None,
        classifier_tags=ClassifierTags(multi_class=True) if kind == "classifier" else None,
        input_tags=InputTags(sparse=True),
    )


def _of_scikit_learn(name: str, otherwise: Any) -> Any:
    try:
        import sklearn.exceptions
    except ImportError:
        return otherwise
    return getattr(sklearn.exceptions, name)


def not_fitted(model: Any) -> Exception:
    """scikit-learn's NotFittedError, or an AttributeError without scikit-learn."""
    error: Exception = _of_scikit_learn("NotFittedError", AttributeError)(
        f"This {type(model).__name__} instance is not fitted yet: call progressive, partial_fit or"
        " fit first"
    )
    return error


def warn_of_column_vector() -> None:
    """Warn that (n, 1) labels were read as (n,)."""
    warn(
        "A column-vector y was passed when a 1d array was expected; it is read as one, y.ravel()"
        " says the same",
        _of_scikit_learn("DataConversionWarning", UserWarning),
    )


def feature_names(X: Any) -> Array | None:
    """A data frame's or Arrow table's column names (d,), if all are texts and none holds lists."""
    names = list(getattr(X, "columns", ()))
    if hasattr(X, "column_names"):
        from pyarrow import types

        kinds = [kind.value_type if types.is_dictionary(kind) else kind for kind in X.schema.types]
        names = [] if any(map(types.is_nested, kinds)) else X.column_names
    return np.array(names, object) if names and all(isinstance(n, str) for n in names) else None


def check_feature_names(model: str, known: Array | None, X: Any) -> None:
    """Raise `WrongInput` if X has other names than `known`; warn if only one has any."""
    names = feature_names(X)
    if (names is None) != (known is None):
        has, fitted = ("does not have valid", "with") if names is None else ("has", "without")
        warn(f"X {has} feature names, but {model} was fitted {fitted} feature names")
    if names is None or known is None or (names.size == known.size and (names == known).all()):
        return
    unseen, missing = sorted(set(names) - set(known)), sorted(set(known) - set(names))
    message = "The feature names should match those that were passed during fit.\n"
    for title, found in (
        ("Feature names unseen at fit time:", unseen),
        ("Feature names seen at fit time, yet now missing:", missing),
    ):
        if found:
            listed = [f"- {name}" for name in found[:5]]
            more = ["- ..."] if len(found) > 5 else []
            message += "\n".join([title, *listed, *more, ""])
    if not unseen and not missing:
        message += "Feature names must be in the same order as they were in fit.\n"
    raise WrongInput(message)
