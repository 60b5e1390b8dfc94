"""The options of a command in place of the parameters that messages of the package name."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Sequence
from typing import Any

from nodecopy._core.hints import PLACEHOLDERS, Hint, list_alternatives

OPTIONS = {
    "user": "user-column",
    "ignore_columns": "ignore-column",
    "read_interactions": "interactions",
    "features": "scale-features",
    "weights": "scale-weights",
}
"""Options that are not named as the parameter of a hint."""


class OptionNames:
    """The options of a command.

    Parameters
    ----------
    parameters
        The parameters of the command, as Typer describes them.
    """

    def __init__(self, parameters: Sequence[Any] = ()) -> None:
        self._options = {name: option for option in parameters for name in option.opts}

    def translate(self, message: str, hints: Iterable[Hint]) -> str:
        """Return a message with those hints for which the command has options."""
        sentences = (hint.format(self.name_parameter) for hint in hints)
        return " ".join([message, *filter(None, sentences)])

    def name_parameter(self, parameter: str, value: Any) -> str | None:
        """Return the option and value that stand for a parameter of a hint; ``None`` if there is none."""
        name = "--" + OPTIONS.get(parameter, parameter).replace("_", "-")
        option = self._options.get(name)
        if option is None:
            return None
        if value is False:
            return next(iter(option.secondary_opts), None)
        if value in (True, ...) or getattr(option, "is_flag", False):
            return name
        values = value if isinstance(value, tuple) else (value,)
        return f"{name} {list_alternatives([_name_value(choice) for choice in values])}"

    def translate_subject(self, message: str) -> str:
        """Return an error about a parameter ("x of Class must ...") with the option that sets it, if any."""
        match = re.match(r"(.*: )?([a-z_]+)( of [\w.-]+)? must ", message)
        if match is None:
            return message
        for word in (match[2], match[2].removesuffix("s")):
            name = f"--{word.replace('_', '-')}"
            option = self._options.get(name)
            # Options with a panel name columns, which no such message is about.
            if option is not None and getattr(option, "rich_help_panel", None) is None:
                owner = match[3] or ""
                kept = "" if owner[4:5].isupper() else owner  # the name of an experiment, not of a class
                return f"{match[1] or ''}{name}{kept} must {message[match.end() :]}"
        return message


def _name_value(value: Any) -> str:
    """Return a value as on the command line; names of classes are in kebab case there."""
    if isinstance(value, type):
        return PLACEHOLDERS.get(value) or re.sub(r"(?<=[a-z])(?=[A-Z])", "-", value.__name__).lower()
    return shlex.quote(str(value))
