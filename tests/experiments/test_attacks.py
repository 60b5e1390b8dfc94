"""Experiments under attack: the same targets and flips for every method, stored and read again."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from nodecopy.attacks import DICE, Perturbation
from nodecopy.errors import InputError
from nodecopy.experiments import config as toml
from nodecopy.experiments.rendering import summarise
from nodecopy.experiments.runner import run
from nodecopy.experiments.store import Store
from nodecopy.experiments.tasks.attack import score_detection
from tests.experiments.fakes import load

TOML = """
title = "Under attack"
task = "attack"
[protocol]
datasets = ["karate"]
labels = [2]
trials = 3
validation = 4
test = 16
n_targets = 5
[attacks.none]
title = "no attack"
[attacks.dice]
title = "DICE"
class = "nodecopy.attacks.DICE"
budget = 1.0
[methods.weak]
title = "Weak"
class = "tests.experiments.fakes.Fake"
settings = { skill = 0.3 }
[methods.strong]
title = "Strong"
class = "tests.experiments.fakes.Fake"
settings = { skill = 9.0 }
gain_over = ["weak"]
[published.karate]
weak = ["-", "60.0±5.0"]
"""
SUSPECTS = """
[methods.suspects]
title = "Suspects"
class = "nodecopy.defend.SuspectCorrection"
settings = { n_donors = 3 }
"""


def make_experiment(text: str = TOML) -> Any:
    return toml.parse(text, "fake", trust=True)


def find_cell(attack: str, method: str = "weak", text: str = TOML) -> Any:
    cells = make_experiment(text).cells(0)
    return next(cell for cell in cells if (cell.conditions["attack"], cell.method) == (attack, method))


def flips_path(store: Store, cell: Any, trial: int = 0) -> Path:
    (name,) = cell.task.shared_files(cell, trial)
    return store.folder / str(name)


def test_targets_are_test_nodes_with_neighbours_and_the_same_for_all() -> None:
    drawn = []
    for cell in make_experiment().cells(0):
        targets = cell.task.draw_targets(cell, 1)
        assert np.isin(targets, cell.task.split(cell, 1).test).all()
        assert len(np.unique(targets)) == 5
        drawn.append(targets.tolist())
    assert drawn[1:] == drawn[:-1]
    assert cell.task.draw_targets(cell, 2).tolist() != drawn[0]
    many = find_cell("dice", text=TOML.replace("= 5", "= 40"))
    with pytest.raises(InputError, match=r"n_targets of \[protocol\] must be at most .* 16; got 40"):
        many.task.draw_targets(many, 2)


def test_targets_by_degree() -> None:
    hubs_section = '[attacks.hubs]\ntitle = "none"\ntargets = "highest degrees"\n[methods.weak]'
    text = TOML.partition("[published")[0].replace("[methods.weak]", hubs_section)
    hubs, plain = find_cell("hubs", text=text), find_cell("none", text=text)
    assert plain.fingerprint == find_cell("none").fingerprint != hubs.fingerprint
    degrees, test = hubs.task.load(hubs).degrees, hubs.task.split(hubs, 1).test
    targets = hubs.task.draw_targets(hubs, 1)
    assert degrees[targets].min() >= np.delete(degrees[test], np.searchsorted(test, targets)).max()
    above = find_cell("hubs", text=text.replace("highest degrees", "degree above 10"))
    drawn = np.concatenate([above.task.draw_targets(above, trial) for trial in (0, 1, 2)])
    assert degrees[drawn].min() > 10
    assert [column.part for column in hubs.task.columns] == ["random", "random", "highest degrees"]


def test_flips_are_stored_and_read_again(store: Store) -> None:
    cell = find_cell("dice")
    graph = cell.task.load_with_features(cell)
    targets, path = cell.task.draw_targets(cell, 0), flips_path(store, cell)
    first = cell.task.attack_graph(cell, 0, store)
    assert first != graph
    assert Perturbation.load(path).apply(graph) == first
    other = DICE().attack(graph, targets, rng=9)
    other.save(path)
    assert cell.task.attack_graph(cell, 0, store) == other.apply(graph)
    first_two = DICE().attack(graph, targets[:2], rng=9)
    first_two.save(path)  # of other targets: attacked again
    assert cell.task.attack_graph(cell, 0, store) == first
    store.remove(cell, [0])
    assert not path.exists()
    path.write_bytes(b"broken")
    assert cell.task.attack_graph(cell, 0, store) == first


def test_damaged_flips_are_drawn_again(store: Store, caplog: pytest.LogCaptureFixture) -> None:
    cell = find_cell("dice")
    first, path = cell.task.attack_graph(cell, 0, store), flips_path(store, cell)
    content = path.read_bytes()
    other = Perturbation.load(path)
    replace(other, is_added=~other.is_added).save(path)  # edges that the graph does not have are removed
    assert cell.task.attack_graph(cell, 0, store) == first
    assert path.read_bytes() == content
    for position in range(0, len(content), 50):
        path.write_bytes(content[:position] + bytes([content[position] ^ 16]) + content[position + 1 :])
        assert cell.task.attack_graph(cell, 0, store) == first
    assert f"{path} is damaged and is drawn again" in caplog.text


def test_all_methods_share_an_attack_and_no_attack_is_none(store: Store) -> None:
    table = make_experiment()
    run(table, store)
    paths = {flips_path(store, cell) for cell in table.cells(0) if cell.conditions["attack"] == "dice"}
    assert len(paths) == 1
    assert len(list(store.folder.rglob("*.npz"))) == 3  # one for each trial
    clean, dice = (find_cell(attack, "strong") for attack in ("none", "dice"))
    assert not flips_path(store, clean).exists()
    assert Perturbation.load(flips_path(store, dice)).spent.sum() > 0
    assert all(record.scores["accuracy"] == 1 for record in store.read_finished(dice, range(3)))


def test_with_unknown_targets_all_test_nodes_are_predicted(store: Store) -> None:
    text = TOML.partition("[published")[0] + SUSPECTS
    unknown = 'known_targets = false\nscores = ["accuracy", "others", "auc", "recall"]'
    text = text.replace("n_targets = 5", f"n_targets = 5\n{unknown}")
    text = text.replace('"karate"', '"digits"').replace("test = 16", "test = 60")
    table = make_experiment(text).narrow(trials=1, attacks=["dice"], methods=["strong", "suspects"])
    run(table, store)
    cells = summarise(table, store).cells
    means = {(place.score, method): cell.mean for (_, place, method), cell in cells.items()}
    assert {("accuracy", "strong"), ("others", "strong"), ("recall", "suspects")} <= means.keys()
    assert (means["auc", "suspects"] or 0) > 50
    assert ("auc", "strong") not in means
    texts = TOML, TOML.replace("n_targets = 5", "n_targets = 5\nknown_targets = false")
    assert len({make_experiment(text).cells(0)[0].fingerprint for text in texts}) == 2


def test_detection_by_hand() -> None:
    """Targets are the first, third and sixth most suspicious of eight nodes; four nodes are corrected."""
    suspicion = np.array([8.0, 7, 6, 5, 4, 3, 2, 1])
    hit = np.array([True, False, True, False, False, True, False, False])
    found = score_detection(suspicion, suspicion > 4, hit)
    # Pairs in order: all 5 with the first target, 4 with the second, 2 with the third.
    expected = {"auc": 11 / 15, "precision": 2 / 4, "recall": 2 / 3, "top precision": 2 / 3}
    assert found == pytest.approx(expected)
    nobody = score_detection(suspicion, suspicion > 9, hit)
    assert (nobody["recall"], "precision" in nobody) == (0, False)


def test_an_attack_with_budgets_is_one_for_each() -> None:
    text = TOML.replace("budget = 1.0", 'budgets = [1, 0.5, "degree"]')
    text = text.replace('["-", "60.0±5.0"]', '["-", "60.0±5.0", "-", "-"]')
    attacks = make_experiment(text).task.attacks
    assert [(attack.name, attack.title, attack.budget) for attack in attacks[1:]] == [
        ("dice-1", "DICE, 1", 1),
        ("dice-0.5", "DICE, 0.5", 0.5),
        ("dice-degree", "DICE, degree", "degree"),
    ]
    alone = TOML.replace("budget = 1.0", "budget = 1").replace("attacks.dice", "attacks.dice-1")
    first, second = (find_cell("dice-1", text=text) for text in (text, alone))
    assert first.task.protocol(first) == second.task.protocol(second)


def test_every_copying_row_has_a_control_with_the_same_donors() -> None:
    """What is gained over averaging the same donors' own predictions is gained by copying."""
    for name in ("table5", "table5-polblogs"):
        methods = {method.name: method for method in toml.load(name).methods}
        copying = [method for method in methods.values() if method.path.endswith(".CopyingDefence")]
        assert copying
        for method in copying:
            controls = [methods[other] for other in method.gain_over]
            averages = [one for one in controls if one.path.endswith(".DonorAverage")]
            assert [one.settings for one in averages] == [method.settings], method.name


def test_an_experiment_may_build_upon_another() -> None:
    table, base = load("table5-unknown-targets"), load("table5")
    assert table.task.attacks == base.task.attacks
    assert (table.task.datasets, table.task.known_targets) == (base.task.datasets, False)
    names = [method.name for method in table.methods]
    assert names == ["gcn", "gcn-svd", "gcn-jaccard", "suspects", "suspects-retrained"]
    assert list(table.methods[:3]) == [method for method in base.methods if method.name in names]
    assert table.published == {}
    ours, theirs = table.cells(0)[-1], base.cells(0)[-1]
    assert ours.task.shared_files(ours, 3) == theirs.task.shared_files(theirs, 3)
    with pytest.raises(InputError, match=r"that is not a .toml file must be one of .*'table55'"):
        toml.parse('base = "table55"\ntitle = "x"', "mine")
