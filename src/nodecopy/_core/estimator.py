"""Parameters by name as in scikit-learn, and fitted objects in NumPy archives with a JSON tree."""

from __future__ import annotations

import inspect
import json
import math
import struct
import zipfile
from collections.abc import Iterable, Sequence
from dataclasses import fields, is_dataclass
from functools import lru_cache
from pathlib import Path
from types import UnionType
from typing import Any, BinaryIO, ClassVar, Self, TypeVar, Union, get_args, get_origin, get_type_hints

import numpy as np
from scipy import sparse

from nodecopy._core.arrays import Array, csr_from_parts
from nodecopy._core.checks import check_sequence, check_unpacked, open_archive, show, type_name
from nodecopy._core.files import PathLike, atomic_write, format_of, reading
from nodecopy._core.imports import check_name, import_class, public_name
from nodecopy.errors import InputError

PACKAGE, TREE, CSR_PARTS = "nodecopy", "tree", ("data", "indices", "indptr")
NUMBERS = np.floating, np.integer, np.bool_
NODE_BYTES = 2**12  # of an object in a tree, at most; a small file can hold a large tree
MIN_MAPPED_BYTES = 2**24  # size from which arrays are mapped; smaller ones are read in milliseconds
MAX_SHOWN = 200  # characters of a parameter in the text of an object; of longer ones, the type is shown
ALIGNMENT, LOCAL_HEADER_BYTES, ZIP64_BYTES = 64, 30, 20
PADDING_ID = 0xD935  # of an extra field, as Android's zipalign writes it


class Configurable:
    """Mixin that provides scikit-learn's ``get_params`` and ``set_params``, and so ``clone``."""

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the parameters; ``deep`` adds nested ones, such as ``donors__labels``."""
        params: dict[str, Any] = {}
        parts: dict[str, Any] = {}
        for name in self.parameter_names():
            if not hasattr(self, name):
                kind = type(self).__name__
                raise InputError(name, f"must be stored by the constructor of {kind} as self.{name}.")
            params[name] = part = getattr(self, name)
            if deep and isinstance(part, Configurable):
                parts |= {f"{name}__{inner}": value for inner, value in part.get_params().items()}
        return params | parts

    def set_params(self, **changes: Any) -> Self:
        """Change parameters in place; the fitted state stays until the next ``fit``."""
        for owner, name, value in self._find_changes(changes):  # all are checked before the first is set
            setattr(owner, name, value)
        return self

    def _find_changes(self, changes: dict[str, Any]) -> list[tuple[Configurable, str, Any]]:
        own: dict[str, Any] = {}
        of_parts: dict[str, dict[str, Any]] = {}
        for name, value in changes.items():
            head, separator, inner = name.partition("__")
            check_name(head, self.parameter_names(), f"a parameter of {type(self).__name__}")
            if separator:
                of_parts.setdefault(head, {})[inner] = value
            else:
                own[head] = value
        owners: list[tuple[Configurable, str, Any]] = [(self, name, value) for name, value in own.items()]
        for name, inners in of_parts.items():
            part = own.get(name, getattr(self, name, None))
            if not isinstance(part, Configurable):
                owner = f"{name} of {type(self).__name__}"
                raise InputError(f"{owner} must have parameters to set {min(inners)}; got {show(part)}.")
            owners += part._find_changes(inners)
        return owners

    @classmethod
    def parameter_names(cls) -> list[str]:
        """Return the names of the constructor's parameters."""
        return list(inspect.signature(cls).parameters)

    def __repr__(self) -> str:
        signature = inspect.signature(type(self)).parameters
        texts = {name: (repr(value), value) for name, value in self.get_params(deep=False).items()}
        arguments = [
            f"{name}={text if len(text) < MAX_SHOWN or isinstance(value, Configurable) else type_name(value)}"
            for name, (text, value) in texts.items()
            if text != repr(signature[name].default)
        ]
        return f"{type(self).__name__}({', '.join(arguments)})"


class Saveable(Configurable):
    """Mixin for objects that can be saved: parameters, and fitted attributes, which end in "_"."""

    optional_state: ClassVar[set[str]] = set()  # annotated fitted attributes that files may lack

    def get_state(self) -> dict[str, Any]:
        """Return the fitted attributes by name."""
        return {name: part for name, part in vars(self).items() if name[-1] == "_" and name[0] != "_"}

    def required_state(self) -> set[str]:
        """Return the names of the fitted attributes that are annotated and have no default."""
        kind: Any = type(self)
        names = {name for name in type_hints(kind) if name[-1] == "_" and name[0] != "_"}
        return {name for name in names - self.optional_state if not hasattr(kind, name)}

    def set_state(self, state: dict[str, Any]) -> None:
        """Take over what :meth:`get_state` returned."""
        methods = [name for name in state if callable(getattr(type(self), name, None))]
        if methods:
            raise InputError(f"the state of {type(self).__name__} must not replace the method {methods[0]}.")
        vars(self).update(state)

    def save(self, path: PathLike) -> None:
        """Write the fitted object to an ``.npz`` file, which :func:`nodecopy.load` reads.

        The file is written as a whole or not at all. It does not hold the device.
        """
        format_of(path, (".npz",))
        getattr(self, "check_fitted", lambda: None)()
        arrays: dict[str, Array] = {}
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
        Where networks are evaluated and trained again, ``"cpu"`` by default.
    classes
        Classes and functions of your own that the file may name; no others are imported or called.
    mmap
        Whether to memory-map arrays of floats of 16 MiB and more, which loads a large recommender at once and
        lets processes share its memory, without checksums. Do not change the file in place while it is used.

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
    named = _check_classes(classes)
    with reading(path) as file:
        arrays = read_arrays(file, mmap=mmap)
        tree = json.loads(str(arrays[TREE])) if TREE in arrays else None
        if not isinstance(tree, dict) or "class" not in tree:
            held = ", ".join(sorted(arrays)) or "nothing"
            raise InputError(f"the file must hold a fitted object; it holds {held}.")
        return _Decoder(arrays, file.stat().st_size, named, device).decode(tree)


def _check_classes(classes: Any) -> list[Any]:
    allowed = "a list of classes and functions such as [MyModel]"
    given = check_sequence(None if isinstance(classes, type) else classes, "classes", allowed)
    if not all(hasattr(value, "__name__") for value in given):
        raise InputError("classes", f"must be {allowed}; got {show(classes)}.")
    return given


def _find(name: str, named: list[Any]) -> Any:
    """Return the class or function of a name, or ``None``; two of a name are an error."""
    classes = [value for value in named if isinstance(value, type) and public_name(value) == name]
    functions = [value for value in named if _function_name(value) == name]
    matches = {id(value): value for value in classes + functions}
    if len(matches) > 1:
        raise InputError("classes", f"must hold one {name}, since the file names it; got {len(matches)}.")
    return next(iter(matches.values()), None)


def _function_name(value: Any) -> str:
    return f"{value.__name__}()"


def _encode(value: Any, arrays: dict[str, Array], where: str) -> Any:
    def encode_object(sections: dict[str, dict[str, Any]]) -> dict[str, Any]:
        owner = type(value).__name__
        path = owner if where == owner else f"{owner}, {where}"
        return {"class": public_name(type(value))} | {
            section: {key: _encode(part, arrays, f"{key} of {path}") for key, part in parts.items()}
            for section, parts in sections.items()
        }

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
        return encode_object({"params": params, "state": state})
    if callable(value):
        if getattr(value, "__name__", "<lambda>") == "<lambda>":
            raise InputError(f"{where} must be a function with a name to be saved; got {show(value)}.")
        return {"function": _function_name(value)}
    if hasattr(value, "to_parts"):
        parts = value.to_parts()
    elif hasattr(value, "_fields"):  # a named tuple
        parts = value._asdict()
    elif is_dataclass(value) and not isinstance(value, type):
        parts = {field.name: getattr(value, field.name) for field in fields(value)}
    else:
        raise InputError(f"{where} must be made of arrays and plain values to be saved; got {show(value)}.")
    return encode_object({"parts": parts})


class _Decoder:
    """Objects from the tree and the arrays of a file; what it returns has the types that classes annotate."""

    def __init__(self, arrays: dict[str, Array], packed: int, named: list[Any], device: str) -> None:
        self.arrays, self.packed, self.named, self.device, self.n_bytes = arrays, packed, named, device, 0

    def decode(self, tree: Any) -> Any:
        if not isinstance(tree, dict):
            return tree
        array = self.arrays[tree["array"]] if "array" in tree else None
        self.n_bytes += NODE_BYTES if array is None else array.nbytes  # a tree can name an array repeatedly
        check_unpacked(self.n_bytes, self.packed)
        if array is not None:
            return array.astype(array.dtype.newbyteorder("="), copy=False)
        if "list" in tree:
            return [*map(self.decode, tree["list"])]
        if "tuple" in tree:
            return tuple(map(self.decode, tree["tuple"]))
        if "dict" in tree:
            return {key: self.decode(part) for key, part in tree["dict"].items()}
        if "csr" in tree:
            data, indices, indptr = (self.decode(tree["csr"][part]) for part in CSR_PARTS)
            return csr_from_parts(data, indices, indptr, tree["shape"], "a matrix of the file")
        if "function" in tree:
            if (function := _find(tree["function"], self.named)) is None:
                raise InputError("classes", f"must hold {tree['function']}, whose code is not in the file.")
            return function
        return self._build(tree, tree["class"])

    def _build(self, tree: dict[str, Any], name: str) -> Any:
        kind = _find(name, self.named)
        if kind is None and not str(name).startswith(f"{PACKAGE}."):
            raise InputError("classes", f"must name {name}, which the file holds and {PACKAGE} does not.")
        kind = kind or import_class(name, "the file")
        is_own = kind.__module__.startswith(PACKAGE)

        def section(title: str) -> dict[str, Any]:
            values = {key: self.decode(part) for key, part in tree[title].items()}
            return check_annotated(values, kind) if is_own else values

        if isinstance(kind, type) and issubclass(kind, Configurable):
            params = section("params")
            if "device" in kind.parameter_names():
                params["device"] = self.device
            built: Any = kind(**params)
            if isinstance(built, Saveable):
                state = section("state")
                if is_own and state and (missing := built.required_state() - state.keys()):
                    raise InputError(f"the state of {kind.__name__} must hold {min(missing)}.")
                built.set_state(state)
            return built
        if hasattr(kind, "from_parts"):
            return kind.from_parts(section("parts"))
        if isinstance(kind, type) and (is_dataclass(kind) or hasattr(kind, "_fields")):
            return kind(**section("parts"))
        raise InputError(f"the file must name classes that can be loaded; got {name}.")


def check_annotated(values: dict[str, Any], kind: type) -> dict[str, Any]:
    """Return attributes of a class of the package if they have their annotated types and finite numbers."""
    hints = type_hints(kind)
    for name, value in values.items():
        if not _has_type(value, hint := hints.get(name, Any)):
            allowed = f"finite and of the type {hint.__name__ if isinstance(hint, type) else hint}"
            raise InputError(f"{name} of {kind.__name__}", f"must be {allowed}; got {show(value)}.")
    return values


@lru_cache
def type_hints(kind: Any) -> dict[str, Any]:
    """Return the annotations of the attributes of a class and of the parameters of its constructor."""
    return get_type_hints(kind) | get_type_hints(kind.__init__)


def _has_type(value: Any, hint: Any) -> bool:
    """Return whether a value has an annotated type; what the annotation leaves open is not checked."""
    numbers = value.data if isinstance(value, sparse.csr_array) else value
    if isinstance(numbers, np.ndarray):
        is_mapped = isinstance(numbers.base, np.memmap)  # which is not read here
        if numbers.dtype.kind == "f" and not is_mapped and not np.isfinite(numbers).all():
            return False
    kind, arguments = get_origin(hint) or hint, get_args(hint)
    if hasattr(kind, "__value__"):  # an alias, such as the arrays of NumPy from 2.5 on
        return _has_type(value, kind.__value__[arguments])
    if isinstance(kind, TypeVar):
        return not kind.__constraints__ or isinstance(value, kind.__constraints__)
    if kind in (Union, UnionType):
        return any(_has_type(value, part) for part in arguments)
    if kind is np.ndarray:
        scalar = get_args(arguments[1])[0]
        families = [part for part in NUMBERS if issubclass(get_origin(scalar) or scalar, part)]
        is_right = isinstance(value, kind) and all(np.issubdtype(value.dtype, part) for part in families)
        return is_right or (isinstance(value, kind) and not value.size)
    if kind is float:
        return isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value)
    if kind is int:
        return isinstance(value, int) and not isinstance(value, bool)
    if kind in (list, tuple, Sequence):
        if not isinstance(value, (list, tuple)):
            return False
        types = arguments if kind is tuple and arguments[-1] is not ... else arguments[:1] * len(value)
        return len(types) == len(value) and all(map(_has_type, value, types))
    if kind is dict:
        return isinstance(value, dict) and all(_has_type(part, arguments[1]) for part in value.values())
    return kind is Any or isinstance(value, int if kind is bool else kind)


def write_arrays(file: BinaryIO, arrays: dict[str, Array]) -> None:
    """Write arrays of numbers and strings to an archive that :func:`numpy.load` reads, too."""
    with zipfile.ZipFile(file, "w") as archive:
        for name, array in arrays.items():
            member = zipfile.ZipInfo(f"{name}.npy")
            member.compress_type = zipfile.ZIP_DEFLATED
            if array.dtype.kind == "f" and array.nbytes >= MIN_MAPPED_BYTES:
                member.compress_type = zipfile.ZIP_STORED
                start = file.tell() + LOCAL_HEADER_BYTES + len(member.filename) + ZIP64_BYTES
                n_filling = (-start - 4) % ALIGNMENT  # zeros after the header of the field align the data
                member.extra = struct.pack("<HH", PADDING_ID, n_filling) + bytes(n_filling)
            with archive.open(member, "w", force_zip64=True) as stream:
                np.lib.format.write_array(stream, array, allow_pickle=False)


def read_arrays(path: Path, *, mmap: bool = False) -> dict[str, Array]:
    """Return the arrays of an archive by name; ``mmap`` maps large ones, read-only."""
    arrays = {}
    with path.open("rb") as file, open_archive(file) as archive:
        for name in archive.files:
            mapped = _map_array(file, archive.zip, f"{name}.npy") if mmap else None
            arrays[name] = archive[name] if mapped is None else mapped
    return arrays


def _map_array(file: BinaryIO, archive: zipfile.ZipFile, name: str) -> Array | None:
    """Return a member of an archive by memory map, or ``None`` if it must be read."""
    if name not in archive.namelist():
        return None
    info = archive.getinfo(name)
    if info.compress_type != zipfile.ZIP_STORED or info.file_size < MIN_MAPPED_BYTES:
        return None
    with archive.open(info) as member:
        if np.lib.format.read_magic(member) != (1, 0):
            return None
        shape, is_fortran, dtype = np.lib.format.read_array_header_1_0(member)
        header_bytes = member.tell()
    file.seek(info.header_offset + LOCAL_HEADER_BYTES - 4)
    start = info.header_offset + LOCAL_HEADER_BYTES + sum(struct.unpack("<HH", file.read(4))) + header_bytes
    if dtype.kind != "f" or not dtype.isnative or start % dtype.itemsize:
        return None
    if header_bytes + math.prod(shape) * dtype.itemsize != info.file_size:
        raise ValueError(f"{name} must hold an array of shape {shape}")
    mapped = np.memmap(file, dtype, "r", offset=start, shape=shape, order="F" if is_fortran else "C")
    return np.asarray(mapped)  # an array like any other, whose results are no maps
