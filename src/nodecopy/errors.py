"""The three errors that nodecopy raises; each is also the builtin a caller would expect."""


class InputError(ValueError):
    """Something that was passed in cannot be used; the message names it, what is allowed and what came."""


class NotFittedError(RuntimeError):
    """A model was asked for an answer before ``fit``."""


class MissingExtraError(ImportError):
    """An optional dependency is not installed; the message names the extra that brings it."""
