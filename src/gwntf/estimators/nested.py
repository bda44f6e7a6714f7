"""Nested parameters of estimators whose default is a shorthand for an object with parameters."""

from collections.abc import Callable, Mapping
from typing import Any, ClassVar, Self

from sklearn.base import BaseEstimator

from gwntf.estimators.options import TransportOptions


class NestedDefaults(BaseEstimator):  # type: ignore[misc]
    """Makes names such as ``graph__n_neighbors`` valid also while `graph` is a shorthand such as "knn"."""

    _shorthands: ClassVar[Mapping[str, tuple[Any, Callable[[], BaseEstimator]]]] = {
        "transport": (None, TransportOptions),
    }
    """By parameter: the shorthand, and a function that returns the object it stands for."""

    def _shorthand_of(self, name: str) -> Callable[[], BaseEstimator] | None:
        """Return the function that builds the object of a shorthand, or None if the value is not the shorthand."""
        shorthand, make = self._shorthands[name]
        value = getattr(self, name, self)  # `self` if the class does not have the parameter
        same = value is None if shorthand is None else isinstance(value, str) and value == shorthand
        return make if same else None

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the parameters; with `deep` also nested ones, including those of shorthands."""
        params: dict[str, Any] = super().get_params(deep)
        for name in self._shorthands if deep else ():
            make = self._shorthand_of(name)
            if make is not None:
                params |= {f"{name}__{inner}": value for inner, value in make().get_params().items()}
        return params

    def set_params(self, **params: Any) -> Self:
        """Set parameters; setting a nested one replaces a shorthand by the object it stands for."""
        for name in self._shorthands:
            start = f"{name}__"
            make = None if name in params else self._shorthand_of(name)
            inner = {key[len(start) :]: value for key, value in params.items() if key.startswith(start)}
            if make is not None and inner:
                params = {key: value for key, value in params.items() if not key.startswith(start)}
                params[name] = make().set_params(**inner)
        super().set_params(**params)
        return self
