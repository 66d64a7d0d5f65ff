# SPDX-License-Identifier: Apache-2.0
"""The tensors of real ONNX models against a reader of protobuf that knows nothing of ours.

checkpoints_onnx.py DUMP DATA FOLDER   DATA: silero-vad, magika, onnx; FOLDER: ONNX's own test models; exit 77 with neither.
"""
import math
import pathlib
import struct
import sys
import unittest

import checkpoint_client as client
import ops_onnx

DUMP, DATA, TESTS = sys.argv[1], pathlib.Path(sys.argv[2]), pathlib.Path(sys.argv[3])
FORMATS = {1: ("f32", "f"), 2: ("u8", "B"), 3: ("i8", "b"), 4: ("u16", "H"), 5: ("i16", "h"), 6: ("i32", "i"), 7: ("i64", "q"), 9: ("bool", "B"),
           10: ("f16", "H"), 11: ("f64", "d"), 12: ("u32", "I"), 13: ("u64", "Q"), 14: ("c64", "2f"), 16: ("bf16", "H")}


def all_of(message, number):
    return [value for found, value in ops_onnx.fields(message) if found == number]


def text(message, number):
    return b"".join(all_of(message, number)[-1:]).decode()


def tensor_of(message, name):
    """None for what has no bytes (strings)."""
    dims = tuple(n for value in all_of(message, 1) for n in ops_onnx.integers(value))
    kind, data = all_of(message, 2)[-1], b"".join(all_of(message, 9))
    if kind not in FORMATS:
        return None
    format_name, code = FORMATS[kind]
    numbers = [n for field in (5, 7, 11) for value in all_of(message, field) for n in ops_onnx.integers(value)]
    mask = (1 << 8 * struct.calcsize(code)) - 1
    data += b"".join((n & mask).to_bytes(struct.calcsize(code), "little") for n in numbers) + b"".join(all_of(message, 4) + all_of(message, 10))
    assert len(data) == math.prod(dims) * struct.calcsize(code), (name, dims, len(data))
    return client.Tensor(name, format_name, "", dims, data)


def constant(node):
    """The Constant's tensor, made of whatever attribute it has."""
    for attribute in all_of(node, 5):
        for value in all_of(attribute, 5):
            return value
        kind = text(attribute, 1)
        if kind in ("value_float", "value_floats"):
            data = b"".join(all_of(attribute, 2 if kind == "value_float" else 7))
            return dims_of(kind, len(data) // 4) + b"\x10\x01" + b"\x4a" + varint(len(data)) + data
        if kind in ("value_int", "value_ints"):
            numbers = [n for value in all_of(attribute, 3 if kind == "value_int" else 8) for n in ops_onnx.integers(value)]
            data = struct.pack(f"<{len(numbers)}q", *numbers)
            return dims_of(kind, len(numbers)) + b"\x10\x07" + b"\x4a" + varint(len(data)) + data
    return None


def varint(number):
    out = b""
    while number > 127:
        out, number = out + bytes([number & 127 | 128]), number >> 7
    return out + bytes([number])


def dims_of(kind, count):
    return b"\x08" + varint(count) if kind.endswith("s") else b""


def tensors_of(graph, scope=""):
    for message in all_of(graph, 5):
        yield scope + text(message, 8), message
    for node in all_of(graph, 1):
        output = (all_of(node, 2) or [b""])[0].decode()
        if text(node, 4) == "Constant" and constant(node) is not None:
            yield scope + output, constant(node)
        for attribute in all_of(node, 5):
            for inner in all_of(attribute, 6):
                yield from tensors_of(inner, f"{scope}{output}:{text(attribute, 1)}:")


class Models(unittest.TestCase):
    def check(self, paths):
        count = 0
        for path, got in zip(paths, client.read_all(DUMP, paths, "map")):
            self.assertIsNone(got.error, path)
            for graph in all_of(path.read_bytes(), 7):
                for name, message in tensors_of(graph):
                    wanted = tensor_of(message, name)
                    self.assertIn(name, got.tensors, path)
                    if wanted is not None:
                        self.assertEqual(got.tensors[name], wanted, path)
                        count += 1
        return count

    def test_real_models(self):
        paths = sorted(DATA.rglob("*.onnx"))
        if not paths:
            self.skipTest(f"no models in {DATA}")
        self.assertGreater(self.check(paths), 300)

    def test_what_the_two_exports_share(self):
        a, b = DATA / "silero-vad/silero_vad_16k_op15.onnx", DATA / "silero-vad/silero_vad_op18_ifless.onnx"
        if not a.exists():
            self.skipTest(f"no {a}")
        first, second = client.read(DUMP, a), client.read(DUMP, b)
        self.assertEqual((first.metadata["opset.ai.onnx"], second.metadata["opset.ai.onnx"]), (("i64", "15"), ("i64", "18")))
        self.assertEqual((first.metadata["ir_version"][1], second.metadata["producer_version"][1]), ("8", "2.9.0+cu126"))
        weight = second.tensors["model.encoder.0.reparam_conv.weight"]
        twins = [t.name for t in first.tensors.values() if t.data == weight.data and t.dims == weight.dims]
        self.assertEqual(len(twins), 1)

    def test_the_test_models_of_onnx(self):
        paths = sorted(TESTS.rglob("*.onnx"))
        if not paths:
            self.skipTest(f"no test models in {TESTS}")
        self.assertGreater(self.check(paths), 50)


if __name__ == "__main__":
    if not DATA.is_dir() and not TESTS.is_dir():
        print("skipped: neither", DATA, "nor", TESTS)
        sys.exit(77)
    unittest.main(argv=sys.argv[:1])
