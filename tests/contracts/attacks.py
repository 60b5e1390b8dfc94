"""The contract of attacks on targets, as tests that a test class inherits.

To check an attack of your own, inherit :class:`AttackContract` and set ``attack``.
"""

from __future__ import annotations

import copy
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from nodecopy import Graph
from nodecopy.attacks import Edits, Perturbation, TargetedAttack
from nodecopy.errors import InputError
from tests.contracts.classifiers import planted_graph

TARGETS = [4, 50, 21]
TRAIN = [0, 1, 2, 9, 10, 11, 30, 31, 32]
TOO_MANY_FLIPS = 1000


def with_isolated(graph: Graph, node: int) -> Graph:
    """Return the graph without the edges of a node."""
    adjacency = graph.adjacency.toarray()
    adjacency[node] = adjacency[:, node] = 0
    return graph.replace(adjacency=adjacency)


class AttackContract:
    """Inherit and set ``attack``; the other attributes say what it needs and does."""

    needs_labels = True  # of the targets
    needs_features = True  # whether it trains a surrogate, for which it needs features and two classes
    connects_isolated = True  # whether a budget of 2 is spent on an isolated target
    budget: Any = None  # of most tests; None is the attack's default
    attack: TargetedAttack

    def build(self, *, together: bool = True) -> TargetedAttack:
        """Return the attack, which attacks targets together or each alone."""
        attack = copy.copy(self.attack)
        attack.together = together
        return attack

    @pytest.fixture(scope="class")
    @classmethod
    def graph(cls) -> Graph:
        return planted_graph()

    def run(
        self,
        graph: Graph,
        targets: Any = TARGETS,
        *,
        budget: Any = None,
        rng: Any = 0,
        together: bool = True,
        train: Any = TRAIN,
    ) -> Perturbation:
        granted = self.budget if budget is None else budget
        return self.build(together=together).attack(graph, targets, budget=granted, train=train, rng=rng)

    def test_flips_are_consistent(self, graph: Graph) -> None:
        for together in (True, False):
            flips = self.run(graph, together=together)
            assert len(flips.flips) + len(flips.feature_flips) > 0
            assert flips.targets.tolist() == TARGETS
            assert set(flips.owners.tolist()) <= set(TARGETS)
            assert (flips.spent <= flips.budgets).all()
            assert flips.spent.sum() == len(flips.flips) + len(flips.feature_flips)
            assert (flips.flips[:, 0] != flips.flips[:, 1]).all()
            for target in TARGETS:
                ends = np.sort(flips.of(target).flips, axis=1)
                assert len(np.unique(ends, axis=0)) == len(ends)

    def test_budget_is_a_number_of_flips_the_degree_or_a_share(self, graph: Graph) -> None:
        assert self.run(graph, budget=3).budgets.tolist() == [3, 3, 3]
        assert self.run(graph, budget="degree").budgets.tolist() == graph.degrees[TARGETS].tolist()
        attack = self.build()
        shares = [attack.n_flips_of_share(Edits(graph), target, 0.5) for target in TARGETS]
        assert self.run(graph, budget=0.5, together=False).budgets.tolist() == shares
        default = self.build().attack(graph, TARGETS, train=TRAIN, rng=0)
        explicit = self.build().attack(graph, TARGETS, budget=attack.default_budget, train=TRAIN, rng=0)
        assert default == explicit
        with pytest.raises(InputError, match=f"budget of {type(attack).__name__} must be an integer of at"):
            self.run(graph, budget=1.5)

    def test_targets_are_positions_a_mask_or_ids(self, graph: Graph) -> None:
        ascending = sorted(TARGETS)
        by_position = self.run(graph, ascending)
        assert self.run(graph, np.isin(np.arange(graph.n_nodes), ascending)) == by_position
        assert self.run(graph, graph.node_ids[ascending].tolist()) == by_position
        assert self.run(graph, ascending, train=graph.node_ids[TRAIN].tolist()) == by_position

    def test_the_attacked_graph_is_valid_and_keeps_its_nodes(self, graph: Graph) -> None:
        flips = self.run(graph)
        attacked = flips.apply(graph)
        assert attacked != graph
        matrix, before = attacked.adjacency.toarray(), graph.adjacency.toarray()
        assert np.array_equal(matrix, matrix.T)
        assert not matrix.diagonal().any()
        assert Graph(attacked.adjacency).rows == attacked.rows
        assert attacked.replace(adjacency=graph.adjacency, features=graph.features) == graph
        expected = before.copy()
        for first, second in flips.flips:
            expected[first, second] = expected[second, first] = 1 - expected[first, second]
        assert np.array_equal(matrix, expected)

    def test_same_seed_gives_the_same_flips(self, graph: Graph) -> None:
        seed = np.random.SeedSequence(3)
        assert self.run(graph, rng=seed) == self.run(graph, rng=3)
        assert seed.n_children_spawned == 0
        draws = [self.run(graph, rng=np.random.default_rng(0)) for _ in range(2)]
        assert draws[0] == draws[1]

    def test_inputs_are_not_changed(self, graph: Graph) -> None:
        before, targets = pickle.loads(pickle.dumps(graph)), np.array(TARGETS)
        attack = self.build()
        parameters = pickle.dumps(vars(attack))
        attack.attack(graph, targets, budget=self.budget, train=TRAIN, rng=0)
        assert graph == before
        assert targets.tolist() == TARGETS
        assert pickle.dumps(vars(attack)) == parameters

    def test_attacks_alone_do_not_depend_on_other_targets(self, graph: Graph) -> None:
        """Each target is attacked in the clean graph; the first one is in any case."""
        alone = self.run(graph, together=False)
        for target in TARGETS:
            assert np.array_equal(alone.of(target).flips, self.run(graph, [target], together=False).flips)
            attacked = alone.apply(graph, target=target)
            change = len(alone.of(target).added) - len(alone.of(target).removed)
            assert attacked.n_edges - graph.n_edges == change
        first = TARGETS[0]
        assert np.array_equal(alone.of(first).flips, self.run(graph).of(first).flips)

    def test_perturbations_save_load_and_pickle(self, graph: Graph, tmp_path: Path) -> None:
        flips = self.run(graph)
        flips.save(tmp_path / "new" / "flips.npz")
        assert Perturbation.load(tmp_path / "new" / "flips.npz") == flips
        assert pickle.loads(pickle.dumps(flips)) == flips
        again: Any = pickle.loads(pickle.dumps(self.build()))
        assert again.attack(graph, TARGETS, budget=self.budget, train=TRAIN, rng=0) == flips
        assert type(again).__name__ in str(flips)

    def test_no_targets_and_no_budget(self, graph: Graph) -> None:
        assert self.run(graph, np.zeros(0, np.int64)).apply(graph) == graph
        assert self.run(graph, budget=0).spent.tolist() == [0, 0, 0]

    def test_budget_above_the_number_of_possible_flips(self, graph: Graph) -> None:
        flips = self.run(graph, [4], budget=TOO_MANY_FLIPS)
        assert flips.budgets.tolist() == [TOO_MANY_FLIPS]
        assert 0 < flips.spent[0] < TOO_MANY_FLIPS
        assert flips.apply(graph) != graph

    def test_isolated_target(self, graph: Graph) -> None:
        """A budget of its degree is zero; a number of flips connects it."""
        isolated = with_isolated(graph, 4)
        assert (self.run(isolated).of(4).is_added).all()
        assert self.run(isolated, [4], budget="degree").spent[0] == 0
        if self.connects_isolated:
            assert self.run(isolated, [4], budget=2).spent[0] == 2

    @pytest.mark.parametrize(
        ("targets", "message"),
        [
            ([1, 60, 2], "targets must lie between 0 and 59; got 60"),
            ([3, 4, 3], "targets must be unique; got 3"),
            (None, "targets of .* must hold nodes; got None"),
        ],
    )
    def test_error_names_wrong_targets(self, graph: Graph, targets: Any, message: str) -> None:
        with pytest.raises(InputError, match=message):
            self.build().attack(graph, targets, train=TRAIN, rng=0)

    def test_error_names_wrong_graphs(self, graph: Graph) -> None:
        with pytest.raises(InputError, match="graph must be undirected to be attacked"):
            self.run(graph.replace(directed=True))
        with pytest.raises(InputError, match="graph must be binary to be attacked"):
            self.run(graph.replace(adjacency=2 * graph.adjacency))

    def test_missing_labels(self, graph: Graph) -> None:
        assert graph.label_codes is not None
        unlabelled = graph.label_codes.copy()
        unlabelled[4] = -1
        if not self.needs_labels:
            for relabelled in (graph.replace(labels=None), graph.replace(labels=unlabelled)):
                assert np.array_equal(self.run(relabelled).flips, self.run(graph).flips)
            return
        with pytest.raises(InputError, match="graph must have labels for"):
            self.run(graph.replace(labels=None))
        name = graph.node_ids[4]
        with pytest.raises(InputError, match=f"targets must have labels for .* with id '{name}', which has"):
            self.run(graph.replace(labels=unlabelled))

    def test_missing_features_and_classes(self, graph: Graph) -> None:
        featureless = graph.replace(features=None)
        one_class = graph.replace(labels=np.zeros(60, np.int64))
        if not self.needs_features:
            assert np.array_equal(self.run(featureless).flips, self.run(graph).flips)
            assert (self.run(one_class).spent <= self.run(one_class).budgets).all()
            return
        for changed in (featureless, graph.replace(features=np.zeros((60, 0)))):
            with pytest.raises(InputError, match="graph must have features"):
                self.run(changed)
        with pytest.raises(InputError, match="labels of at least two classes"):
            self.run(one_class)
        with pytest.raises(InputError, match="train must be unique; got 0"):
            self.run(graph, train=[0, 0, 1, 2])
        others = np.setdiff1d(np.arange(60), TARGETS)  # the default: all labelled nodes but the targets
        assert self.run(graph, train=None) == self.run(graph, train=others)
