"""The three errors that nodecopy raises, each inheriting the fitting built-in error, and its warning."""

from __future__ import annotations


class InputError(ValueError):
    """An argument cannot be used; the message names it, what is allowed, what was given and a way out.

    ``InputError("n must be positive; got 0.")`` or, with the name of the parameter as data,
    ``InputError("n", "must be positive; got 0.")``. The command line shows its option in place of the name.

    >>> str(InputError("n of sample", "must be positive; got 0."))
    'n of sample must be positive; got 0.'
    """

    def __str__(self) -> str:
        return " ".join(map(str, self.args))

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
