"""The three errors that nodecopy raises, each inheriting the fitting built-in error, and its warning."""

from typing import Any


class _WithHints(Exception):  # noqa: N818
    """A message and hints: sentences after it that name parameters."""

    def __init__(self, message: str = "", *hints: Any) -> None:
        super().__init__(" ".join(map(str, (message, *hints))))
        self.message, self.hints = message, hints


class InputError(_WithHints, ValueError):
    """An argument cannot be used; the message names it, what is allowed and what was given."""


class NotFittedError(RuntimeError):
    """A model is used before ``fit``."""


class MissingExtraError(ImportError):
    """An optional dependency is not installed; the message names the extra that installs it."""


class DataWarning(_WithHints, UserWarning):
    """The data can be used, but probably not with the result that the user expects."""
