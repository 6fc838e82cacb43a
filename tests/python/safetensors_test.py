#!/usr/bin/python3
"""leeway.safetensors: files are written and read back bit by bit; damaged files are refused, or read as they stand."""

import json
import os
import pathlib
import resource
import tempfile
import unittest

import numpy as np

from leeway import safetensors
from leeway.errors import InvalidArgument


def file_of(header, values=b"", length=None):
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return (len(text) if length is None else length).to_bytes(8, "little") + text + values


def entry(dtype="F32", shape=(1,), offsets=(0, 4)):
    return {"dtype": dtype, "shape": list(shape), "data_offsets": list(offsets)}


def by_hand(data):
    """Reads a file by the format's definition, without any check."""
    length = int.from_bytes(data[:8], "little")
    header = json.loads(data[8:8 + length])
    values = data[8 + length:]
    return {name: (e["dtype"], e["shape"], values[e["data_offsets"][0]:e["data_offsets"][1]])
            for name, e in header.items() if name != "__metadata__"}


class Files(unittest.TestCase):
    def tensors(self):
        draws = np.random.default_rng(1)
        return {"a/weight": draws.standard_normal((3, 5)).astype(np.float32), "b": np.array(7, np.int64),
                "empty": np.zeros((0, 4), np.float32), "flags": np.array([True, False]),
                "transposed": draws.standard_normal((4, 2)).T, "half": np.array([1.5, -2], np.float16),
                "nan": np.array([np.nan, np.inf, -0.0], np.float32), "ü": np.arange(3, dtype=np.uint8)}

    def test_they_go_round(self):
        with tempfile.TemporaryDirectory() as folder:
            path = f"{folder}/x.safetensors"
            safetensors.save(path, self.tensors(), {"why": "a test"})
            read = safetensors.load(path)
            self.assertEqual(os.listdir(folder), ["x.safetensors"])
            data = pathlib.Path(path).read_bytes()
        self.assertEqual(list(read), list(self.tensors()))
        for name, value in self.tensors().items():
            self.assertEqual(read[name].dtype, value.dtype)
            self.assertEqual(read[name].shape, value.shape)
            self.assertEqual(read[name].tobytes(), np.ascontiguousarray(value).tobytes())
        self.assertEqual(safetensors.loads(data)[1], {"why": "a test"})
        self.assertEqual(int.from_bytes(data[:8], "little") % 8, 0)

    def test_bfloat16_is_read(self):
        data = file_of({"x": entry("BF16", [2], [0, 4])}, (0x3FC0C000).to_bytes(4, "little"))
        self.assertEqual(safetensors.loads(data)[0]["x"].tolist(), [-2.0, 1.5])

    def test_refused(self):
        four = b"\0" * 4
        nested = b'{"x":' + b"[" * 100000 + b"]" * 100000 + b"}"
        for what, data in {
                "nothing": b"", "half a length": b"\1\0\0", "a length beyond the file": file_of({}, length=9),
                "a huge length": file_of({}, length=2**63), "no JSON": file_of(b"{x}"), "no object": file_of(b"[]"),
                "no text": file_of(b"\xff\xfe{}"), "blanks first": file_of(b" {}"), "nesting": file_of(nested),
                "a key twice": file_of(b'{"x":' + json.dumps(entry()).encode() + b',"x":' + json.dumps(entry()).encode()
                                       + b"}", four),
                "a fraction": file_of(b'{"x":{"dtype":"F32","shape":[1.0],"data_offsets":[0,4]}}', four),
                "NaN": file_of(b'{"x":{"dtype":"F32","shape":[NaN],"data_offsets":[0,4]}}', four),
                "digits": file_of(b'{"x":{"dtype":"F32","shape":[' + b"9" * 5000 + b'],"data_offsets":[0,4]}}', four),
                "a dtype": file_of({"x": entry("F8")}, four), "no dtype": file_of({"x": {"shape": [1]}}, four),
                "a list": file_of({"x": []}), "one more key": file_of({"x": {**entry(), "y": 1}}, four),
                "a negative side": file_of({"x": entry(shape=[-1])}, four),
                "a truth value as a side": file_of(b'{"x":{"dtype":"F32","shape":[true],"data_offsets":[0,4]}}', four),
                "a product": file_of({"x": entry(shape=[2**33, 2**31])}, four),
                "too many sides": file_of({"x": entry(shape=[1] * 65)}, four),
                "another length": file_of({"x": entry(shape=[2])}, four),
                "an end before its begin": file_of({"x": entry(shape=[0], offsets=[4, 0])}, four),
                "beyond the end": file_of({"x": entry(offsets=[4, 8])}, four),
                "a hole": file_of({"x": entry(offsets=[4, 8])}, four * 2), "more at the end": file_of({"x": entry()}, four * 2),
                "an overlap": file_of({"x": entry(shape=[2], offsets=[0, 8]), "y": entry(offsets=[4, 8])}, four * 2),
                "a truth value": file_of({"x": entry("BOOL", [1], [0, 1])}, b"\2"),
                "metadata": file_of({"__metadata__": {"x": 1}}), "no metadata": file_of({"__metadata__": []})}.items():
            with self.subTest(what):
                self.assertRaises(safetensors.FormatError, safetensors.loads, data)

    def test_every_byte_flipped_and_every_truncation(self):
        data = safetensors.dumps({"w": np.arange(6, dtype=np.float32).reshape(2, 3), "b": np.arange(2, dtype=np.int32)},
                                 {"k": "v"})
        damaged = [data[:n] for n in range(len(data))]
        for place in range(len(data)):
            for flip in [1 << bit for bit in range(8)] + [0xFF]:
                damaged.append(data[:place] + bytes([data[place] ^ flip]) + data[place + 1:])
        read = 0
        for bad in damaged:
            try:
                tensors = safetensors.loads(bad)[0]
            except InvalidArgument:
                continue
            read += 1
            said = by_hand(bad)
            self.assertEqual(tensors.keys(), said.keys())
            for name, (dtype, shape, values) in said.items():
                self.assertEqual(list(tensors[name].shape), shape)
                if dtype != "BF16":
                    self.assertEqual(tensors[name].tobytes(), values)
        self.assertGreater(read, 32 * 9 - 1)  # The values may be anything.
        self.assertLess(read, len(damaged) // 2)

    def test_nothing_large_is_allocated(self):
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        for length in (2**30, 2**40, 2**62):
            self.assertRaises(InvalidArgument, safetensors.loads, file_of({"x": entry()}, length=length))
            self.assertRaises(InvalidArgument, safetensors.loads,
                              file_of({"x": entry("U8", [length], [0, length])}, b"\0"))
        self.assertLess(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before, 20_000)

    def test_written_values(self):
        self.assertRaisesRegex(InvalidArgument, "x.*complex", safetensors.dumps, {"x": np.zeros(2, complex)})
        self.assertRaises(InvalidArgument, safetensors.dumps, {"__metadata__": np.zeros(2)})
        big = np.arange(3, dtype=">f4")
        self.assertEqual(safetensors.loads(safetensors.dumps({"x": big}))[0]["x"].tolist(), [0, 1, 2])


if __name__ == "__main__":
    unittest.main()
