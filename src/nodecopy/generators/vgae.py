"""Graph autoencoders (Kipf and Welling, 2016): inner products of GCN embeddings are the logits of edges."""

from __future__ import annotations

from nodecopy.generators.autoencoder import GraphAutoencoder


class GAE(GraphAutoencoder):
    """The graph autoencoder: embeddings Z of a two-layer GCN, with inner products Z Z^T as logits of edges.

    Z = S ReLU(S X W0) W1 with S = D^-1/2 (A + I) D^-1/2. Training minimises the weighted cross-entropy over
    all pairs (:class:`.PairLoss`) on the whole graph, without dropout or early stopping.

    Parameters
    ----------
    n_hidden, n_latent
        Widths of the hidden layer and of the embeddings.
    n_epochs, learning_rate
        Epochs and learning rate of Adam.
    pairs
        ``"all"`` (default) for the authors' loss; ``"sampled"`` for a loss over edges and as many random
        pairs, drawn again in every epoch (:class:`.SampledPairLoss`), for graphs of more than about 10,000
        nodes.
    sampler
        How inner products become the edges of samples: ``"raw"``, ``"calibrated"`` or ``"corrected"``
        (default), see the notes.
    balanced
        Whether the calibration gives edges the same weight as all other pairs together (default), or all
        pairs the same weight.
    device
        ``"cpu"`` or ``"cuda"``, the device of the training; samples are drawn on the CPU.

    Attributes
    ----------
    embeddings_, decoded_
        One row per node, before and after the decoder; the same here.
    sampler_, balanced_
        The ``sampler`` and ``balanced`` of the fit.

    Notes
    -----
    Edges of samples are independent. With the score p = sigma(f_i . f_j) of the decoded vectors f of a pair,
    its probability is

    - ``"raw"``: p. Training gives edges the same weight as all other pairs together, so most p are near one
      half and samples are very dense.
    - ``"calibrated"``: sigma(a p + b), from a logistic regression of "is an edge" on p over all pairs. The
      paper does not say that this regression is balanced too, but only then are its calibrated samples denser
      than the observed graph, as it reports. With ``balanced=False`` it is plain maximum likelihood, and the
      expected number of edges is the observed one.
    - ``"corrected"``: the calibrated probability, scaled so that the expected number of edges is the observed
      one (or lower, if that would take probabilities above one).

    *Features* X are used as they are, neither normalised nor made binary. For a graph without features X is
    the identity.

    *Directions and weights* are ignored, because inner products are symmetric and edges are binary. Samples
    have neither.

    *Memory* grows with nodes and edges. Time grows with pairs of nodes: in every epoch, unless pairs are
    sampled, and in every sample.

    Examples
    --------
    >>> from nodecopy import datasets
    >>> from nodecopy.generators import GAE
    >>> model = GAE(n_latent=4).fit(datasets.load("karate"), rng=0)
    >>> model.embeddings().shape
    (34, 4)
    >>> edge, non_edge = model.edge_probabilities([33, 0], [32, 33])
    >>> bool(edge > non_edge)
    True
    >>> 50 < model.sample(rng=1).n_edges < 106  # 78 observed edges
    True
    """


class VGAE(GraphAutoencoder):
    """The variational :class:`GAE`: each node has a normal distribution, whose mean is its embedding.

    A second head of the GCN gives the logarithm of the standard deviation s. Every epoch draws z = mean +
    noise * s and adds the divergence from the standard normal distribution, averaged over nodes and divided
    by N once more, as in the authors' code. The weight of the divergence is therefore small.

    Parameters, attributes and notes are those of :class:`GAE`.

    Examples
    --------
    >>> from nodecopy import datasets
    >>> from nodecopy.generators import VGAE
    >>> VGAE(n_latent=4, n_epochs=50).fit(datasets.load("karate"), rng=0).embeddings().shape
    (34, 4)
    """

    _n_heads = 2
