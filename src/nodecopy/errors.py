"""The three errors that nodecopy raises, each inheriting the fitting built-in error, and its warning."""


class InputError(ValueError):
    """An argument cannot be used; the message names it, what is allowed and what was given."""


class NotFittedError(RuntimeError):
    """A model is used before ``fit``."""


class MissingExtraError(ImportError):
    """An optional dependency is not installed; the message names the extra that installs it."""


class DataWarning(UserWarning):
    """The data can be used, but probably not with the result that the user expects."""
