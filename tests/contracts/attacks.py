"""What every attack promises; a test class inherits it and says which attack to try."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from nodecopy import Graph
from nodecopy.attacks import Attack, Perturbation
from nodecopy.errors import InputError
from tests.contracts.classifiers import planted_graph

TARGETS = [4, 50, 21]
TRAIN = [0, 1, 2, 9, 10, 11, 30, 31, 32]
TOO_MUCH = 1000


def with_isolated(graph: Graph, node: int) -> Graph:
    adjacency = graph.adjacency.toarray()
    adjacency[node] = adjacency[:, node] = 0
    return graph.replace(adjacency=adjacency)


class AttackContract:
    """Inherit and override ``build``; say what the attack needs to know."""

    needs_labels = True
    needs_features = True
    has_budget = True

    def build(self, targets: list[int], **settings: Any) -> Attack:
        """The attack for these targets; ``budget`` and ``together`` are among the settings."""
        raise NotImplementedError("a contract needs an attack")

    @pytest.fixture(scope="class")
    @classmethod
    def graph(cls) -> Graph:
        return planted_graph()

    def run(self, graph: Graph, targets: Any = TARGETS, *, rng: Any = 0, **settings: Any) -> Perturbation:
        return self.build(list(targets), **settings).attack(graph, targets, train=TRAIN, rng=rng)

    def test_flips_are_what_they_say(self, graph: Graph) -> None:
        for together in (True, False):
            found = self.run(graph, together=together)
            assert len(found.flips) > 0
            assert found.targets.tolist() == TARGETS
            assert set(found.owners.tolist()) <= set(TARGETS)
            assert (found.spent <= found.budgets).all()
            assert found.spent.sum() == len(found.flips) + len(found.feature_flips)
            assert len(found.added) + len(found.removed) == len(found.flips)
            assert (found.flips[:, 0] != found.flips[:, 1]).all()
            for target in TARGETS:
                ends = np.sort(found.of(target).flips, axis=1)
                assert len(np.unique(ends, axis=0)) == len(ends)

    def test_the_attacked_graph_is_valid_and_keeps_its_nodes(self, graph: Graph) -> None:
        found = self.run(graph)
        attacked = found.apply(graph)
        assert attacked != graph
        matrix, before = attacked.adjacency.toarray(), graph.adjacency.toarray()
        assert np.array_equal(matrix, matrix.T)
        assert not matrix.diagonal().any()
        assert Graph(attacked.adjacency).rows == attacked.rows
        assert attacked.replace(adjacency=graph.adjacency, features=graph.features) == graph
        expected = before.copy()
        for first, second in found.flips:
            expected[first, second] = expected[second, first] = 1 - expected[first, second]
        assert np.array_equal(matrix, expected)

    def test_same_seed_same_flips(self, graph: Graph) -> None:
        seed = np.random.SeedSequence(3)
        assert self.run(graph, rng=seed) == self.run(graph, rng=3)
        assert seed.n_children_spawned == 0
        assert len(self.run(graph, rng=np.random.default_rng(0)).flips)

    def test_input_stays_as_it_was(self, graph: Graph) -> None:
        before, targets = pickle.loads(pickle.dumps(graph)), np.array(TARGETS)
        attack = self.build(TARGETS)
        settings = pickle.dumps(vars(attack))
        attack.attack(graph, targets, train=TRAIN, rng=0)
        assert graph == before
        assert targets.tolist() == TARGETS
        assert pickle.dumps(vars(attack)) == settings

    def test_alone_is_alone(self, graph: Graph) -> None:
        """Each victim against the clean graph, whoever else is attacked; the first is alone anyway."""
        alone = self.run(graph, together=False)
        for target in TARGETS:
            assert np.array_equal(alone.of(target).flips, self.run(graph, [target], together=False).flips)
            attacked = alone.apply(graph, target=target)
            assert attacked.n_edges - graph.n_edges == len(alone.of(target).added) - len(
                alone.of(target).removed
            )
        first = TARGETS[0]
        assert np.array_equal(alone.of(first).flips, self.run(graph).of(first).flips)

    def test_perturbations_save_load_and_pickle(self, graph: Graph, tmp_path: Path) -> None:
        found = self.run(graph)
        found.save(tmp_path / "made" / "flips.npz")
        assert Perturbation.load(tmp_path / "made" / "flips.npz") == found
        assert pickle.loads(pickle.dumps(found)) == found
        assert (
            pickle.loads(pickle.dumps(self.build(TARGETS))).attack(graph, TARGETS, train=TRAIN, rng=0)
            == found
        )
        assert type(self.build(TARGETS)).__name__ in str(found)

    def test_nobody_to_attack(self, graph: Graph) -> None:
        found = self.run(graph, np.zeros(0, np.int64))
        assert len(found.flips) == 0
        assert found.apply(graph) == graph

    def test_no_budget(self, graph: Graph) -> None:
        if self.has_budget:
            found = self.run(graph, budget=0)
            assert found.budgets.tolist() == found.spent.tolist() == [0, 0, 0]

    def test_a_budget_beyond_what_a_node_can_bear(self, graph: Graph) -> None:
        """All is done that can be done, and the perturbation tells both numbers."""
        if not self.has_budget:
            return
        found = self.run(graph, [4], budget=TOO_MUCH)
        assert found.budgets.tolist() == [TOO_MUCH]
        assert 0 < found.spent[0] < TOO_MUCH
        assert found.apply(graph) != graph

    def test_an_isolated_target(self, graph: Graph) -> None:
        """Its degree is no budget; a given budget connects it."""
        lonely = with_isolated(graph, 4)
        assert (self.run(lonely).of(4).is_added).all()
        if self.has_budget:
            found = self.run(lonely, [4], budget=2)
            assert found.spent[0] == 2
            assert self.run(lonely, [4], budget="degree").spent[0] == 0

    def test_a_target_that_trains_the_surrogate(self, graph: Graph) -> None:
        """Allowed: the attacker knows its label in any case."""
        assert self.run(graph, [TRAIN[0]]).apply(graph) != graph

    @pytest.mark.parametrize(
        ("targets", "message"),
        [
            ([1, 60, 2], "targets must lie between 0 and 59; got 60"),
            ([-1, 3, 2], "targets must lie between 0 and 59; got -1"),
            ([3, 4, 3], "targets must be unique; got 3"),
            ([0.5, 1, 2], "targets must hold integers"),
            (["node 1", "a", "b"], "targets must hold integers"),
            ([[1, 2, 3]], "targets must have one dimension"),
            (None, "targets of .* must hold node numbers; got None"),
        ],
    )
    def test_wrong_targets_are_named(self, graph: Graph, targets: Any, message: str) -> None:
        with pytest.raises(InputError, match=message):
            self.build(TARGETS).attack(graph, targets, train=TRAIN, rng=0)

    def test_wrong_graphs_are_named(self, graph: Graph) -> None:
        with pytest.raises(InputError, match="graph must be undirected to be attacked"):
            self.run(graph.replace(directed=True))
        with pytest.raises(InputError, match="graph must be binary to be attacked"):
            self.run(graph.replace(adjacency=2 * graph.adjacency))
        with pytest.raises(InputError, match="rng must be"):
            self.run(graph, rng="x")

    def test_labels_where_they_are_needed(self, graph: Graph) -> None:
        assert graph.labels is not None
        unknown = graph.labels.copy()
        unknown[4] = -1
        if not self.needs_labels:
            assert len(self.run(graph.replace(labels=None)).flips)
            assert len(self.run(graph.replace(labels=unknown)).flips)
            return
        with pytest.raises(InputError, match="graph must have labels for"):
            self.run(graph.replace(labels=None))
        name = graph.node_ids[4]
        with pytest.raises(InputError, match=f"targets must have labels for .* with id '{name}', which has"):
            self.run(graph.replace(labels=unknown))

    def test_features_and_classes_where_they_are_needed(self, graph: Graph) -> None:
        featureless = graph.replace(features=None)
        one_class = graph.replace(labels=np.zeros(60, np.int64))
        if not self.needs_features:
            assert len(self.run(featureless).flips)
            assert self.run(one_class).apply(one_class).n_nodes == 60
            return
        with pytest.raises(InputError, match="graph must have features"):
            self.run(featureless)
        with pytest.raises(InputError, match="labels of at least two classes"):
            self.run(one_class)
        attack = self.build(TARGETS)
        for train, message in (
            ([0, 0, 1, 2], "train must be unique; got 0"),
            ([0, 1, 99], "train must lie between 0 and 59; got 99"),
        ):
            with pytest.raises(InputError, match=message):
                attack.attack(graph, TARGETS, train=train, rng=0)
        assert len(attack.attack(graph, TARGETS, rng=0).flips)  # by default: all labels but the targets'
