"""Graph models and embeddings to compare node copying with.

Read :mod:`.vgae` first, the graph autoencoders, whose means are embeddings; :mod:`.pairs` is their loss
over all pairs of nodes without an N x N matrix, :mod:`.links` how well they predict edges they have not
seen. Names are imported when they are used, so that nothing but the trained ones needs torch.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from nodecopy.generators.links import Links as Links
    from nodecopy.generators.links import LinkSplit as LinkSplit
    from nodecopy.generators.links import link_split as link_split
    from nodecopy.generators.vgae import GAE as GAE
    from nodecopy.generators.vgae import VGAE as VGAE

HOME_OF = {
    "GAE": "vgae",
    "LinkSplit": "links",
    "Links": "links",
    "VGAE": "vgae",
    "link_split": "links",
}

__all__ = list(HOME_OF)


def __getattr__(name: str) -> Any:
    if name in HOME_OF:
        return getattr(importlib.import_module(f"nodecopy.generators.{HOME_OF[name]}"), name)
    raise AttributeError(f"module 'nodecopy.generators' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
