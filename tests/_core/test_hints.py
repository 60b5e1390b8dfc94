from __future__ import annotations

import pytest

from nodecopy._core.messages import Hint
from nodecopy.copying import Jaccard, NearestNeighbours


@pytest.mark.parametrize(
    ("hint", "text"),
    [
        (Hint(header=False), "Use header=False otherwise."),
        (Hint("Use {}.", features=("rows", "none", "binary")), "Use features='rows', 'none' or 'binary'."),
        (Hint("{} counts.", weight=str, n_neighbours=int), "weight=NAME or n_neighbours=NUMBER counts."),
        (Hint("Give {a} and {b}.", a=1, b=""), "Give a=1 and b=''."),
        (
            Hint("Use {}.", donors=(NearestNeighbours, Jaccard)),
            "Use donors=NearestNeighbours() or Jaccard().",
        ),
        (Hint("Read it with {}.", read_interactions=...), "Read it with read_interactions."),
    ],
)
def test_text_in_python(hint: Hint, text: str) -> None:
    assert str(hint) == text


@pytest.mark.parametrize(("text", "expected"), [("Use {}.", "Use b."), ("Use {a} and {b}.", "")])
def test_parameters_without_a_name_are_left_out(text: str, expected: str) -> None:
    hint = Hint(text, a=1, b=2)
    assert hint.format(lambda parameter, _: "b" if parameter == "b" else None) == expected
    assert hint.format(lambda *_: None) == ""
