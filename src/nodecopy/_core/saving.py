"""Fitted objects in and out of files: one NumPy archive for every family, never with pickles.

A file holds a tree of plain values as JSON and the arrays that the tree names. An object in the tree is its
class, by public name, with the parameters of its constructor and its fitted state. Only classes of this
package are ever imported; other classes, and functions, are those that the caller of :func:`load` gives.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import fields, is_dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from nodecopy._core.array_archives import read_arrays, write_arrays
from nodecopy._core.atomic_files import atomic_write
from nodecopy._core.formats import PathLike, format_of, reading
from nodecopy._core.lookup import import_class, public_name
from nodecopy._core.params import Configurable
from nodecopy._core.sparse_matrices import csr_from_parts
from nodecopy._core.validation import check_sequence, show
from nodecopy.errors import InputError

PACKAGE = __name__.partition(".")[0]
TREE = "tree"
CSR_PARTS = ("data", "indices", "indptr")


class Saveable(Configurable):
    """What is fitted and can be saved: parameters, and a state that :func:`load` restores.

    By default the state is every attribute whose name ends in an underscore. A subclass that keeps more
    writes :meth:`get_state` and :meth:`set_state`.
    """

    def get_state(self) -> dict[str, Any]:
        """Return what was fitted, as arrays, SciPy CSR matrices, graphs and plain values by name."""
        return {
            name: value
            for name, value in vars(self).items()
            if name.endswith("_") and not name.startswith("_")
        }

    def set_state(self, state: dict[str, Any]) -> None:
        """Take over what :meth:`get_state` returned."""
        methods = [name for name in state if callable(getattr(type(self), name, None))]
        if methods:
            raise InputError(
                f"the state of {type(self).__name__} must not replace methods; got {methods[0]}."
            )
        vars(self).update(state)

    def save(self, path: PathLike) -> None:
        """Write the fitted object to an ``.npz`` file, which :func:`nodecopy.load` reads.

        The file is written as a whole or not at all. It does not hold the device.
        """
        format_of(path, (".npz",))
        arrays: dict[str, NDArray[Any]] = {}
        tree = json.dumps(_encode(self, arrays, type(self).__name__))
        with atomic_write(path) as temporary, temporary.open("wb") as file:
            write_arrays(file, {TREE: np.array(tree)} | arrays)

    @classmethod
    def load(cls, path: PathLike, *, device: str = "cpu", mmap: bool = False) -> Self:
        """Read an object of this class that :meth:`save` wrote; see :func:`nodecopy.load`."""
        loaded = load(path, device=device, classes=[cls], mmap=mmap)
        if not isinstance(loaded, cls):
            raise InputError(f"{path} must hold a {cls.__name__}; it holds a {type(loaded).__name__}.")
        return loaded


def load(path: PathLike, *, device: str = "cpu", classes: Iterable[Any] = (), mmap: bool = False) -> Any:
    """Read a fitted graph model, classifier, defence or recommender that its ``save`` wrote.

    Parameters
    ----------
    path
        The ``.npz`` file.
    device
        Where networks are evaluated and trained again; the file does not say.
    classes
        Classes and functions of your own that the file may name, such as the function that builds a network.
        Nothing else from outside the package is imported or called.
    mmap
        Whether to memory-map arrays of floating-point numbers of 16 MiB and more, read-only: a recommender
        with a large items x items matrix loads at once, and all processes that serve it share the memory.
        Checksums of mapped arrays are not compared, and the file must not be changed in place while it is
        in use; ``save`` replaces it as a whole, which is safe. By default everything is read into memory.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> import nodecopy
    >>> from nodecopy import NodeCopying, SameLabel, datasets
    >>> model = NodeCopying(SameLabel()).fit(datasets.load("karate"))
    >>> with TemporaryDirectory() as folder:
    ...     model.save(f"{folder}/model.npz")
    ...     nodecopy.load(f"{folder}/model.npz").sample(rng=0) == model.sample(rng=0)
    True
    """
    format_of(path, (".npz",))
    own = _Given(classes)
    with reading(path) as file:
        arrays = read_arrays(file, mmap=mmap)
        if TREE not in arrays:
            held = ", ".join(sorted(arrays)) or "nothing"
            way_out = "A file of another class is read by the load of that class."
            raise InputError(f"the file must hold a fitted object; it holds {held}. {way_out}")
        tree = json.loads(str(arrays[TREE]))
        if not isinstance(tree, dict) or "class" not in tree:
            raise InputError("the file must hold a fitted object that save() wrote; it holds another value.")
        return _decode(tree, arrays, own, device)


class _Given:
    """The classes and functions that the caller of :func:`load` gives, by the names that a file has."""

    def __init__(self, classes: Any) -> None:
        allowed = "a list of classes and functions such as [MyModel]"
        is_class = isinstance(classes, type)
        given = check_sequence(None if is_class else classes, "classes", allowed)
        if not all(hasattr(value, "__name__") for value in given):
            raise InputError(f"classes must be {allowed}; got {show(classes)}.")
        self._named = [(public_name(value), value) for value in given if isinstance(value, type)]
        self._named += [(_function_name(value), value) for value in given]

    def find(self, name: str) -> Any:
        """Return the class or function of a name, ``None`` without one; two of a name are an error."""
        matches = {id(value): value for own, value in self._named if own == name}
        if len(matches) > 1:
            raise InputError(
                f"classes must hold one {name}, since the file names it; got {len(matches)} of that name."
            )
        return next(iter(matches.values()), None)


def _function_name(value: Any) -> str:
    """Return the name by which :func:`load` finds a function, or a class that is called like one.

    It has no module, which may be ``__main__`` where it is saved and another where it is loaded.
    """
    return f"{value.__name__}()"


def _encode(value: Any, arrays: dict[str, NDArray[Any]], where: str) -> Any:
    """Turn a value into JSON; ``where`` says in errors which one cannot be saved."""
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, np.ndarray) and value.dtype.kind in "biufU":
        memory = value.__array_interface__  # a view of the same memory is stored once
        names = (name for name, array in arrays.items() if array.__array_interface__ == memory)
        name = next(names, f"array_{len(arrays)}")
        arrays[name] = value
        return {"array": name}
    if isinstance(value, (list, tuple)) and not hasattr(value, "_fields"):
        kind = "list" if isinstance(value, list) else "tuple"
        return {kind: [_encode(part, arrays, where) for part in value]}
    if isinstance(value, dict) and all(isinstance(key, str) for key in value):
        return {"dict": {key: _encode(part, arrays, f"{key} of {where}") for key, part in value.items()}}
    if bool(sparse.issparse(value)):  # bool() keeps the type checker from narrowing
        matrix: Any = sparse.csr_array(value)
        stored = {part: _encode(getattr(matrix, part), arrays, where) for part in CSR_PARTS}
        return {"csr": stored, "shape": list(matrix.shape)}
    if isinstance(value, Configurable):
        params = {name: part for name, part in value.get_params(deep=False).items() if name != "device"}
        state = value.get_state() if isinstance(value, Saveable) else {}
        return _encode_object(value, {"params": params, "state": state}, arrays, where)
    if callable(value):
        if getattr(value, "__name__", "<lambda>") == "<lambda>":
            raise InputError(
                f"{where} must be a function with a name to be saved; got {show(value)}. Define it with def."
            )
        return {"function": _function_name(value)}
    if hasattr(value, "to_parts"):
        return _encode_object(value, {"parts": value.to_parts()}, arrays, where)
    if hasattr(value, "_fields"):  # a named tuple
        return _encode_object(value, {"parts": value._asdict()}, arrays, where)
    if is_dataclass(value) and not isinstance(value, type):
        parts = {field.name: getattr(value, field.name) for field in fields(value)}
        return _encode_object(value, {"parts": parts}, arrays, where)
    raise InputError(f"{where} must be made of arrays and plain values to be saved; got {show(value)}.")


def _encode_object(
    value: Any, sections: dict[str, dict[str, Any]], arrays: dict[str, NDArray[Any]], where: str
) -> dict[str, Any]:
    """Turn an object into its public class name and one or two sections of named values."""
    owner = type(value).__name__
    path = owner if where == owner else f"{owner}, {where}"
    return {"class": public_name(type(value))} | {
        section: {key: _encode(part, arrays, f"{key} of {path}") for key, part in parts.items()}
        for section, parts in sections.items()
    }


def _decode(tree: Any, arrays: dict[str, NDArray[Any]], own: _Given, device: str) -> Any:
    def decode(part: Any) -> Any:
        return _decode(part, arrays, own, device)

    if not isinstance(tree, dict):
        return tree
    if "array" in tree:
        return arrays[tree["array"]]
    if "list" in tree or "tuple" in tree:
        return (
            [decode(part) for part in tree["list"]] if "list" in tree else tuple(map(decode, tree["tuple"]))
        )
    if "dict" in tree:
        return {key: decode(part) for key, part in tree["dict"].items()}
    if "csr" in tree:
        data, indices, indptr = (decode(tree["csr"][part]) for part in CSR_PARTS)
        return csr_from_parts(data, indices, indptr, tree["shape"], "a matrix of the file")
    if "function" in tree:
        if (function := own.find(tree["function"])) is None:
            raise InputError(
                f"classes must hold {tree['function']}, since the file names it and does not hold its code."
            )
        return function
    name = tree["class"]
    kind = own.find(name)
    if kind is None and not str(name).startswith(f"{PACKAGE}."):
        raise InputError(f"classes must name {name}, since the file holds one and it is not of {PACKAGE}.")
    kind = kind or import_class(name, "the file")
    sections = {
        section: {key: decode(part) for key, part in tree[section].items()}
        for section in ("params", "state", "parts")
        if section in tree
    }
    return _build(kind, name, sections, device)


def _build(kind: Any, name: str, sections: dict[str, dict[str, Any]], device: str) -> Any:
    """Rebuild an object from its parameters and state, or from its parts."""
    if isinstance(kind, type) and issubclass(kind, Configurable):
        params = sections["params"]
        if "device" in kind.parameter_names():
            params["device"] = device
        built: Any = kind(**params)
        if isinstance(built, Saveable):
            built.set_state(sections["state"])
        return built
    if hasattr(kind, "from_parts"):
        return kind.from_parts(sections["parts"])
    if isinstance(kind, type) and (is_dataclass(kind) or hasattr(kind, "_fields")):
        return kind(**sections["parts"])
    raise InputError(f"the file must name classes that can be loaded; got {name}.")
