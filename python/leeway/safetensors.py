"""Reads and writes safetensors files: https://github.com/huggingface/safetensors, format of version 0.3 and later.

A file is 8 bytes with the length of the header (little endian), the header as JSON, and the values. A file with any
invalid part is refused. The reader never allocates more memory than the file's own size justifies.

This reader exists beside Leeway's reader in C++ for two reasons. The C++ reader reads only finite floats from files,
but the states of optimizers are bytes in memory that also hold integers and truth values. And files must be readable
where libleeway-client.so is not installed."""

from __future__ import annotations

import json
import math
import os
from typing import Any, Mapping, Optional, Union

import numpy as np

from .errors import Error, InvalidArgument

HEADER_BYTES_MAX = 100_000_000
DIMENSIONS_MAX = 64
DTYPES = {"F64": "<f8", "F32": "<f4", "F16": "<f2", "I64": "<i8", "I32": "<i4", "I16": "<i2", "I8": "<i1",
          "U64": "<u8", "U32": "<u4", "U16": "<u2", "U8": "<u1", "BOOL": "|b1"}
#: numpy has no bfloat16. Such tensors are returned as float32, which represents each of their values exactly.
BFLOAT16 = "BF16"
NAMES = {np.dtype(dtype): name for name, dtype in DTYPES.items()}

Path = Union[str, "os.PathLike[str]"]


class FormatError(InvalidArgument):
    """The bytes are not a safetensors file."""


def _refuse(text: str) -> Any:
    raise FormatError(f"not a safetensors file: {text}")


def _number(text: str) -> int:
    return int(text) if len(text) <= 19 else _refuse(f"the header has a number with {len(text)} digits")


def _pairs(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    return found if len(found) == len(pairs) else _refuse("the header has a key twice")


def _header(data: memoryview) -> tuple[dict[str, Any], int]:
    """Returns the header, and the position at which the values begin."""
    if len(data) < 8:
        _refuse(f"it has {len(data)} bytes, but the length of the header alone takes 8")
    length = int.from_bytes(data[:8], "little")
    if length > min(HEADER_BYTES_MAX, len(data) - 8):
        _refuse(f"its header would have {length} bytes, but only {len(data) - 8} follow")
    try:
        text = bytes(data[8:8 + length]).decode("utf-8")
        header = json.loads(text, parse_int=_number, parse_float=lambda t: _refuse(f"the header has the number {t}"),
                            parse_constant=lambda t: _refuse(f"the header has {t}"), object_pairs_hook=_pairs)
    except Error:
        raise
    except (ValueError, RecursionError) as error:
        raise FormatError(f"not a safetensors file: its header is not JSON: {error}") from None
    if not text.startswith("{") or not isinstance(header, dict):
        _refuse("its header is not a JSON object")
    return header, 8 + length


def _is_count(value: Any) -> bool:
    return type(value) is int and value >= 0


def _entry(name: str, entry: Any, values: int) -> tuple[str, tuple[int, ...], int, int]:
    """Returns dtype, shape, begin and end of a tensor. Checks that they are in bounds, and that the length fits dtype
    and shape."""
    if not isinstance(entry, dict) or set(entry) != {"dtype", "shape", "data_offsets"}:
        _refuse(f"tensor {name!r} must have exactly dtype, shape and data_offsets")
    dtype, shape, offsets = entry["dtype"], entry["shape"], entry["data_offsets"]
    if not isinstance(dtype, str) or (dtype not in DTYPES and dtype != BFLOAT16):
        _refuse(f"tensor {name!r} has the unknown dtype {dtype!r}")
    if not isinstance(shape, list) or len(shape) > DIMENSIONS_MAX or not all(map(_is_count, shape)):
        _refuse(f"tensor {name!r} has the invalid shape {str(shape)[:100]}")
    if not isinstance(offsets, list) or len(offsets) != 2 or not all(map(_is_count, offsets)):
        _refuse(f"tensor {name!r} has the invalid data_offsets {str(offsets)[:100]}")
    begin, end = offsets
    width = 2 if dtype == BFLOAT16 else np.dtype(DTYPES[dtype]).itemsize
    if not begin <= end <= values or end - begin != math.prod(shape) * width:
        _refuse(f"tensor {name!r} of {dtype} {shape} cannot have the bytes {begin} to {end} of {values}")
    return dtype, tuple(shape), begin, end


def _array(data: memoryview, dtype: str, shape: tuple[int, ...], name: str) -> np.ndarray:
    if dtype == BFLOAT16:
        halves = np.frombuffer(data, "<u2").astype(np.uint32) << 16
        return halves.view(np.float32).reshape(shape)
    if dtype == "BOOL" and any(value > 1 for value in set(bytes(data))):
        _refuse(f"tensor {name!r} has a truth value that is neither 0 nor 1")
    try:
        return np.frombuffer(data, DTYPES[dtype]).reshape(shape).copy()
    except ValueError as error:
        raise FormatError(f"tensor {name!r}: numpy cannot hold the shape {shape}: {error}") from None


def loads(data: bytes) -> tuple[dict[str, np.ndarray], dict[str, str]]:
    """Returns the tensors and the metadata in a file's bytes. Raises FormatError, an InvalidArgument, if the bytes are
    not a safetensors file."""
    view = memoryview(data)
    header, start = _header(view)
    metadata = header.pop("__metadata__", {})
    if not isinstance(metadata, dict) or not all(isinstance(value, str) for value in metadata.values()):
        _refuse("__metadata__ is not a mapping of strings")
    values = len(view) - start
    entries = {name: _entry(name, entry, values) for name, entry in header.items()}
    reached = 0
    for name, (_, _, begin, end) in sorted(entries.items(), key=lambda item: item[1][2:]):
        if begin != reached:
            _refuse(f"tensor {name!r} begins at byte {begin} of the values, but the previous one ends at {reached}")
        reached = end
    if reached != values:
        _refuse(f"{values - reached} bytes do not belong to a tensor")
    tensors = {name: _array(view[start + begin:start + end], dtype, shape, name)
               for name, (dtype, shape, begin, end) in entries.items()}
    return tensors, metadata


def load(path: Path) -> dict[str, np.ndarray]:
    """Returns the tensors of a file by name, in the order of the header."""
    with open(path, "rb") as file:
        data = file.read()
    try:
        return loads(data)[0]
    except FormatError as error:
        raise FormatError(f"{os.fspath(path)}: {error}") from None


def dumps(tensors: Mapping[str, Any], metadata: Optional[Mapping[str, str]] = None) -> bytes:
    """Returns the bytes of a file with these tensors, in the order of the mapping."""
    header: dict[str, Any] = {"__metadata__": dict(metadata)} if metadata else {}
    parts, reached = [], 0
    for name, given in tensors.items():
        array = np.asarray(given)
        dtype = NAMES.get(array.dtype.newbyteorder("<") if array.dtype.itemsize > 1 else array.dtype)
        if not isinstance(name, str) or name == "__metadata__":
            raise InvalidArgument(f"{name!r} cannot be the name of a tensor in a safetensors file")
        if dtype is None:
            raise InvalidArgument(f"tensor {name}: safetensors files cannot have values of the type {array.dtype}")
        part = np.ascontiguousarray(array).astype(DTYPES[dtype], copy=False).tobytes()
        header[name] = {"dtype": dtype, "shape": list(array.shape), "data_offsets": [reached, reached + len(part)]}
        parts.append(part)
        reached += len(part)
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    return b"".join([len(text).to_bytes(8, "little"), text, *parts])


def save(path: Path, tensors: Mapping[str, Any], metadata: Optional[Mapping[str, str]] = None) -> None:
    """Writes a file. It is written under another name in the same folder and then renamed, so that the file is complete
    or absent."""
    target = os.fspath(path)
    beside = f"{target}.{os.getpid()}.part"
    try:
        with open(beside, "wb") as file:
            file.write(dumps(tensors, metadata))
            file.flush()
            os.fsync(file.fileno())
        os.replace(beside, target)
    except BaseException:
        if os.path.exists(beside):
            os.remove(beside)
        raise
