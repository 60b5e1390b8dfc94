from __future__ import annotations

import copy
import pickle
import warnings
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from scipy import sparse

from nodecopy import (
    Balanced,
    Graph,
    Jaccard,
    KeepByDegree,
    NearestNeighbours,
    NodeCopying,
    SameLabel,
    Weighted,
    as_graph,
    datasets,
    to_pyg,
)
from nodecopy._core.random import child, seed_sequence
from nodecopy.errors import DataWarning, InputError
from tests.strategies import graphs

with warnings.catch_warnings():  # torch_geometric uses what torch has deprecated
    warnings.simplefilter("ignore")
    torch = pytest.importorskip("torch")
    from torch_geometric.data import Batch, Data
    from torch_geometric.loader import DataLoader

    from nodecopy.nn.pyg import NodeCopy


@pytest.fixture
def karate() -> Any:
    return to_pyg(datasets.load("karate"))


def edges(data: Any) -> set[tuple[int, int]]:
    return set(map(tuple, data.edge_index.T.tolist()))


def ring(n: int, **more: Any) -> Any:
    here = torch.arange(n)
    both = torch.stack([torch.cat([here, (here + 1) % n]), torch.cat([(here + 1) % n, here])])
    return Data(edge_index=both, num_nodes=n, **more)


@pytest.mark.parametrize("symmetrise", ["maximum", "one-endpoint"])
def test_samples_are_those_of_the_model(karate: Any, symmetrise: str) -> None:
    model = NodeCopying(SameLabel(), 0.3, symmetrise).fit(as_graph(karate))
    transform = NodeCopy(SameLabel(), 0.3, symmetrise, rng=4)
    for number in range(3):
        seed = child(child(seed_sequence(4), 0), number)
        assert as_graph(transform(karate)) == model.sample(rng=seed)


def test_the_input_stays_and_calls_differ(karate: Any) -> None:
    before = karate.edge_index.clone()
    transform = NodeCopy(SameLabel(), rng=0)
    samples = [edges(transform(karate)) for _ in range(3)]
    assert torch.equal(karate.edge_index, before)
    assert len({frozenset(one) for one in samples}) == 3
    again = NodeCopy(SameLabel(), rng=0)
    assert [edges(again(karate)) for _ in range(3)] == samples


@pytest.mark.filterwarnings("ignore:.*by which donors are drawn:nodecopy.errors.DataWarning")
def test_labels_outside_the_training_mask_are_not_read(karate: Any) -> None:
    karate.train_mask = torch.zeros(34, dtype=torch.bool)
    assert edges(NodeCopy(SameLabel(), rng=0)(karate)) == edges(karate)  # nobody is like anybody
    karate.train_mask[[0, 1, 2]] = True
    hidden = karate.clone()
    hidden.y[~karate.train_mask] = 7
    pair = [edges(NodeCopy(SameLabel(), rng=3)(data)) for data in (karate, hidden)]
    assert pair[0] == pair[1] != edges(karate)


def test_few_labels_warn_once_over_all_batches() -> None:
    """Before, every graph of every batch warned."""
    masked = {"y": torch.zeros(12, dtype=torch.int64), "train_mask": torch.arange(12) < 3}
    transform = NodeCopy(SameLabel(), rng=0)
    batches = [Batch.from_data_list([ring(12, **masked) for _ in range(5)]) for _ in range(3)]
    with pytest.warns(DataWarning, match="3 of 12 nodes have a label") as caught:
        transform(batches[0])
    assert len(caught) == 1
    for batch in batches:  # another warning would be an error
        transform(batch)


def test_predicted_labels_by_name(karate: Any) -> None:
    plain = edges(NodeCopy(SameLabel(), rng=0)(karate))
    karate.predicted, karate.y = karate.y, None
    karate.train_mask = torch.zeros(34, dtype=torch.bool)
    assert edges(NodeCopy(SameLabel(), labels="predicted", mask=None, rng=0)(karate)) == plain


def test_edge_attributes_are_those_of_the_edge_behind() -> None:
    """Node 0 takes the row of 1, node 1 that of 2, node 2 its own; attributes come along."""
    rule = Weighted([[0, 1, 0], [0, 0, 1], [0, 0, 1]])
    data = Data(
        edge_index=torch.tensor([[0, 1, 1, 2], [1, 0, 2, 0]]),
        edge_attr=torch.tensor([[1.0, 10.0], [2.0, 20.0], [3.0, 30.0], [4.0, 40.0]]),
        edge_kind=torch.tensor([5, 6, 7, 8]),
        num_nodes=3,
    )
    sampled = NodeCopy(rule, rng=0)(data)
    assert sampled.edge_index.tolist() == [[0, 0, 1, 2], [0, 2, 0, 0]]
    assert sampled.edge_kind.tolist() == [6, 7, 8, 8]
    assert sampled.edge_attr.tolist() == [[2, 20], [3, 30], [4, 40], [4, 40]]


@pytest.mark.parametrize("name", ["edge_weight", "edge_attr"])
def test_the_heavier_of_two_copies_is_taken(name: str) -> None:
    """Nodes 0 and 1 swap rows: the pair (0, 2) takes the weight of (1, 2), and the other way round."""
    pairs = torch.tensor([[0, 2, 1, 2], [2, 0, 2, 1]])
    data = Data(edge_index=pairs, num_nodes=3, **{name: torch.tensor([1.0, 1.0, 5.0, 5.0])})
    sampled = NodeCopy(Weighted([[0, 1, 0], [1, 0, 0], [0, 0, 1]]), symmetrise="maximum", rng=0)(data)
    expected = NodeCopying(Weighted([[0, 1, 0], [1, 0, 0], [0, 0, 1]]), symmetrise="maximum").fit(
        Graph([[0, 0, 1], [0, 0, 5], [1, 5, 0]])
    )
    dense = np.zeros((3, 3))
    dense[tuple(sampled.edge_index.numpy())] = sampled[name].numpy()
    np.testing.assert_array_equal(dense, expected.sample(rng=0).adjacency.toarray())


def test_directed_graphs_stay_directed() -> None:
    data = Data(edge_index=torch.tensor([[0, 1], [1, 2]]), num_nodes=3)
    swap = Weighted([[0, 1, 0], [1, 0, 0], [0, 0, 1]])
    assert edges(NodeCopy(swap, rng=0)(data)) == {(0, 2), (1, 1)}
    assert edges(NodeCopy(swap, directed=False, rng=0)(data)) == {(0, 2), (2, 0), (1, 2), (2, 1)}


def test_what_was_fitted_serves_again_until_the_data_change(karate: Any) -> None:
    class Counting:
        n_fits = 0

        def fit(self, data: Any) -> Any:
            self.n_fits += 1
            return SameLabel().fit(data)

    rule = Counting()
    transform = NodeCopy(rule, rng=0)
    for _ in range(3):
        transform(karate)
    assert rule.n_fits == 1
    karate.y[0] = 1 - karate.y[0]
    transform(karate)
    assert rule.n_fits == 2
    transform(karate.clone())
    assert rule.n_fits == 3


def test_pickles_without_what_was_fitted(karate: Any) -> None:
    transform = NodeCopy(SameLabel(), rng=0)
    transform(karate)
    content = pickle.dumps(transform)
    assert b"edge_index" not in content
    assert len(content) < 3000  # the fitted model of the karate graph takes more
    other = pickle.loads(content)
    assert edges(other(karate)) == edges(copy.deepcopy(transform)(karate)) == edges(transform(karate))


class Rings(torch.utils.data.Dataset):  # type: ignore[misc, name-defined]
    """The same ring again and again, so that only randomness tells samples apart."""

    def __init__(self, transform: Any) -> None:
        self.transform = transform

    def __len__(self) -> int:
        return 4

    def __getitem__(self, number: int) -> Any:
        return self.transform(ring(30, y=torch.tensor([number])))


@pytest.mark.parametrize("workers", [0, 2])
def test_a_loader_draws_anew_in_every_worker_and_epoch(workers: int) -> None:
    def drawn() -> list[frozenset[tuple[int, int]]]:
        torch.manual_seed(1)
        loader = DataLoader(Rings(NodeCopy(Jaccard(), rng=0)), batch_size=1, num_workers=workers)
        return [frozenset(edges(batch)) for _ in range(2) for batch in loader]

    first = drawn()
    assert len(set(first)) == 8
    assert drawn() == first


@pytest.mark.filterwarnings("ignore:.*by which donors are drawn:nodecopy.errors.DataWarning")
@pytest.mark.parametrize("dtype", [torch.int64, torch.bool, torch.float32, "one-hot"])
@pytest.mark.parametrize("mask_dtype", [torch.bool, torch.uint8])
def test_hidden_classes_stay_hidden_whatever_their_type(dtype: Any, mask_dtype: Any) -> None:
    labels, known = torch.tensor([1, 0, 0, 0, 0, 0]), torch.tensor([1, 1, 0, 0, 0, 0])
    y = torch.eye(2)[labels] if dtype == "one-hot" else labels.to(dtype)
    data = ring(6, y=y, train_mask=known.to(mask_dtype))
    transform = NodeCopy(SameLabel(), rng=0)
    assert all(edges(transform(data)) == edges(data) for _ in range(5))  # nobody shares a known class


@settings(max_examples=40)
@given(graph=graphs())
def test_all_but_ids_and_names_come_back(graph: Graph) -> None:
    features = graph.features.toarray() if isinstance(graph.features, sparse.csr_array) else graph.features
    single = None if features is None else features.astype(np.float32)
    expected = Graph(graph.adjacency.astype(np.float32), single, graph.label_codes, directed=graph.directed)
    data = to_pyg(graph)
    assert data.num_nodes == graph.n_nodes
    assert data.edge_index.shape == (2, graph.rows.n_entries)
    assert as_graph(data, directed=graph.directed) == expected


def random_graphs(n_graphs: int = 12, **more: Any) -> list[Any]:
    """Graphs of 5 to 16 nodes with features, classes of nodes and of the graph, and edge attributes."""
    draws, result = torch.Generator().manual_seed(0), []
    for number in range(n_graphs):
        n = 5 + number
        pairs = torch.randint(n, (2, 2 * n), generator=draws)
        pairs = torch.unique(torch.cat([pairs, pairs.flip(0)], dim=1), dim=1)
        pairs = pairs[:, pairs[0] != pairs[1]]
        data = Data(edge_index=pairs, num_nodes=n, x=torch.randn(n, 3, generator=draws), **more)
        data.kind, data.y = torch.arange(n) % 2, torch.tensor([number])
        data.edge_code = 1000 * number + torch.arange(pairs.shape[1])
        result.append(data)
    return result


class SameParity:
    """A donor rule of a user's own: donors have a degree of the same parity."""

    def fit(self, data: Any) -> Any:
        return SameLabel(data.rows.degrees % 2).fit(data)


RULES = [SameLabel(), NearestNeighbours(4), NearestNeighbours(9), Jaccard(), SameParity()]
RULES += [Balanced(SameLabel()), KeepByDegree(SameLabel())]


@pytest.mark.parametrize("donors", RULES, ids=lambda donors: type(donors).__name__)
def test_a_batch_is_copied_within_its_graphs(donors: Any) -> None:
    graphs = random_graphs()
    batch = Batch.from_data_list(graphs)
    before = batch.clone()
    sampled = NodeCopy(donors, labels="kind", rng=0)(batch)
    source, target = batch.batch[sampled.edge_index]
    assert torch.equal(source, target)
    assert edges(sampled) != edges(batch)
    parts = sampled.to_data_list()
    assert [part.num_nodes for part in parts] == [graph.num_nodes for graph in graphs]
    assert [part.y.item() for part in parts] == list(range(12))
    for graph, part in zip(graphs, parts, strict=True):
        assert part.is_undirected()
        assert len(part.edge_code) == part.num_edges
        assert set((part.edge_code // 1000).tolist()) <= {graph.y.item()}
    assert edges(Batch.from_data_list(parts)) == edges(sampled)
    for ours, theirs in zip(batch.to_data_list(), before.to_data_list(), strict=True):
        assert torch.equal(ours.edge_code, theirs.edge_code)


def test_the_graphs_of_a_batch_have_draws_of_their_own() -> None:
    graph = random_graphs()[-1]
    first, second = NodeCopy(SameLabel(), labels="kind", rng=5)(
        Batch.from_data_list([graph] * 2)
    ).to_data_list()
    assert edges(first) != edges(second)


WRONG_MASK = ring(2, y=torch.tensor([1, 0]), train_mask=torch.tensor([0, 3]))


@pytest.mark.parametrize(
    ("call", "fragment"),
    [
        (lambda: NodeCopy(Jaccard())(Data(num_nodes=3)), "must be a Data with an edge_index; got"),
        (lambda: NodeCopy(SameLabel())(ring(12, y=torch.tensor([1]))), "labels of SameLabel must be given"),
        (lambda: NodeCopy(SameLabel())(WRONG_MASK), "data.train_mask must hold a boolean for each node"),
        (lambda: NodeCopy(Jaccard())(ring(4, batch=torch.tensor([0, 1, 0, 1]))), "data.batch must be left"),
        (lambda: to_pyg(Graph.from_edges([0], [1], [1e39])), "weights in single precision must hold finite"),
    ],
)
def test_errors(call: Any, fragment: str) -> None:
    with pytest.raises(InputError, match=fragment):
        call()
