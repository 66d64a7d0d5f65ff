# SPDX-License-Identifier: Apache-2.0
"""Reading npy, GGUF of either order and sharded sets, against NumPy and the gguf and safetensors packages.

checkpoints_numpy.py DUMP DATA   exit 77 without the packages.
"""
import argparse
import builtins
import contextlib
import io
import json
import logging
import pathlib
import sys
import tempfile
import unittest

import checkpoint_client as client

DUMP, DATA = sys.argv[1], pathlib.Path(sys.argv[2])
try:
    import gguf
    import numpy as np
    from safetensors.numpy import save_file
    from gguf.scripts import gguf_convert_endian
except ImportError as missing:
    print("skipped:", missing)
    sys.exit(77)

FORMATS = {"f2": "f16", "f4": "f32", "f8": "f64", "i1": "i8", "i2": "i16", "i4": "i32", "i8": "i64", "u1": "u8", "u2": "u16",
           "u4": "u32", "u8": "u64", "b1": "bool", "c8": "c64"}


logging.disable()


class Case(unittest.TestCase):
    def setUp(self):
        self.scratch = tempfile.TemporaryDirectory()
        self.folder = pathlib.Path(self.scratch.name)
        self.addCleanup(self.scratch.cleanup)
        self.random = np.random.default_rng(7)

    def array(self, kind, shape):
        data = self.random.integers(0, 256, size=int(np.prod(shape)) * np.dtype(kind).itemsize, dtype=np.uint8)
        return np.frombuffer(data.tobytes(), dtype=kind).reshape(shape)


class Npy(Case):
    def test_every_type_order_and_shape(self):
        paths, wanted = [], []
        for kind, name in FORMATS.items():
            for shape in ((), (1,), (0, 3), (7,), (2, 3), (5, 1, 4), (3, 4, 5, 2)):
                for order in "<>":
                    for turn in (False, True) if len(shape) > 1 else (False,):
                        array = self.array(order + kind, shape)
                        paths.append(self.folder / f"a{len(paths)}.npy")
                        np.save(paths[-1], np.asfortranarray(array) if turn else array)
                        wanted.append((name, shape, np.ascontiguousarray(array).astype("<" + kind).tobytes()))
        for how in ("map", "read"):
            for path, got, (name, shape, data) in zip(paths, client.read_all(DUMP, paths, how), wanted):
                tensor = got.tensors[path.stem]
                self.assertEqual((tensor.format, tensor.dims, tensor.data), (name, shape, data), path)

    def test_large_fortran_order(self):
        array = np.asfortranarray(self.array("<f4", (301, 7, 311)))
        np.save(self.folder / "w.npy", array)
        self.assertEqual(client.read(DUMP, self.folder / "w.npy").tensors["w"].data, np.ascontiguousarray(array).tobytes())

    def test_versions(self):
        array = np.arange(6, dtype="<i2")
        for version in ((1, 0), (2, 0), (3, 0)):
            with open(self.folder / "v.npy", "wb") as file:
                np.lib.format.write_array(file, array, version=version)
            got = client.read(DUMP, self.folder / "v.npy")
            self.assertEqual((got.format, got.tensors["v"].data), (f"npy v{version[0]}", array.tobytes()))

    def test_what_is_listed_only(self):
        for array in (np.array(["ab", "c"]), np.array([b"x"]), np.array([1 + 2j]), np.array(["2020-01-01"], dtype="M8[ns]"),
                      np.zeros(2, dtype="V6"), np.zeros(3, dtype=np.longdouble)):
            np.save(self.folder / "x.npy", array)
            got = client.read(DUMP, self.folder / "x.npy").tensors["x"]
            self.assertEqual((got.format, got.type, got.dims, got.data), ("-", array.dtype.str, array.shape, array.tobytes()))
        np.save(self.folder / "x.npy", np.array([1 + 2j], dtype=">c16"))
        self.assertIsNone(client.read(DUMP, self.folder / "x.npy").tensors["x"].data)

    def test_what_is_refused(self):
        np.save(self.folder / "o.npy", np.array([None]), allow_pickle=True)
        np.save(self.folder / "s.npy", np.zeros(2, dtype=[("a", "<f4"), ("b", "<i4")]))
        np.savez(self.folder / "z.npz", a=np.zeros(2))
        self.assertIn("Python objects", client.read(DUMP, self.folder / "o.npy").error)
        self.assertIn("structured array", client.read(DUMP, self.folder / "s.npy").error)
        self.assertIn("each array in it is an .npy file", client.read(DUMP, self.folder / "z.npz").error)

    def test_two_arrays_in_one_file(self):
        with open(self.folder / "two.npy", "wb") as file:
            np.save(file, np.arange(3))
            np.save(file, np.arange(4))
        got = client.read(DUMP, self.folder / "two.npy")
        self.assertEqual(got.tensors["two"].data, np.arange(3).tobytes())
        self.assertIn("bytes after the array are not read", got.notes[0])


class Gguf(Case):
    def write(self, path, order=gguf.GGUFEndian.LITTLE, tensors=(), fields=True):
        writer = gguf.GGUFWriter(path, "llama", endianess=order)
        if fields:
            writer.add_uint32("n", 70000)
            writer.add_int16("negative", -5)
            writer.add_float32("pi", 3.25)
            writer.add_float64("e", 2.5)
            writer.add_bool("yes", True)
            writer.add_uint64("large", 2**40)
            writer.add_array("words", ["a", "", "\u00e9t\u00e9"])
            writer.add_array("numbers", [1, -2, 300000])
            writer.add_array("floats", [0.5, -1.5])
        for name, array, kind in tensors:
            writer.add_tensor(name, array, raw_dtype=kind)
        writer.write_header_to_file()
        writer.write_kv_data_to_file()
        writer.write_tensors_to_file()
        writer.close()

    def test_plain_tensors_of_either_order(self):
        def tensors():
            return [(f"t{kind}", self.random.integers(-100, 100, size=(3, 5)).astype(kind), None)
                    for kind in ("f2", "f4", "f8", "i1", "i2", "i4", "i8")]

        made = tensors()
        self.write(self.folder / "l.gguf", tensors=made)
        self.write(self.folder / "b.gguf", gguf.GGUFEndian.BIG, [(n, a.copy(), k) for n, a, k in made])
        little, big = client.read(DUMP, self.folder / "l.gguf"), client.read(DUMP, self.folder / "b.gguf")
        self.assertEqual((little.format, big.format), ("gguf v3", "gguf v3, big-endian"))
        self.assertEqual(little.metadata, big.metadata)
        self.assertEqual(little.tensors, big.tensors)
        for name, array, _ in made:
            self.assertEqual(little.tensors[name].data, array.tobytes())
        self.assertEqual(big.metadata["words"], ("array_of_string[3]", '["a", "", "\u00e9t\u00e9"]'))
        self.assertEqual(big.metadata["numbers"], ("array_of_i32[3]", "[1, -2, 300000]"))

    def test_a_converted_file(self):
        """The package's own converter knows the blocks of three types."""
        kinds = {"F32": 4 * 256, "F16": 2 * 256, "Q8_0": 34 * 8, "Q4_K": 144, "Q6_K": 210}
        made = [(kind, self.random.integers(0, 256, size=(3, size), dtype=np.uint8), gguf.GGMLQuantizationType[kind])
                for kind, size in kinds.items()]
        self.write(self.folder / "x.gguf", tensors=made, fields=False)
        little = client.read(DUMP, self.folder / "x.gguf")
        reader = gguf.GGUFReader(self.folder / "x.gguf", "r+")
        for tensor in reader.tensors:
            if tensor.tensor_type == gguf.GGMLQuantizationType.Q8_0:
                tensor.data.resize(tensor.data.size)            # as the converter does for the other two
        asked, builtins.input = builtins.input, lambda _: "YES"
        try:
            with contextlib.redirect_stderr(io.StringIO()):
                gguf_convert_endian.convert_byteorder(reader, argparse.Namespace(order="big", dry_run=False))
        finally:
            builtins.input = asked
        del reader
        big = client.read(DUMP, self.folder / "x.gguf")
        self.assertEqual(big.format, "gguf v3, big-endian")
        self.assertEqual(little.tensors, big.tensors)
        self.assertEqual(little.metadata, big.metadata)
        self.assertEqual({name: tensor.data for name, tensor in big.tensors.items()}, {name: a.tobytes() for name, a, _ in made})

    def test_a_split_model(self):
        """As the package's writer splits: other shards than the first say only what they are."""
        made = [(f"blk.{i}.weight", self.random.standard_normal((4, 8)).astype("f4"), None) for i in range(7)]
        writer = gguf.GGUFWriter(self.folder / "m.gguf", "llama", split_max_tensors=3)
        writer.add_uint32("n", 5)
        for name, array, _ in made:
            writer.add_tensor(name, array)
        writer.write_header_to_file(self.folder / "m.gguf")
        writer.write_kv_data_to_file()
        writer.write_tensors_to_file()
        writer.close()
        parts = sorted(self.folder.glob("m-*.gguf"))
        self.assertEqual(len(parts), 3)
        for path in (*parts, self.folder):
            got = client.read(DUMP, path)
            self.assertEqual({name: t.data for name, t in got.tensors.items()}, {name: a.tobytes() for name, a, _ in made}, got.error)
            self.assertEqual((got.metadata["n"], got.metadata["split.no"][1], got.notes), (("u32", "5"), "0", []))


class Sharded(Case):
    def test_any_shard(self):
        made = {f"layer.{i}": self.random.standard_normal((3, 4)).astype("f4") for i in range(6)}
        names, index = sorted(made), {}
        for part in range(3):
            name = f"model-{part + 1:05}-of-00003.safetensors"
            save_file({key: made[key] for key in names[part::3]}, self.folder / name)
            index.update({key: name for key in names[part::3]})
        (self.folder / "model.safetensors.index.json").write_text(json.dumps({"metadata": {}, "weight_map": index}))
        for path in (self.folder, *self.folder.iterdir()):
            got = client.read(DUMP, path)
            self.assertEqual({name: t.data for name, t in got.tensors.items()}, {name: a.tobytes() for name, a in made.items()}, path)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
