"""Fitted classifiers in and out of files: one NumPy archive, never with pickles."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

import nodecopy
from nodecopy._core.atomic_files import atomic_write
from nodecopy._core.formats import PathLike, format_of, reading
from nodecopy._core.lookup import check_name, import_by_name
from nodecopy.classify.ensemble import Ensemble, Prediction
from nodecopy.errors import InputError
from nodecopy.nn.filters import FilterNetworks
from nodecopy.nn.networks import Networks

if TYPE_CHECKING:
    from nodecopy.classify.base import Classifier

HOME_OF = {
    "MLP": "nodecopy.classify.single_network.MLP",
    "GCN": "nodecopy.classify.single_network.GCN",
    "APPNP": "nodecopy.classify.single_network.APPNP",
    "BayesianGCN": "nodecopy.classify.bayesian.BayesianGCN",
    "SBMGCN": "nodecopy.classify.sbm_gcn.SBMGCN",
    "DFNet": "nodecopy.classify.dfnet.DFNet",
    "CopyingDefence": "nodecopy.defend.copying_correction.CopyingDefence",
    "SuspectCorrection": "nodecopy.defend.detection.SuspectCorrection",
    "DonorAverage": "nodecopy.defend.copying_correction.DonorAverage",
    "WithoutEdges": "nodecopy.defend.without_edges.WithoutEdges",
    "GCNSVD": "nodecopy.defend.pruned_gcn.GCNSVD",
    "GCNJaccard": "nodecopy.defend.pruned_gcn.GCNJaccard",
}
NETWORKS: dict[str, type[Networks]] = {kind.__name__: kind for kind in (Networks, FilterNetworks)}
ARRAYS = {"about", "classes", "node_ids", "probabilities", "mean_entropy", "keys", "weights_0", "weights_1"}


def save(
    path: PathLike,
    kind: str,
    arguments: Mapping[str, Any],
    prediction: Prediction,
    classes: NDArray[Any],
    node_ids: NDArray[Any],
) -> None:
    """Write a fitted classifier; the file is there whole or not at all."""
    format_of(path, (".npz",))
    networks = prediction.networks
    assert networks is not None
    about = {
        "nodecopy": nodecopy.__version__,
        "classifier": check_name(kind, HOME_OF, "a classifier that can be saved"),
        "arguments": dict(arguments),
        "networks": networks.kind.__name__,
        "recipe": asdict(networks.recipe),
        "n_weight_samples": networks.n_weight_samples,
        "details": prediction.details,
    }
    arrays = {
        "about": np.array(json.dumps(about, default=lambda number: number.item())),  # NumPy's numbers
        "classes": classes,
        "node_ids": node_ids,
        "probabilities": prediction.probabilities,
        "mean_entropy": prediction.mean_entropy,
        "keys": networks.keys,
        **{f"weights_{number}": weight for number, weight in enumerate(networks.weights)},
    }
    # An open file, since NumPy would add .npz to a name that ends in .NPZ.
    with atomic_write(path) as temporary, temporary.open("wb") as file:
        np.savez_compressed(file, allow_pickle=False, **arrays)


def load(path: PathLike, *, device: str = "cpu") -> Classifier:
    """Read a classifier that :meth:`Classifier.save` wrote; it predicts what it predicted.

    Parameters
    ----------
    path
        The ``.npz`` file.
    device
        Where it is to predict on other graphs; a file does not care where it was trained.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> import numpy as np
    >>> from nodecopy import datasets
    >>> from nodecopy.classify import GCN, load
    >>> club = datasets.load("karate").replace(features=np.eye(34))
    >>> found = GCN(epochs=50).fit(club, [0, 33], rng=0)
    >>> with TemporaryDirectory() as folder:
    ...     found.save(f"{folder}/found.npz")
    ...     bool((load(f"{folder}/found.npz").predict() == found.predict()).all())
    True
    """
    format_of(path, (".npz",))
    with reading(path) as name, name.open("rb") as file:
        with np.load(file, allow_pickle=False) as archive:
            if not set(archive.files) >= ARRAYS:
                raise InputError(
                    f"there is no classifier in it; it holds {', '.join(sorted(archive.files)) or 'nothing'}."
                )
            arrays = {key: archive[key] for key in archive.files}
        about = json.loads(str(arrays["about"]))
        kind = import_by_name(about["classifier"], HOME_OF, "a saved classifier")
        weights = tuple(
            arrays[f"weights_{n}"] for n in range(sum(key.startswith("weights_") for key in arrays))
        )
        made = NETWORKS[about.get("networks", "Networks")]
        recipe = made.recipe_type(**about["recipe"])
        networks = Ensemble(recipe, weights, arrays["keys"], about["n_weight_samples"], made)
        classifier: Classifier = kind._restored(about["arguments"], device)
        classifier._take(
            Prediction(arrays["probabilities"], arrays["mean_entropy"], about["details"], networks),
            arrays["classes"],
            arrays["node_ids"],
        )
    return classifier
