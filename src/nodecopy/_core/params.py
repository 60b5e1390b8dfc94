"""Parameters by name, as in scikit-learn: ``get_params``, ``set_params``, and so ``clone``."""

from __future__ import annotations

import inspect
from typing import Any, Self

from nodecopy._core.lookup import check_name
from nodecopy._core.validation import show
from nodecopy.errors import InputError


class Configurable:
    """What everything that is fitted shares: its constructor's arguments can be read and changed by name.

    Examples
    --------
    >>> from nodecopy import NearestNeighbours, NodeCopying
    >>> model = NodeCopying(NearestNeighbours(n_neighbours=5), keep=0.1)
    >>> model.set_params(keep=0.2, law__n_neighbours=7).get_params()["law__n_neighbours"]
    7
    """

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the parameters of the constructor; ``deep`` adds those of parts, such as ``law__keep``."""
        params = {name: self._get_param(name) for name in self.parameter_names()}
        if deep:
            for name, part in list(params.items()):
                if isinstance(part, Configurable):
                    params |= {f"{name}__{inner}": value for inner, value in part.get_params().items()}
        return params

    def set_params(self, **changes: Any) -> Self:
        """Change parameters in place and return the object; the fitted state stays until the next ``fit``."""
        for owner, name, value in self._find_changes(changes):  # all are checked before the first is set
            setattr(owner, name, value)
        return self

    def _get_param(self, name: str) -> Any:
        try:
            return getattr(self, name)
        except AttributeError as error:
            kind = type(self).__name__
            raise InputError(
                f"{name} must be stored by the constructor of {kind} as self.{name}; got no such attribute."
            ) from error

    def _find_changes(self, changes: dict[str, Any]) -> list[tuple[Configurable, str, Any]]:
        """Return the owner, the name and the new value of each parameter, or raise an error."""
        own: dict[str, Any] = {}
        of_parts: dict[str, dict[str, Any]] = {}
        for name, value in changes.items():
            head, separator, inner = name.partition("__")
            check_name(head, self.parameter_names(), f"a parameter of {type(self).__name__}")
            if separator:
                of_parts.setdefault(head, {})[inner] = value
            else:
                own[head] = value
        owners: list[tuple[Configurable, str, Any]] = [(self, name, value) for name, value in own.items()]
        for name, inners in of_parts.items():
            part = own.get(name, getattr(self, name, None))
            if not isinstance(part, Configurable):
                where = f"{name} of {type(self).__name__}"
                raise InputError(f"{where} must have parameters to set {min(inners)}; got {show(part)}.")
            owners += part._find_changes(inners)
        return owners

    @classmethod
    def parameter_names(cls) -> list[str]:
        """Return the names of the constructor's parameters."""
        return list(inspect.signature(cls).parameters)

    def __repr__(self) -> str:
        """Return the class with the parameters that differ from their defaults."""
        signature = inspect.signature(type(self)).parameters
        changed = {
            name: value
            for name, value in self.get_params(deep=False).items()
            if name not in signature or repr(value) != repr(signature[name].default)
        }
        arguments = ", ".join(f"{name}={value!r}" for name, value in changed.items())
        return f"{type(self).__name__}({arguments})"
