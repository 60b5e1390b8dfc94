"""The three errors that nodecopy raises, each inheriting the fitting built-in error, and its warning."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any


class InputError(ValueError):
    """An argument cannot be used; the message names it, what is allowed, what was given and a way out.

    ``InputError("n must be positive; got 0.")`` or, with the name of the parameter as data,
    ``InputError("n", "must be positive; got 0.")``. ``settings`` avoid the error. The command line shows
    options in place of the names, and ``place`` is a file that the error is about.

    >>> str(InputError("n of sample", "must be positive; got 0."))
    'n of sample must be positive; got 0.'
    >>> str(InputError("line 3 has weight 'x'. Leave weights out.", weight=""))
    "line 3 has weight 'x'. Leave weights out (weight='')."
    """

    def __init__(self, *args: Any, **settings: Any) -> None:
        super().__init__(*args)
        self.settings, self.place = settings, ""

    def __str__(self) -> str:
        return self.describe(self.parameter, [f"{name}={value!r}" for name, value in self.settings.items()])

    def describe(self, parameter: str | None, settings: Iterable[str]) -> str:
        """Return the message with these names of the parameter and the settings."""
        words = self.args if parameter is None else (parameter, *self.args[1:])
        text, ways_out = self.place + " ".join(map(str, words)), " or ".join(settings)
        return f"{text.removesuffix('.')} ({ways_out})." if ways_out else text

    @property
    def parameter(self) -> str | None:
        """The name of the parameter, perhaps followed by " of " and its owner; ``None`` if there is none."""
        return str(self.args[0]) if len(self.args) > 1 else None


class NotFittedError(RuntimeError):
    """A model is used before ``fit``."""


class MissingExtraError(ImportError):
    """An optional dependency is not installed; the message names the extra that installs it."""


class DataWarning(UserWarning):
    """The data can be used, but probably not with the result that the user expects."""

    def __str__(self) -> str:
        message, *parameters = map(str, self.args)
        return f"{message} Set {' or '.join(parameters)} to change this." if parameters else message
