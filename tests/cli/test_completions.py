from __future__ import annotations

import pytest

from tests.cli.test_cli import modules_after


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("stats kar", {"karate"}),
        ("recommend l", {"library"}),
        ("datasets fetch kar", {"karate"}),
        ("reproduce table5-p", {"table5-polblogs", "table5-pubmed"}),
        ("reproduce table2 --methods gcn,bgcn-copy-i", {"gcn,bgcn-copy-iterated"}),
        ("reproduce table2 --dataset ci", {"citeseer"}),
        ("reproduce table5 --attacks nett", {"nettack"}),
        ("reproduce robustness --attacks gnnguard-", {f"gnnguard-{budget}" for budget in (1, 2, 5, 20)}),
        ("classify --method self", {"self-training"}),
        ("evaluate library --model copy", {"copy-ease"}),
        ("infer karate --statistic transi", {"transitivity"}),
        ("defend karate --device cu", {"cuda"}),
    ],
)
def test_names_are_completed(words: str, expected: set[str]) -> None:
    printed, modules = modules_after(
        _NODECOPY_COMPLETE="complete_bash",
        COMP_WORDS=f"nodecopy {words}",
        COMP_CWORD=str(len(words.split())),
    )
    assert set(printed.split()) == expected
    assert not {"torch", "scipy.stats"} & modules
