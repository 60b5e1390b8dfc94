"""What the reference generates from the package: pages of commands, and complete lists of parameters."""

from __future__ import annotations

import importlib
import inspect
import re
from pathlib import Path
from typing import Any

import typer

from nodecopy import cli

HERE = Path(__file__).parent
SECTION = re.compile(r"^(\w+)\n-+$", re.MULTILINE)
GROUPS = ("datasets",)
"""Commands that consist of commands."""


def list_commands() -> dict[str, Any]:
    """Return every command by its name; commands of a group have two words."""
    commands: dict[str, Any] = {}
    for name in cli.COMMANDS:
        command = cli.import_command(name)
        parts = command.commands if name in GROUPS else {"": command}
        commands |= {f"{name} {part}".strip(): child for part, child in parts.items()}
    return commands


def render_command(name: str, command: Any) -> str:
    """Return the page of a command in Markdown."""
    context = typer.Context(command, info_name=f"nodecopy {name}")
    examples = command.epilog.removeprefix("Examples\n")
    parts = [f"# nodecopy {name}", _escape(command.help), f"```text\n{command.get_usage(context)}\n```"]
    parts += ["## Examples", f"```text\n{examples}\n```"]
    panels: dict[str, list[str]] = {"Arguments": [], "Options": []}
    for parameter in command.params:
        kind = "Arguments" if parameter.param_type_name == "argument" else "Options"
        text = _escape(" ".join(parameter.help.split()))
        row = f"| `{_name_parameter(parameter)}` | {text} |"
        panels.setdefault(parameter.rich_help_panel or kind, []).append(row)
    for title, rows in panels.items():
        if rows:
            parts += [f"## {title}", "\n".join(["| option | meaning |", "| --- | --- |", *rows])]
    return "\n\n".join(parts) + "\n"


def _name_parameter(parameter: Any) -> str:
    if parameter.param_type_name == "argument":
        return str(parameter.metavar or parameter.name.upper())
    names = ", ".join([*sorted(parameter.opts, key=len), *parameter.secondary_opts])
    return f"{names} {parameter.metavar or ''}".strip()


def _escape(text: str) -> str:
    """Return text with options as code, and without the characters that Markdown reads."""
    text = re.sub(r"([*_|<>\[\]])", r"\\\1", text)
    return re.sub(r"(?<![\w-])--?[a-z][a-z-]*", lambda option: f"`{option[0]}`", text)


def write_command_pages() -> None:
    """Write a page for each command, and remove those of earlier builds."""
    folder = HERE / "commands"
    folder.mkdir(exist_ok=True)
    pages = {
        f"{name.replace(' ', '-')}.md": render_command(name, command)
        for name, command in list_commands().items()
    }
    for path in folder.glob("*.md"):
        if path.name not in pages:
            path.unlink()
    for name, text in pages.items():
        write_if_changed(folder / name, text)


def write_if_changed(path: Path, text: str) -> None:
    """Write a file, unless it holds the text already: Sphinx reads pages again by their time."""
    if not path.exists() or path.read_text(encoding="utf-8") != text:
        path.write_text(text, encoding="utf-8")


def list_parameters(cls: type) -> dict[str, str]:
    """Return the text about each parameter of a class that it, a base class or a class that it names has.

    A parameter without a text has an empty one.
    """
    texts: dict[str, str] = {}
    for owner in _owners(cls):
        for names, text in _parse_parameters(inspect.getdoc(owner) or ""):
            for name in names:
                texts.setdefault(name, text)
    return {name: texts.get(name, "") for name in inspect.signature(cls).parameters}


def _owners(cls: type) -> list[type]:
    """Return the classes in whose docstrings parameters may be described."""
    bases = [base for base in cls.__mro__ if base.__module__.startswith("nodecopy")]
    package = importlib.import_module(".".join(cls.__module__.split(".")[:2]))
    others = []
    for base in bases:
        for name in re.findall(r":class:`[.~]?(?:\w+\.)*(\w+)`", inspect.getdoc(base) or ""):
            other = getattr(package, name, None)
            if isinstance(other, type) and other not in bases:
                others.append(other)
    return bases + others


def _parse_parameters(doc: str) -> list[tuple[list[str], str]]:
    """Return the names and the text of each entry of the section of parameters."""
    parts = SECTION.split(doc)
    bodies = dict(zip(parts[1::2], parts[2::2], strict=True))
    entries = re.findall(r"^(\S.*)\n((?:(?: +.*)?\n?)*)", bodies.get("Parameters", ""), re.MULTILINE)
    return [
        (
            [name.strip().lstrip("*") for name in head.partition(":")[0].split(",")],
            inspect.cleandoc(text).strip(),
        )
        for head, text in entries
        if "..." not in head
    ]


def complete_parameters(app: Any, what: str, name: str, obj: Any, options: Any, lines: list[str]) -> None:
    """Replace the section of parameters of an estimator by all of its parameters with their defaults."""
    if what != "class" or not hasattr(obj, "parameter_names"):
        return
    texts = list_parameters(obj)
    parts = SECTION.split("\n".join(lines))
    sections = dict(zip(parts[1::2], parts[2::2], strict=True))
    sections.pop("Parameters", None)
    parameters = "".join(
        f"{parameter}{_describe_default(obj, parameter)}\n"
        + "".join(f"    {line}\n" for line in text.splitlines())
        for parameter, text in texts.items()
    )
    if texts:
        sections = {"Parameters": f"\n{parameters}\n"} | sections
    bodies = [f"{title}\n{'-' * len(title)}{body}" for title, body in sections.items()]
    lines[:] = (parts[0] + "\n".join(bodies)).split("\n")


def split_attributes(app: Any, what: str, name: str, obj: Any, options: Any, lines: list[str]) -> None:
    """Give attributes that share a description ("left_, right_") an entry each."""
    parts = SECTION.split("\n".join(lines))
    if what != "class" or "Attributes" not in parts:
        return
    body = parts.index("Attributes") + 1
    entry = re.compile(r"^(\w+(?:, \w+)+)\n((?:(?: +.*)?\n?)*)", re.MULTILINE)
    # A blank line between the entries would end the section.
    parts[body] = entry.sub(
        lambda m: "".join(f"{name}\n{m[2].rstrip()}\n" for name in m[1].split(", ")), parts[body]
    )
    titles = [
        f"{title}\n{'-' * len(title)}{text}" for title, text in zip(parts[1::2], parts[2::2], strict=True)
    ]
    lines[:] = (parts[0] + "".join(titles)).split("\n")


def _describe_default(cls: Any, parameter: str) -> str:
    """Return the default of a parameter; where that is ``None``, that of the preset ``"default"``."""
    default = inspect.signature(cls).parameters[parameter].default
    if default is inspect.Parameter.empty:
        return ""
    preset = getattr(cls, "presets", {}).get("default")
    if default is None and hasattr(preset, parameter):
        default = getattr(preset, parameter)
    text = repr(default)
    return f" : default ``{text}``" if len(text) < 60 and " at 0x" not in text else ""
