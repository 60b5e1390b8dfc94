"""Objects among the settings of a method: a table ``{ class = "module.Class", ... }`` stands for one."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

from nodecopy._core.lookup import instantiate
from nodecopy._core.optional_imports import EXTRA_OF, import_optional
from nodecopy.errors import InputError

Maker: TypeAlias = Callable[[str, Mapping[str, Any]], Any]


def assembled(method: str, path: str, settings: Mapping[str, Any], device: str, **makers: Maker) -> Any:
    """Make an object of the class at ``path`` (``module.Class``) after all that its settings hold.

    A table with the key ``class`` is assembled in the same way; one with a key that ``makers`` has is given
    to that function: the path at that key, and the other keys. Whatever has a device gets ``device``.
    """

    def part(value: Any) -> Any:
        if not isinstance(value, Mapping):
            return value
        for key, make in makers.items():
            if key in value:
                return make(value[key], {name: one for name, one in value.items() if name != key})
        if "class" not in value:
            allowed = " or ".join(["class", *makers])
            raise InputError(
                f"a table in the settings of [methods.{method}] must have {allowed}; got {dict(value)}."
            )
        others = {name: one for name, one in value.items() if name != "class"}
        return assembled(method, value["class"], others, device, **makers)

    parts = {name: part(value) for name, value in settings.items()}
    try:
        whole = instantiate(method, path, parts, f"[methods.{method}]")
    except InputError as error:
        missing = getattr(error.__cause__, "name", None)
        if missing in EXTRA_OF:
            import_optional(missing, method)
        raise
    if hasattr(whole, "device"):
        whole.device = device
    return whole
