# SPDX-License-Identifier: Apache-2.0
"""What machines read: one JSON document a command with the promised members, and CSV that a parser takes."""

import csv
import io
import json
import math
import resource
import struct
import subprocess

import harness

STATS_COLUMNS = "file name dtype shape count nan pos_inf neg_inf zero subnormal min max abs_max mean std l2".split()


def refuse_constant(text):
    raise AssertionError(f"{text} is no JSON")


class Json(harness.CommandTest):
    def document(self, *arguments, code=0):
        out = self.run_command(*arguments, "--json", code=code)[0]
        return json.loads(out, parse_constant=refuse_constant)

    def test_schemas(self):
        model = self.small_model()
        for name, arguments in (
            ("backends", []),
            ("ops", ["add"]),
            ("inspect", [model]),
            ("stats", [model]),
            ("explain", ["add", "--dtype", "f32", "--shape", "64"]),
            ("bench", ["add", "--dtype", "f32", "--shape", "64", "--repeat", "3"]),
        ):
            self.assertEqual(self.document(name, *arguments)["schema"], f"tensormorph.{name}/1")

    def test_backends(self):
        document = self.document("backends")
        states = {"ready", "unavailable", "refused", "quarantined", "excluded"}
        reference = next(backend for backend in document["backends"] if backend["name"] == "reference")
        self.assertEqual((reference["state"], reference["origin"]), ("ready", "built-in"))
        for backend in document["backends"]:
            self.assertIn(backend["state"], states)
            self.assertLessEqual(
                {"name", "version", "vendor", "build_id", "origin", "state", "reason", "options"}, set(backend)
            )
            for option in backend["options"]:
                self.assertEqual(set(option), {"name", "type", "default", "value", "variable", "help"})
                self.assertEqual(option["variable"], f"TENSORMORPH_{backend['name']}_{option['name']}".upper())
        names = {backend["name"] for backend in document["backends"]}
        for device in document["devices"]:
            self.assertIn(device["backend"], names)
            self.assertEqual((len(device["uuid"]), len(device["resource"])), (32, 32))
            self.assertTrue(device["memories"])

    def test_ops(self):
        document = self.document("ops")
        by_name = {op["name"]: op for op in document["operations"]}
        self.assertEqual(len(by_name), len(document["operations"]))
        self.assertLessEqual({"copy", "add", "matmul", "stats", "softmax"}, set(by_name))
        for op in by_name.values():
            self.assertIn(op["accept"], ("N0", "N1", "N2", "N3", "N4"))
            for device in op["devices"]:
                for row in device["formats"]:
                    self.assertIn(row["level"], ("emulated", "native"))
        reference = next(device for device in by_name["add"]["devices"] if device["device"].startswith("reference"))
        self.assertIn("f32", {row["format"] for row in reference["formats"] if row["numerics"] == "N0"})
        self.assertEqual([op["name"] for op in self.document("ops", "add", "sub")["operations"]], ["add", "sub"])

    def test_inspect(self):
        document = self.document("inspect", self.small_model())
        self.assertEqual(document["metadata"], [{"key": "format", "type": "string", "value": "pt"}])
        self.assertEqual(document["tensor_count"], 3)
        weight = next(tensor for tensor in document["tensors"] if tensor["name"] == "layers.0.weight")
        self.assertEqual(
            (weight["dtype"], weight["shape"], weight["count"], weight["bytes"], weight["state"]),
            ("f32", [3, 4], 12, 48, "whole"),
        )
        step = next(tensor for tensor in document["tensors"] if tensor["name"] == "step")
        self.assertEqual((step["shape"], step["count"]), ([], 1))
        self.assertNotIn("file", weight)
        self.assertEqual(
            document["totals"],
            [
                {"dtype": "f32", "tensors": 2, "elements": 16, "bytes": 64},
                {"dtype": "i64", "tensors": 1, "elements": 1, "bytes": 8},
            ],
        )

    def test_stats(self):
        document = self.document("stats", self.small_model())
        self.assertLessEqual({"schema", "tensors", "devices", "bytes", "seconds", "gb_per_s", "notes"}, set(document))
        self.assertEqual((document["complete"], document["error"], document["bytes"]), (True, None, 72))
        for tensor in document["tensors"]:
            self.assertEqual(list(tensor), STATS_COLUMNS[1:])
        two = self.document("stats", self.small_model("a.safetensors"), self.small_model("b.safetensors"))
        for tensor in two["tensors"]:
            self.assertEqual(list(tensor), STATS_COLUMNS)
        self.assertEqual(len(two["tensors"]), 6)

    def test_no_document_of_no_file(self):
        for command in ("inspect", "stats"):
            out, err = self.run_command(command, "nowhere.gguf", "--json", code=3)
            self.assertEqual(out, "")
            self.assert_one_line(err)
        self.assertFalse(self.json_of("check", "nowhere.gguf", code=3)["complete"])
        self.assertFalse(self.json_of("stats", "nowhere.gguf", self.small_model(), code=3)["complete"])

    def test_undefined_numbers_are_null(self):
        path = self.safetensors(
            "empty.safetensors",
            {"none": ("F32", (0, 4), b""), "nan": ("F32", (2,), struct.pack("<2f", math.nan, math.inf))},
        )
        for tensor in self.document("stats", path)["tensors"]:
            self.assertEqual([tensor[name] for name in ("min", "max", "mean", "std")], [None] * 4)
        row = next(csv.DictReader(io.StringIO(self.run_command("stats", path, "--csv")[0])))
        self.assertEqual(row["mean"], "")

    def test_names_that_are_no_utf8(self):
        path = self.folder / "bad.safetensors"
        header = b'{"a\\u0000\\u001b[31m\\"b":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}}'
        path.write_bytes(struct.pack("<Q", len(header)) + header + b"x")
        tensor = self.document("stats", path)["tensors"][0]
        self.assertEqual(tensor["name"], 'a\x00\x1b[31m"b')

    def test_output_that_may_not_grow(self):
        self.safetensors("m.safetensors", {f"layer.{i}.weight": ("F32", (1,), bytes(4)) for i in range(400)})
        with open(self.folder / "out", "wb") as out:
            done = subprocess.run([harness.COMMAND, "stats", "--csv", "m.safetensors"], cwd=self.folder, env=self.environment(),
                                  stdin=subprocess.DEVNULL, stdout=out, stderr=subprocess.PIPE, text=True, timeout=120,
                                  preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (1024, 1024)))
        self.assertEqual(done.returncode, 3, done.stderr)
        self.assertIn("cannot write the output", done.stderr)

    def test_csv(self):
        path = self.safetensors(
            "names.safetensors",
            {'comma, "quote"\nline': ("F32", (2,), struct.pack("<2f", 1, 3)), "plain": ("U8", (), b"\x05")},
        )
        rows = list(csv.DictReader(io.StringIO(self.run_command("stats", path, "--csv")[0], newline="")))
        self.assertEqual(list(rows[0]), STATS_COLUMNS)
        by_name = {row["name"]: row for row in rows}
        self.assertEqual(float(by_name['comma, "quote"\nline']["mean"]), 2)
        self.assertEqual((by_name["plain"]["shape"], by_name["plain"]["max"]), ("scalar", "5"))
        rows = list(csv.DictReader(io.StringIO(self.run_command("inspect", path, "--csv")[0], newline="")))
        self.assertEqual({row["name"]: row["bytes"] for row in rows}, {'comma, "quote"\nline': "8", "plain": "1"})

    def test_numbers_are_exact(self):
        value = 0.1 + 0.2
        path = self.safetensors("exact.safetensors", {"x": ("F64", (1,), struct.pack("<d", value))})
        self.assertEqual(self.document("stats", path)["tensors"][0]["mean"], value)
        row = next(csv.DictReader(io.StringIO(self.run_command("stats", path, "--csv")[0])))
        self.assertEqual(float(row["mean"]), value)


if __name__ == "__main__":
    harness.main()
