from __future__ import annotations

import pytest

from nodecopy import cli
from nodecopy._core.messages import Hint
from nodecopy.cli.output import OptionNames
from nodecopy.copying import Jaccard, NearestNeighbours


def options_of(command: str) -> OptionNames:
    return OptionNames(cli.import_command(command).params)


@pytest.mark.parametrize(
    ("command", "hint", "text"),
    [
        ("stats", Hint(header=True), " Use --header otherwise."),
        ("stats", Hint(header=False), " Use --no-header otherwise."),
        ("stats", Hint(directed=True, allow_isolated=True), " Use --directed or --allow-isolated otherwise."),
        ("stats", Hint(directed=False), ""),
        ("stats", Hint("{} leaves it out.", weight=""), " --weight '' leaves it out."),
        ("stats", Hint("Read it with {}.", read_interactions=...), ""),
        ("sample", Hint("Read it with {}.", read_interactions=...), " Read it with --interactions."),
        ("recommend", Hint("{} reads it.", user=str), " --user-column NAME reads it."),
        ("classify", Hint("Use {}.", features=("rows", "none")), " Use --scale-features rows or none."),
        ("classify", Hint("Use {}.", weights="raw", n_epochs=int), " Use --scale-weights raw."),
        ("classify", Hint("Use {}.", ignore_columns="home town"), " Use --ignore-column 'home town'."),
        ("defend", Hint("Use {}.", features=("rows", "none")), ""),
        (
            "sample",
            Hint("Use {}.", donors=(NearestNeighbours, Jaccard)),
            " Use --donors nearest-neighbours or jaccard.",
        ),
    ],
)
def test_hints_name_the_options_of_the_command(command: str, hint: Hint, text: str) -> None:
    assert options_of(command).translate("It is so.", [hint]) == "It is so." + text


@pytest.mark.parametrize(
    ("message", "translated"),
    [
        ("x.csv: ignore_columns must name columns.", "x.csv: --ignore-column must name columns."),
        ("n_graphs of BayesianGCN must be 3.", "--n-graphs must be 3."),
        ("header must be left out.", "header must be left out."),
        ("there is no column 'a'.", "there is no column 'a'."),
    ],
)
def test_errors_about_a_parameter_name_the_option(message: str, translated: str) -> None:
    assert options_of("classify").translate_subject(message) == translated
