"""What is known of a corrected node and its edges, for people."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any

MIN_CREDIBILITY = 0.5
"""Edges with a lower probability of being genuine are distrusted."""


@dataclass(frozen=True)
class EdgeReport:
    """What is known of an edge of a corrected node.

    Parameters
    ----------
    neighbour
        The other node.
    predicted
        Its predicted class.
    log_odds
        The log-odds that the pair is an edge of the graph rather than a random pair, by its features.
    credibility
        Probability that the edge is genuine, given all evidence.

    Examples
    --------
    >>> from nodecopy.defend import EdgeReport
    >>> EdgeReport("bob", "dog", log_odds=-2.0, credibility=0.1).reason
    'its ends do not resemble those of other edges'
    """

    neighbour: Any
    predicted: Any
    log_odds: float
    credibility: float

    @property
    def is_distrusted(self) -> bool:
        """Return whether the edge is more likely false than genuine."""
        return self.credibility < MIN_CREDIBILITY

    @property
    def reason(self) -> str:
        """Return in words why the edge is distrusted, or trusted."""
        ends = "resemble" if self.log_odds > 0 else "do not resemble"
        by_features = f"its ends {ends} those of other edges"
        if self.is_distrusted == (self.log_odds <= 0):
            return by_features
        verb = "contradicts" if self.is_distrusted else "agrees with"
        return f"{by_features}, but its neighbour's class {verb} the other evidence"


@dataclass(frozen=True)
class NodeReport:
    """The evidence behind the correction of a node, by class name.

    Parameters
    ----------
    node, predicted, corrected
        The node, the class that the classifier predicts on the attacked graph, and the corrected class.
    probabilities
        The corrected probabilities.
    features
        What the node's features say, taught by the predictions for other nodes.
    donors
        The mean prediction for similar nodes; empty where none were searched.
    edge_evidence
        The log-likelihood of the edges for each class, the likeliest being zero, as far as it counts.
    edges
        Its edges, the least credible first.
    uses_edges
        Whether the edges counted: features and donors left the class uncertain.

    Examples
    --------
    >>> from nodecopy import datasets
    >>> from nodecopy.classify import GCN
    >>> from nodecopy.defend import EvidenceDefence
    >>> digits = datasets.load("digits").subgraph(range(300))
    >>> split = datasets.label_split(digits.labels, 5, validation=0, test=200, rng=0)
    >>> report = EvidenceDefence(GCN()).fit(digits, split.train, rng=0).explain([7])[0]
    >>> report.corrected, len(report.edges)
    (7, 1)
    """

    node: Any
    predicted: Any
    corrected: Any
    probabilities: dict[Any, float]
    features: dict[Any, float]
    donors: dict[Any, float]
    edge_evidence: dict[Any, float]
    edges: tuple[EdgeReport, ...] = field(repr=False)
    uses_edges: bool = True

    @property
    def distrusted(self) -> tuple[EdgeReport, ...]:
        """Return the edges that are more likely false than genuine."""
        return tuple(edge for edge in self.edges if edge.is_distrusted)

    def to_dict(self) -> dict[str, Any]:
        """Return everything in plain types, with whether and why each edge is distrusted."""
        edges = [
            asdict(edge) | {"distrusted": edge.is_distrusted, "reason": edge.reason} for edge in self.edges
        ]
        return asdict(self) | {"edges": edges}
