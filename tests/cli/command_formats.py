# SPDX-License-Identifier: Apache-2.0
"""inspect and stats on every format that is read: ONNX, npy, GGUF of either order and of version 1, sets, and their limits."""

import json
import os
import pathlib
import resource
import struct
import subprocess
import unittest

import harness

CORPUS = pathlib.Path(__file__).resolve().parents[2] / "fuzz" / "corpus"
SANITIZED = any(name.endswith("SAN_OPTIONS") for name in os.environ)


def npy(descr, shape, data, order=False):
    head = repr({"descr": descr, "fortran_order": order, "shape": shape}).encode() + b"\n"
    return b"\x93NUMPY\1\0" + struct.pack("<H", len(head)) + head + data


def gguf(name, count, metas, data, order="<"):
    """One f32 tensor; metas: (key, type, bytes)."""
    text = lambda value: struct.pack(order + "Q", len(value)) + value.encode()
    head = b"GGUF" + struct.pack(order + "IQQ", 3, 1, len(metas))
    head += b"".join(text(key) + struct.pack(order + "I", kind) + value for key, kind, value in metas)
    head += text(name) + struct.pack(order + "IQIQ", 1, count, 0, 0)
    return head.ljust(-(-len(head) // 32) * 32, b"\0") + data


class Formats(harness.CommandTest):
    def limited(self, limit, value, *arguments, code=0):
        done = subprocess.run([harness.COMMAND, *map(str, arguments)], cwd=self.folder, env=self.environment(), stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=120,
                              preexec_fn=lambda: resource.setrlimit(limit, (value, value)))
        self.assertEqual(done.returncode, code, done.stderr.decode())
        return done.stdout.decode()

    def tensor(self, path):
        document = self.json_of("inspect", path)
        self.assertEqual(document["tensor_count"], 1)
        return document, document["tensors"][0]

    def figures(self, path):
        row = self.json_of("stats", path)["tensors"][0]
        return row["min"], row["max"], row["mean"]

    def test_onnx(self):
        path = self.data_file("silero-vad", "silero_vad_op18_ifless.onnx")
        document = self.json_of("inspect", path)
        self.assertEqual((document["format"], document["tensor_count"]), ("onnx", 45))
        metadata = {row["key"]: row["value"] for row in document["metadata"]}
        self.assertEqual((metadata["ir_version"], metadata["opset.ai.onnx"], metadata["producer_name"]), ("10", "18", "pytorch"))
        rows = {row["name"]: row for row in self.json_of("stats", path)["tensors"]}
        self.assertEqual(rows["model.encoder.0.reparam_conv.weight"]["count"], 128 * 129 * 3)

    def test_branches_are_in_the_names(self):
        document = self.json_of("inspect", self.data_file("silero-vad", "silero_vad_16k_op15.onnx"))
        names = [row["name"] for row in document["tensors"]]
        self.assertIn("/model/decoder/If_output_0:then_branch:/model/decoder/Constant_2_output_0", names)
        self.assertEqual(len(names), len(set(names)))

    def test_rows_and_totals_say_the_same_of_types_without_a_format(self):
        def field(number, content):
            return bytes([number << 3 | 2, len(content)]) + content
        graph = b"".join(field(5, bytes([1 << 3, count, 2 << 3, kind]) + field(8, name) + field(9, data))
                         for name, count, kind, data in ((b"odd", 3, 22, b"\x21\x03"), (b"even", 4, 22, b"\x21\x43"),
                                                         (b"c", 1, 15, bytes(16)), (b"none", 2, 99, b""), (b"some", 2, 99, b"ab")))
        (self.folder / "m.onnx").write_bytes(bytes([1 << 3, 8]) + field(7, graph))
        self.safetensors("x.safetensors", {"x": ("X9", (3,), b"abc")})
        (self.folder / "t.npy").write_bytes(npy("<M8[s]", (2,), bytes(16)))
        (self.folder / "g.gguf").write_bytes(gguf("w", 4, [], bytes(16)).replace(struct.pack("<IQI", 1, 4, 0), struct.pack("<IQI", 1, 4, 99)))
        for name, sizes in (("m.onnx", {"odd": 2, "even": 2, "c": 16, "none": None, "some": 2}), ("x.safetensors", {"x": 3}),
                            ("t.npy", {"t": 16}), ("g.gguf", {"w": None})):
            document = self.json_of("inspect", name)
            self.assertEqual({row["name"]: row["bytes"] for row in document["tensors"]}, sizes)
            for total in document["totals"]:
                rows = [row for row in document["tensors"] if row["dtype"] == total["dtype"]]
                sizes_of = [row["bytes"] for row in rows]
                self.assertEqual((len(rows), None if None in sizes_of else sum(sizes_of)), (total["tensors"], total["bytes"]))
            for row in document["tensors"]:
                self.assertEqual(row["state"] == "unknown type", row["bytes"] is None, row)

    def test_npy(self):
        data = struct.pack(">6h", 1, 2, 3, 4, 5, 6)
        (self.folder / "big.npy").write_bytes(npy(">i2", (2, 3), data))
        (self.folder / "turned.npy").write_bytes(npy("<i2", (2, 3), struct.pack("<6h", 1, 4, 2, 5, 3, 6), True))
        for name in ("big", "turned"):
            document, tensor = self.tensor(self.folder / f"{name}.npy")
            self.assertEqual((document["format"], tensor["name"], tensor["dtype"], tensor["shape"]), ("npy v1", name, "i16", [2, 3]))
            self.assertEqual(self.figures(self.folder / f"{name}.npy"), (1, 6, 3.5))
        (self.folder / "o.npy").write_bytes(npy("|O", (1,), bytes(8)))
        self.assertIn("holds Python objects", self.run_command("inspect", self.folder / "o.npy", code=3)[1])

    def test_gguf_of_either_order(self):
        values = (1.0, -2.0, 4.0, 5.0)
        for order in "<>":
            path = self.folder / "m.gguf"
            path.write_bytes(gguf("w", 4, [("n", 4, struct.pack(order + "I", 70000))], struct.pack(order + "4f", *values), order))
            document, tensor = self.tensor(path)
            self.assertEqual(document["format"], "gguf v3" if order == "<" else "gguf v3, big-endian")
            self.assertEqual((tensor["name"], tensor["shape"], document["metadata"][0]["value"]), ("w", [4], "70000"))
            self.assertEqual(self.figures(path), (-2, 5, 2))

    def test_seeds_say_the_same_in_every_version_and_order(self):
        """The same fields, written in version 1 and with the other order of bytes."""
        documents = [self.json_of("inspect", CORPUS / "gguf" / f"valid-{name}") for name in ("v1", "big", "big-v1", "big-v2")]
        self.assertEqual([d["format"] for d in documents], ["gguf v1", "gguf v3, big-endian", "gguf v1, big-endian", "gguf v2, big-endian"])
        for document in documents:
            self.assertEqual(document["metadata"], documents[0]["metadata"])
            self.assertEqual({row["key"]: row["value"] for row in document["metadata"]}["nested"], "[array of u8[2], array of string[1]]")
            self.assertEqual([(row["name"], row["shape"]) for row in document["tensors"]],
                             [(row["name"], row["shape"]) for row in documents[0]["tensors"]])
        states = {row["name"]: row["state"] for row in documents[1]["tensors"]}
        self.assertEqual((states["q6_k"], states["iq2_xxs"]), ("whole", "not decoded"))

    def test_a_split_model(self):
        for i in range(3):
            metas = [("split.no", 2, struct.pack("<H", i)), ("split.count", 2, struct.pack("<H", 3))]
            (self.folder / f"m-{i + 1:05}-of-00003.gguf").write_bytes(gguf(f"t{i}", 4, metas, struct.pack("<4f", i, i, i, i)))
        for path in (self.folder, self.folder / "m-00002-of-00003.gguf"):
            self.assertEqual(len(self.json_of("inspect", path)["files"]), 3)
            self.assertEqual([row["max"] for row in self.json_of("stats", path)["tensors"]], [0, 1, 2])
        (self.folder / "m-00003-of-00003.gguf").unlink()
        err = self.run_command("stats", self.folder / "m-00001-of-00003.gguf", code=3)[1]
        self.assertIn('"m-00003-of-00003.gguf"', err)
        self.assert_one_line(err)

    def test_a_part_opened_alone_is_said(self):
        self.safetensors("m-1.safetensors", {"a": ("F32", [1], bytes(4))})
        (self.folder / "x.safetensors.index.json").write_text('{"weight_map":{"a":"m-1.safetensors","b":"m-2.safetensors"}}')
        for command in ("inspect", "stats"):
            out, err = self.run_command(command, self.folder / "m-1.safetensors")
            self.assertIn("opened alone", " ".join((out + err).split()))

    @unittest.skipIf(SANITIZED, "a sanitizer needs the whole address space")
    def test_400_gb_in_4_gb_of_address_space(self):
        size = 400 << 30
        head = npy("<f2", (size // 2,), b"")
        path = self.folder / "huge.npy"
        path.write_bytes(head)
        os.truncate(path, len(head) + size)
        out = self.limited(resource.RLIMIT_AS, 4 << 30, "inspect", path)
        self.assertIn("214748364800", out.replace(",", ""))
        small = {"small": ("F32", [2], struct.pack("<2f", 1, 3)), "large": ("BF16", [size // 2], None)}
        path = self.safetensors("huge.safetensors", small)
        out = self.limited(resource.RLIMIT_AS, 4 << 30, "stats", path, "--tensor", "small", "--csv")
        self.assertIn("small", out)

    def test_2000_shards_with_256_handles(self):
        count = 2000 if os.environ.get("TM_NIGHTLY") else 400
        for i in range(count):
            metas = [("split.no", 2, struct.pack("<H", i)), ("split.count", 2, struct.pack("<H", count))]
            (self.folder / f"m-{i + 1:05}-of-{count:05}.gguf").write_bytes(gguf(f"t{i}", 1, metas, struct.pack("<f", i)))
        rows = self.limited(resource.RLIMIT_NOFILE, 256, "stats", self.folder / f"m-00007-of-{count:05}.gguf", "--csv").splitlines()
        self.assertEqual(len(rows), count + 1)


class LoneParts(harness.CommandTest):
    """Files of a set that no index names."""

    def test_a_part_that_was_opened_alone_is_told(self):
        part = self.small_model("m-00001-of-00003.safetensors")
        whole = self.small_model("whole.safetensors", 2.0)
        words = "m-00001-of-00003.safetensors: by its name part 1 of 3 of a model, but no index names them all"
        for arguments, code in ((["inspect", part], 0), (["stats", part], 0), (["diff", whole, part], 1),
                                (["merge", "--linear", whole, part, "-o", "out.safetensors"], 0)):
            out, err = self.run_command(*arguments, code=code)
            self.assertEqual(" ".join(out.split()).count(words), 1, arguments)
        self.assertTrue(any(words in note for note in self.json_of("inspect", part)["notes"]))
        self.assertNotIn("by its name", self.run_command("inspect", self.small_model("n-00001-of-00001.safetensors"))[0])

    def test_a_part_that_an_index_names_is_none(self):
        part = self.small_model("m-00001-of-00002.safetensors")
        (self.folder / "m.safetensors.index.json").write_text(
            json.dumps({"weight_map": {name: part.name for name in ("layers.0.weight", "layers.0.bias", "step")}}))
        self.assertNotIn("by its name", self.run_command("inspect", part)[0])


if __name__ == "__main__":
    harness.main()
