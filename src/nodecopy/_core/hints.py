"""Hints in messages: which parameters change what was decided, or avoid an error.

A hint keeps the parameters beside its text, so that the command line can name its options instead.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

PLACEHOLDERS = {str: "NAME", int: "NUMBER"}
"""What stands for any value of a type."""


class Hint:
    """A sentence about parameters.

    Parameters
    ----------
    text
        The sentence; ``{}`` stands for the parameters, joined by "or", and ``{name}`` for a single one.
    call
        What stands for the parameters in Python, if they are not those of the function that was called.
    parameters
        Values by parameter. A tuple stands for any of its values, ``str`` and ``int`` for any name or number,
        another class for an instance of it, and ``...`` for the parameter, or a call, alone.

    Examples
    --------
    >>> str(Hint(header=False))
    'Use header=False otherwise.'
    >>> str(Hint("{} reads another column.", weight=str))
    'weight=NAME reads another column.'
    """

    def __init__(self, text: str = "Use {} otherwise.", call: str = "", /, **parameters: Any) -> None:
        self.text, self.call = text, call
        self.parameters = parameters

    def __str__(self) -> str:
        return self.text.format(self.call) if self.call else self.format(name_parameter)

    def format(self, name: Callable[[str, Any], str | None]) -> str:
        """Return the sentence with parameters as ``name(parameter, value)`` writes them.

        Parameters for which it returns ``None`` are left out, and with them the sentence, unless ``{}``
        still stands for another one.
        """
        names = {parameter: name(parameter, value) for parameter, value in self.parameters.items()}
        existing = [text for text in names.values() if text]
        if not existing or ("{}" not in self.text and len(existing) < len(names)):
            return ""
        return self.text.format(" or ".join(existing), **names)


def name_parameter(parameter: str, value: Any) -> str:
    """Return a parameter with its value as in a call in Python.

    >>> name_parameter("features", ("rows", "none", "binary"))
    "features='rows', 'none' or 'binary'"
    """
    if value is ...:
        return parameter
    values = value if isinstance(value, tuple) else (value,)
    return f"{parameter}={list_alternatives([_name_value(choice) for choice in values])}"


def list_alternatives(words: Sequence[str]) -> str:
    """Return words with commas and "or" between them.

    >>> list_alternatives(["a", "b", "c"])
    'a, b or c'
    """
    return " or ".join([", ".join(words[:-1]), words[-1]] if len(words) > 1 else words)


def _name_value(value: Any) -> str:
    if isinstance(value, type):
        return PLACEHOLDERS.get(value, f"{value.__name__}()")
    return repr(value)
