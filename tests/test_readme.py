"""Run the snippets of the README and check its commands, links and numbers, and those of "Few labels"."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from nodecopy.cli import import_command
from tests import documented_results
from tests.defence_tables import worst_table
from tests.documented_results import README, documented_tables, find_block
from tests.uncertainty_tables import uncertainty_tables

TEXT = README.read_text(encoding="utf-8")


def test_snippets_run_in_order(capsys: pytest.CaptureFixture[str]) -> None:
    snippets = re.findall(r"```python\n(.*?)```", TEXT, re.DOTALL)
    names: dict[str, object] = {}
    for snippet in snippets:
        exec(compile(snippet, str(README), "exec"), names)
        assert len([line for line in snippet.splitlines() if line.strip()]) <= 5
    assert len(snippets) >= 5
    assert "transitivity: 0.2557, standard error" in capsys.readouterr().out


def test_commands_and_options_exist() -> None:
    command_lines = re.findall(r"^nodecopy (\w+)(.*)$", TEXT, re.MULTILINE)
    assert command_lines
    for name, rest in command_lines:
        allowed = {option for parameter in import_command(name).params for option in parameter.opts}
        used = set(re.findall(r"(?<!\S)(--?[a-z][\w-]*)", rest.partition("#")[0]))
        assert used <= allowed


def test_link_targets_exist() -> None:
    for target in re.findall(r"\]\(([^)]+)\)", TEXT):
        assert target.startswith("https://") or (README.parent / target).exists(), target


@pytest.mark.parametrize(("path", "name"), documented_tables(), ids=lambda part: Path(part).stem)
def test_numbers_agree_with_the_results(path: Path, name: str) -> None:
    table = documented_tables()[path, name]
    assert find_block(path, name)[0] == table, "update it by python -m tests.documented_results"


def test_readme_fits_on_two_screens() -> None:
    assert len(TEXT.splitlines()) <= 110


def test_the_tables_of_few_labels_show_means_and_the_gain_of_copying(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    header = "dataset,labels,visible_validation,score,method,n,mean,best,seconds,published"
    rows = [
        "cora,5,500,accuracy,gcn,50,68.5,False,,,,",
        "cora,5,500,accuracy,default-alone,50,75.71,False,1.25,,,",
        "cora,5,500,accuracy,default,50,76.24,True,2,,0.53,0.0004,-1.2,0.03",
    ]
    path = tmp_path / "few-labels.csv"
    for over in ("default-alone", "self-training"):
        header += f",gain_over_{over},p_over_{over}"
    path.write_text("\n".join([header, *rows, ""]))
    monkeypatch.setattr(documented_results, "RESULTS", tmp_path)
    lines = documented_results.few_labels_table("dataset", "accuracy", labels="5").splitlines()
    assert lines[0] == "| accuracy | cora |"
    alone, default = "SelfTraining(prior=0), no copying", "SelfTraining(), the default"
    for line in ("| GCN | 68.5 |", f"| {alone} | 75.7 |", f"| {default} | **76.2** |"):
        assert line in lines
    assert lines[-3:] == [
        f"| {default} | **76.2** |",
        "| gain of the default over itself without copying | +0.5, p < 0.001 |",
        "| gain of the default over self-training of GCNs | -1.2, p = 0.03 |",
    ]
    assert documented_results.gains_table("5").splitlines()[2:] == [
        f"| {default} over {alone} | +0.5, p < 0.001 |",
        f"| {default} over self-training of GCNs | -1.2, p = 0.03 |",
    ]
    assert "ahead of self-training of GCNs in 0 of 1 computed columns and behind in 1; gains of -1.2" in (
        documented_results.describe_columns()
    )
    (row,) = documented_results.results_table().splitlines()[2:]
    assert f"| {alone} 75.7 | {default} 76.2 (+0.5, p < 0.001) |" in row


def test_the_tables_of_uncertainty_show_pairs_of_scores_and_count_significant_gains() -> None:
    selective, errors = (f"{name} by epistemic" for name in ("accuracy without 0.2", "errors auc"))
    values = [
        ("cora", "gcn", selective, "74.04", "", ""),
        ("cora", "bgcn-copy", selective, "80.0", "5.96", "0.001"),
        ("citeseer", "bgcn-copy", selective, "70.0", "-1.0", "0.04"),
        ("pubmed", "bgcn-copy", selective, "70.0", "1.0", "0.2"),
        ("cora", "bgcn-copy", errors, "78.0", "-1.0", "0.01"),
        ("cora", "bgcn-copy", errors.replace("epistemic", "total"), "78.1", "-0.9", "0.01"),
    ]
    names = ("dataset", "method", "score", "mean", "gain_over_gcn", "p_over_gcn")
    rows = [dict(zip(names, row, strict=True)) | {"labels": "5", "n": "8"} for row in values]
    tables = uncertainty_tables(rows)
    assert (
        "- BGCN-Copy: selective accuracy significantly higher in 1 of 3 comparisons and lower in 1; "
        "detection of errors significantly higher in 0 of 1 comparisons and lower in 1."
    ) in tables["comparison"].splitlines()
    assert "better than the epistemic one in 1 of 1 cells" in tables["comparison"].splitlines()[-1]
    lines = tables["selection"].splitlines()
    assert lines[0].startswith("|  | cora, 5 labels (8 splits) | citeseer, 5 labels (8 splits) |")
    assert "| GCN | - / 74.0 | - / - | - / - |" in lines
    assert all(text.startswith("Not computed yet") for text in uncertainty_tables([]).values())


def test_the_table_of_public_splits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(documented_results, "RESULTS", tmp_path)
    assert documented_results.public_splits_table().startswith("Not computed yet")
    path = tmp_path / "public-splits.csv"
    path.write_text(
        "dataset,score,method,mean,published,best\n"
        "gowalla,recall@20,copy-ease,19.3,,True\n"
        "gowalla,ndcg@20,copy-ease,16.01,,True\n"
        "gowalla,recall@20,ease,17.6,17.65,False\n"
        "gowalla,ndcg@20,ease,14.6,14.67,False\n"
        "yelp2018,recall@20,bspm-em,,7.2,False\n",
        encoding="utf-8",
    )
    lines = documented_results.public_splits_table().splitlines()
    assert lines[0] == "| recall@20 / ndcg@20 | gowalla | yelp2018 |"
    assert "| EASE | 17.60 / 14.60 (17.65 / 14.67) | - |" in lines
    assert "| CopyEASE | **19.30** / **16.01** | - |" in lines
    assert "| BSPM-EM (its paper) | - | (7.20 / -) |" in lines


def test_the_lowest_accuracy_is_that_of_the_worst_attack() -> None:
    values = [
        ("evidence-5", "evidence", "73.5"),
        ("expected-5", "evidence", "71.25"),
        ("fga-5", "gnnguard", "3"),
    ]
    rows = [
        {"dataset": "cora", "attack": attack, "method": method, "score": "accuracy", "mean": mean, "n": "10"}
        for attack, method, mean in values
    ]
    (line,) = worst_table(rows).splitlines()[2:]  # GNNGuard was not run under the attack that knows it
    assert line == "| Evidence, self-trained APPNP | 71.2, expected donors | - | - | - |"
    assert worst_table([]).startswith("Not computed yet")
