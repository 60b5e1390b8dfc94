"""The three errors that nodecopy raises; each inherits the fitting built-in error."""


class InputError(ValueError):
    """An argument cannot be used; the message names it, what is allowed and what was given."""


class NotFittedError(RuntimeError):
    """A model is used before ``fit``."""


class MissingExtraError(ImportError):
    """An optional dependency is not installed; the message names the extra that installs it."""
