"""Kinds of tables: what a table holds, by the names of its columns."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, Literal, TypeAlias

from nodecopy._core.hints import Hint
from nodecopy._core.notices import warn_about_data
from nodecopy.errors import InputError
from nodecopy.io.column_types import TIMES
from nodecopy.io.headers import N_KEYS, Roles, has_usual_names, match_names
from nodecopy.io.table_files import read_names, read_table

EDGE_COLUMNS: Roles = {
    "source": (
        *("source", "src", "from", "u", "source_id", "from_node", "fromnodeid", "node1", "node_1", "citing"),
        *("payer", "sender", "caller", "follower"),
    ),
    "target": (
        *("target", "dst", "to", "v", "target_id", "to_node", "tonodeid", "node2", "node_2", "cited"),
        *("payee", "receiver", "recipient", "callee", "followee"),
    ),
    "weight": ("weight", "w", "value"),
}
NODE_COLUMNS: Roles = {"id": ("id", "node", "node_id", "name"), "label": ("label", "class", "y")}
INTERACTION_COLUMNS: Roles = {
    "user": (
        *("user", "user_id", "userid", "customer", "customer_id", "customerid"),
        *("reviewer", "reviewerid", "listener", "client", "client_id", "visitor", "visitor_id", "visitorid"),
    ),
    "item": (
        *("item", "item_id", "itemid", "movie", "movie_id", "movieid", "product", "product_id", "productid"),
        *("asin", "artist", "stockcode", "sku", "article", "article_id", "book", "book_id", "bookid", "isbn"),
        *("song", "song_id", "track", "track_id", "video", "video_id", "business_id", "venue", "venue_id"),
    ),
    "rating": (
        *("rating", "stars", "score", "weight", "value", "count", "overall", "quantity", "qty", "plays"),
    ),
    "time": TIMES,
}
Kind: TypeAlias = Literal["edges", "labels", "interactions", "features"]
"""What a table holds."""
KINDS: Mapping[Kind, Roles] = {
    "edges": EDGE_COLUMNS,
    "labels": NODE_COLUMNS,
    "interactions": INTERACTION_COLUMNS,
}
"""The kinds of tables that are recognised by the names of their columns."""


def guess_kind(path: Any, *, id: str | None = None) -> Kind:
    """Return what a file or data frame holds by its header, ``"edges"`` if nothing speaks for another kind.

    A table without names of one of ``KINDS`` holds features if its first column has no value twice, and is
    named as ids (or ``id``) or followed by more columns than an edge has.
    """
    names = read_names(path)
    if kind := match_kind(names):
        return kind
    is_named = names[0].lower() in NODE_COLUMNS["id"] or names[0] == id
    if is_named or len(names) > len(EDGE_COLUMNS):
        first = list(read_table(path, lambda *_: True).columns[0])
        if len(set(first)) == len(first):
            return "features"
    return "edges"


def match_kind(names: Sequence[str]) -> Kind | None:
    """Return the first of ``KINDS`` whose required columns have usual names, else usual words in their names.

    Words do not count beside names with digits, since a row of data may have them: ``user 1,item 7``.
    """
    lower = {name.strip().lower() for name in names}
    kinds: list[Kind] = [kind for kind, roles in KINDS.items() if has_usual_names(lower, roles)]
    if not re.search(r"\d", "".join(names)):
        kinds += [
            kind
            for kind, roles in KINDS.items()
            if match_names(names, roles).keys() >= set(list(roles)[:N_KEYS])
        ]
    return kinds[0] if kinds else None


def check_kind(names: Sequence[str], kind: Kind, file: str) -> None:
    """Raise an error, or warn about interactions that are read as edges, if a header is of another kind."""
    other = match_kind(names)
    if other in (None, kind) or has_usual_names({name.strip().lower() for name in names}, KINDS[kind]):
        return
    if (kind, other) == ("edges", "interactions"):
        warn_about_data(
            f"{file} has columns for users and items, but is read as edges: a user and an item with the same "
            "id are one node.",
            Hint("Read it as interactions with {}.", read_interactions=...),
            Hint("Name its columns with {source} and {target} if all are nodes.", source=str, target=str),
        )
        return
    roles = list(KINDS[kind])[:N_KEYS]
    raise InputError(
        f"the header ({', '.join(names)}) is that of a table of {other}, not of {kind}. Give another file.",
        Hint(f"Or name the columns with {{{roles[0]}}} and {{{roles[1]}}}.", **dict.fromkeys(roles, str)),
    )
