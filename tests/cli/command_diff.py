# SPDX-License-Identifier: Apache-2.0
"""diff: what it says of files that were built for it, in each form, its exit codes, and what happens meanwhile."""

import csv
import io
import json
import math
import os
import random
import re
import signal
import struct
import subprocess

import harness


def floats(values):
    return struct.pack(f"<{len(values)}f", *values)


def ramp(count, start=1.0):
    return [start + i / 8 for i in range(count)]


def f32(values, shape=None):
    return ("F32", tuple(shape or (len(values),)), floats(values))


def bf16(values, shape=None):
    halves = b"".join(struct.pack("<f", value)[2:] for value in values)
    return ("BF16", tuple(shape or (len(values),)), halves)


class Diff(harness.CommandTest):
    def pair(self, a, b, names=("a.safetensors", "b.safetensors")):
        return [self.safetensors(name, tensors).name for name, tensors in zip(names, (a, b))]

    def document(self, *arguments, code):
        document = self.json_of("diff", *arguments, code=code)
        self.assertEqual(document["schema"], "tensormorph.diff/1")
        self.assertEqual(document["verdict"], {0: "same", 1: "different", 3: "trouble"}[code])
        self.assertEqual(document["complete"], code != 3)
        return document

    def rows(self, *arguments, code=1):
        """The rows of tensors without what is undefined; the summary must count just them."""
        document = self.document(*arguments, code=code)
        counts = {word: 0 for word in document["summary"] if word not in ("close", "different")}
        for row in document["tensors"]:
            counts[row["verdict"]] += 1
        self.assertEqual(counts, {word: document["summary"][word] for word in counts})
        return [{key: value for key, value in row.items() if value is not None} for row in document["tensors"]]

    # ---- what it says

    def test_the_same(self):
        a, b = self.pair(
            {"x": f32(ramp(4)), "n": ("I64", (), struct.pack("<q", 7))}, {"n": ("I64", (), struct.pack("<q", 7)), "x": f32(ramp(4))}
        )
        out, err = self.run_command("diff", a, b)
        self.assertIn("A: a.safetensors, safetensors, 2 tensors, 24 B\nB: b.safetensors, safetensors, 2 tensors, 24 B\n", out)
        self.assertIn("\nsame weights: 2 identical\n", out)
        self.assertNotIn("verdict", out)
        self.assertEqual(err, "")
        self.assertEqual([row["verdict"] for row in self.rows(a, b, code=0)], ["identical"] * 2)
        self.assertEqual(self.run_command("diff", a, b, "--quiet"), ("", ""))
        self.assertIn("identical  x     f32    4", self.run_command("diff", a, b, "--all")[0])

    def test_one_file_twice(self):
        path = self.small_model()
        (self.folder / "link.safetensors").symlink_to(path)
        os.link(path, self.folder / "hard.safetensors")
        for other in (path.name, "link.safetensors", "hard.safetensors", "./model.safetensors"):
            out = self.run_command("diff", path.name, other)[0]
            self.assertIn("\nA and B are the same file\nsame weights: 3 identical\n", out)
            self.assertTrue(self.document(path, other, code=0)["same_files"])
        copy = self.small_model("copy.safetensors")
        self.assertNotIn("same file", self.run_command("diff", path, copy)[0])
        self.assertFalse(self.document(path, copy, code=0)["same_files"])

    def test_one_file_twice_with_a_type_of_unknown_size(self):
        a, b = (self.gguf(name, {"w": (0, (2,), floats([1, 2])), "odd": (77, (3,), bytes(32))}) for name in ("a.gguf", "b.gguf"))
        (self.folder / "link.gguf").symlink_to(self.folder / a)
        for other in (a, "link.gguf"):
            self.assertEqual([row["verdict"] for row in self.rows(a, other, code=0)], ["identical"] * 2)
            self.run_command("diff", a, other, "--exact", "--quiet")
        self.assertEqual([row["verdict"] for row in self.rows(a, b)], ["identical", "unexamined"])

    def test_figures(self):
        a, b = [1.0, -2.0, 3.0, 4.0, 0.0], [1.0, -2.5, 3.0, 4.25, 0.0]
        (row,) = self.rows(*self.pair({"w": f32(a)}, {"w": f32(b)}))
        distance, norm = math.hypot(0.5, 0.25), math.sqrt(sum(x * x for x in a))
        self.assertEqual(
            (row["verdict"], row["paired"], row["count"], row["equal"], row["changed"]), ("changed", "name", 5, 3, 0.4)
        )
        self.assertEqual((row["max_abs"], row["nonfinite"]), (0.5, 0))
        self.assertAlmostEqual(row["distance"], distance)
        self.assertAlmostEqual(row["rel_l2"], distance / norm)
        self.assertAlmostEqual(row["cosine"], sum(x * y for x, y in zip(a, b)) / norm / math.sqrt(sum(y * y for y in b)))
        out = self.run_command("diff", "a.safetensors", "b.safetensors", code=1)[0]
        self.assertIn("\ndifferent: 1 changed\n\nverdict  name  dtype  shape  changed  max_abs  rel_l2  cosine\n", out)
        self.assertRegex(out, r"\nchanged  w     f32    5         40 %      0\.5  0\.1021  0\.99\d+\n")

    def test_what_is_on_one_side_only(self):
        paths = self.pair({"x": f32(ramp(4)), "gone": f32(ramp(2, 5))}, {"x": f32(ramp(4)), "new": f32(ramp(3, 9))})
        removed, added = self.rows(*paths)[1:]
        self.assertEqual((removed["verdict"], removed["name"], removed["shape"]), ("removed", "gone", [2]))
        self.assertEqual((added["verdict"], added["other_name"], added["other_shape"]), ("added", "new", [3]))
        self.assertNotIn("name", added)
        out = self.run_command("diff", *paths, code=1)[0]
        self.assertIn("\ndifferent: 1 removed, 1 added; the same: 1 identical\n", out)
        self.assertRegex(out, r"\nverdict  name  dtype  shape\nremoved  gone  f32    2\nadded    new   f32    3\n")

    def test_another_format(self):
        values = [1.0, 0.5, -2.0, 384.0]
        same = self.pair({"w": f32(values), "v": f32(values)}, {"w": bf16(values), "v": f32(values)})
        self.assertEqual([row["verdict"] for row in self.rows(*same, code=0)], ["retyped", "identical"])
        self.assertIn("same weights: 1 identical, 1 retyped\n", self.run_command("diff", *same)[0])
        self.assertIn("\ndifferent: 1 retyped; the same: 1 identical\n", self.run_command("diff", *same, "--exact", code=1)[0])
        self.assertRegex(self.run_command("diff", *same, "--exact", code=1)[0], r"\nretyped  w +f32 -> bf16  4 +0 % +0 +0 +1\n")
        odd = self.pair({"w": f32([1.0, 1.001, 3.0])}, {"w": bf16([1.0, 1.001, 3.0])})
        (row,) = self.rows(*odd)
        self.assertEqual((row["verdict"], row["dtype"], row["other_dtype"], row["equal"]), ("changed", "f32", "bf16", 2))

    def test_another_shape(self):
        same = self.pair({"w": f32(ramp(6), (2, 3))}, {"w": f32(ramp(6), (1, 6))})
        (row,) = self.rows(*same, code=0)
        self.assertEqual((row["verdict"], row["shape"], row["other_shape"], row["equal"]), ("reshaped", [2, 3], [1, 6], 6))
        self.assertIn("same weights: 1 reshaped\n", self.run_command("diff", *same)[0])
        self.run_command("diff", *same, "--exact", code=1)
        self.assertIn("2x3 -> 1x6", self.run_command("diff", *same, "--all")[0])
        other = self.pair({"w": f32(ramp(6), (2, 3))}, {"w": f32(ramp(6, 2), (6,))})
        self.assertEqual(self.rows(*other)[0]["equal"], 0)
        longer = self.pair({"w": f32(ramp(6), (2, 3))}, {"w": f32(ramp(8), (2, 4))})
        self.assertRegex(self.run_command("diff", *longer, code=1)[0], r"\nreshaped  w     f32    2x3 -> 2x4\n")

    def test_what_was_not_read_is_not_counted(self):
        one, other = {"w": f32(ramp(6), (2, 3)), "x": f32(ramp(2))}, {"w": f32(ramp(8), (2, 4)), "y": f32(ramp(3))}
        paths = self.pair({**one, "same": f32(ramp(5, 7))}, {**other, "same": f32(ramp(5, 7))})
        for arguments in ((), ("--names-only",)):
            self.assertEqual(self.json_of("diff", *paths, *arguments, code=1)["bytes"], 40)
            self.assertIn("6 tensors, 40 B in ", self.run_command("diff", *paths, *arguments, code=1)[0])
        paths = self.pair({"q": ("X9", (16,), bytes(16)), "w": f32(ramp(4))}, {"q": ("U8", (16,), bytes(16)), "w": f32(ramp(4))})
        self.assertEqual(self.json_of("diff", *paths, code=1)["bytes"], 32)
        other = self.pair({"w": f32(ramp(1 << 15))}, {"v": f32(ramp(1 << 15, 2))})
        self.assertLess(self.json_of("diff", *other, code=1)["bytes"], 1 << 18)        # what was looked for by content was read

    def test_tolerance(self):
        paths = self.pair({"w": f32([1.0, 2.0]), "v": f32([1.0])}, {"w": f32([1.0, 2.25]), "v": f32([1.0])})
        self.run_command("diff", *paths, "--tolerance", "0.2", code=1)
        for tolerance in ("0.25", "1", "1e9"):
            out = self.run_command("diff", *paths, "--tolerance", tolerance)[0]
            self.assertIn("same weights: 1 identical, 1 within the tolerance\n", out)
        summary = self.document(*paths, "--tolerance", "0.25", code=0)["summary"]
        self.assertEqual((summary["changed"], summary["close"], summary["different"]), (1, 1, 0))
        zeros = self.pair({"w": f32([0.0])}, {"w": f32([-0.0])})
        self.run_command("diff", *zeros, code=1)
        self.run_command("diff", *zeros, "--tolerance", "0")
        odd = self.pair({"w": f32([1.0, math.nan])}, {"w": f32([1.0, 5.0])})
        self.run_command("diff", *odd, "--tolerance", "1e9", code=1)
        for wrong in ("", "x", "-1", "1e999", "nan", "0.1x", "0x1"):
            self.assert_one_line(self.run_command("diff", *paths, "--tolerance", wrong, code=2)[1])
        self.assert_one_line(self.run_command("diff", *paths, "--tolerance", "1", "--exact", code=2)[1])

    def test_not_finite(self):
        nan = self.pair({"w": f32([1.0, math.nan, math.inf])}, {"w": f32([1.0, math.nan, math.inf])})
        self.assertEqual(self.rows(*nan, code=0)[0]["nonfinite"], 2)
        other = self.pair({"w": f32([1.0, math.nan])}, {"w": f32([1.0, -math.inf])})
        (row,) = self.rows(*other)
        self.assertEqual((row["verdict"], row["equal"], row["max_abs"]), ("changed", 1, 0))
        self.assertIn("nonfinite", self.run_command("diff", *other, code=1)[0])

    def test_names_of_any_kind(self):
        names = ["a\n\x1b[31msame weights: 1 identical", 'quo"te,comma', "naïve.重み", "tab\there", "same weights:"]
        a, b = self.pair({name: f32([1.0]) for name in names}, {name: f32([2.0]) for name in names})
        out = self.run_command("diff", a, b, code=1)[0]
        self.assertNotIn("\x1b", out)
        self.assertEqual([line for line in out.splitlines() if line.startswith("same weights")], [])
        self.assertIn("naïve.重み", out)
        self.assertEqual([row["name"] for row in self.rows(a, b)], names)
        table = list(csv.DictReader(io.StringIO(self.run_command("diff", a, b, "--csv", code=1)[0], newline="")))
        self.assertEqual([row["name"] for row in table], names)
        self.assertEqual({row["max_abs"] for row in table}, {"1"})

    # ---- pairs by content

    def test_renamed(self):
        a = {"conv.weight": f32(ramp(40), (4, 10)), "conv.bias": f32(ramp(40, 9)), "fc": f32(ramp(40, 77))}
        b = {"encoder.weight": a["conv.weight"], "encoder.bias": a["conv.bias"], "fc": a["fc"]}
        paths = self.pair(a, b)
        pairs = {row["name"]: (row["verdict"], row["other_name"]) for row in self.rows(*paths, code=0)}
        self.assertEqual(
            pairs,
            {"conv.weight": ("renamed", "encoder.weight"), "conv.bias": ("renamed", "encoder.bias"), "fc": ("identical", "fc")},
        )
        self.assertIn("same weights: 1 identical, 2 renamed\n", self.run_command("diff", *paths)[0])
        out = self.run_command("diff", *paths, "--all")[0]
        self.assertRegex(out, r"\nverdict    name +name in B +dtype")
        self.assertRegex(out, r"\nrenamed    conv\.weight  encoder\.weight  f32")
        self.assertRegex(out, r"\nidentical  fc           -               f32")
        self.run_command("diff", *paths, "--exact", code=1)
        out = self.run_command("diff", *paths, "--names-only", code=1)[0]
        self.assertIn("\ndifferent: 2 removed, 2 added; the same: 1 identical\n", out)

    def test_a_few_that_are_renamed_are_listed(self):
        for count, is_listed in ((20, True), (21, False)):
            a = {f"old.{i}": f32(ramp(30, 10 * i)) for i in range(count)}
            paths = self.pair(
                {**a, "x": f32([1.0])}, {**{f"new.{i}": tensor for i, tensor in enumerate(a.values())}, "x": f32([2.0])}
            )
            out = self.run_command("diff", *paths, code=1)[0]
            self.assertIn(f"\ndifferent: 1 changed; the same: {count} renamed\n", out)
            self.assertEqual(len([line for line in out.splitlines() if line.startswith("renamed")]), count if is_listed else 0)
            self.assertNotIn(" more", out)
            self.assertEqual(self.run_command("diff", *paths, "--all", code=1)[0].count("\nrenamed"), count)

    def gguf(self, name, tensors):
        """Writes {name: (type number, shape outermost first, bytes)}."""
        infos, data = b"", b""
        for key, (number, shape, content) in tensors.items():
            text = key.encode()
            infos += (
                struct.pack("<Q", len(text))
                + text
                + struct.pack("<I", len(shape))
                + struct.pack(f"<{len(shape)}Q", *reversed(shape))
            )
            infos += struct.pack("<IQ", number, len(data))
            data += content + bytes(-len(content) % 32)
        head = struct.pack("<4sIQQ", b"GGUF", 3, len(tensors), 0) + infos
        (self.folder / name).write_bytes(head + bytes(-len(head) % 32) + data)
        return name

    def test_any_number_of_equal_ones_is_told_apart_by_layers(self):
        scale = ("F32", [], struct.pack("<f", 1))
        files = [self.safetensors(name + ".safetensors", {f"{name}.{layer}.experts.{expert}.{part}.input_scale": scale
                                                          for layer in range(20) for expert in range(100) for part in ("down", "gate", "up")})
                 for name in ("model.layers", "layers")]
        document = self.json_of("diff", *files)
        self.assertEqual(document["verdict"], "same")
        pairs = {row["other_name"]: row["name"] for row in document["tensors"]}
        self.assertEqual(len(pairs), 6000)
        self.assertTrue(all("model." + other == name for other, name in pairs.items()))

    def test_across_formats(self):
        """Blocks of GGUF and what they decode to, by content since the two name tensors differently."""
        quants = [(i * 37 + j * 11) % 251 - 125 for i in range(8) for j in range(32)]
        blocks = b"".join(struct.pack("<e32b", 0.5, *quants[i : i + 32]) for i in range(0, 256, 32))
        a = self.gguf("a.gguf", {"blk.3.attn_q.weight": (8, (2, 128), blocks)})
        b = self.safetensors(
            "b.safetensors", {"model.layers.3.self_attn.q_proj.weight": f32([0.5 * quant for quant in quants], (2, 128))}
        ).name
        (row,) = self.rows(a, b, code=0)
        self.assertEqual((row["verdict"], row["paired"], row["dtype"], row["other_dtype"]), ("retyped", "decoded", "q8_0", "f32"))
        out = self.run_command("diff", a, b, "--exact", code=1)[0]
        self.assertRegex(out, r"\nretyped  blk\.3\.attn_q\.weight  model\.layers\.3\.self_attn\.q_proj\.weight  q8_0 -> f32  2x128")
        self.assertIn("blk.*.         3\nattn_q.weight  .\n", self.run_command("diff", a, b, "--by", "layer", "--all")[0])

    def test_transposed_and_tied(self):
        columns = [math.sin(i) for i in range(600)]
        turned = [columns[20 * j + i] for i in range(20) for j in range(30)]
        paths = self.pair(
            {"w": f32(columns, (30, 20)), "e": f32(ramp(50))},
            {"w": f32(turned, (20, 30)), "e": f32(ramp(50)), "head": f32(ramp(50))},
        )
        words = {row["other_name"]: (row["name"], row["verdict"]) for row in self.rows(*paths, code=0)}
        self.assertEqual(words, {"w": ("w", "transposed"), "e": ("e", "identical"), "head": ("e", "tied")})
        self.assertIn("same weights: 1 identical, 1 tied, 1 transposed\n", self.run_command("diff", *paths)[0])
        self.assertIn(
            "\ndifferent: 1 transposed, 1 tied; the same: 1 identical\n", self.run_command("diff", *paths, "--exact", code=1)[0]
        )

    def test_a_square_that_is_transposed_under_its_name_is_a_difference(self):
        square = [math.sin(i * i) for i in range(400)]
        turned = [square[20 * j + i] for i in range(20) for j in range(20)]
        for shape in ((20, 20), (1, 20, 20)):
            paths = self.pair({"w": f32(square, (20, 20))}, {"w": f32(turned, shape)})
            for arguments in ((), ("--names-only",), ("--tolerance", "0"), ("--tolerance", "9")):
                self.assertEqual([row["verdict"] for row in self.rows(*paths, *arguments)], ["transposed"])
                out = self.run_command("diff", *paths, *arguments, code=1)[0]
                self.assertIn("\ndifferent: 1 transposed\n", out)
                self.assertIn("\ntransposed  w ", out)
            self.run_command("diff", *paths, "--quiet", code=1)
        paths = self.pair({"w": f32(square, (20, 20))}, {"v": f32(turned, (20, 20))})
        self.assertEqual([row["verdict"] for row in self.rows(*paths, code=0)], ["transposed"])

    def test_transposed_and_changed(self):
        columns = [math.sin(i) for i in range(600)]
        turned = [columns[20 * j + i] for i in range(20) for j in range(30)]
        paths = self.pair({"w": f32(columns, (30, 20))}, {"w": f32([turned[0] + 0.25, *turned[1:]], (20, 30))})
        (row,) = self.rows(*paths)
        self.assertEqual((row["verdict"], row["equal"], row["max_abs"]), ("transposed", 599, 0.25))
        self.assertIn("\ndifferent: 1 transposed\n", self.run_command("diff", *paths, code=1)[0])
        self.assertIn("same weights: 1 within the tolerance\n", self.run_command("diff", *paths, "--tolerance", "0.25")[0])

    def test_arrays_without_names(self):
        for name, values in (("old.npy", [1.0, 2.0]), ("new.npy", [1.0, 2.5])):
            header = b"{'descr': '<f4', 'fortran_order': False, 'shape': (2,), }"
            header += b" " * (-(len(header) + 11) % 64) + b"\n"
            (self.folder / name).write_bytes(b"\x93NUMPY\1\0" + struct.pack("<H", len(header)) + header + floats(values))
        (row,) = self.rows("old.npy", "new.npy")
        self.assertEqual((row["name"], row["other_name"], row["verdict"], row["equal"]), ("old", "new", "changed", 1))

    def test_types_without_arithmetic(self):
        paths = self.pair(
            {"c": ("C64", (2,), floats([1, 2, 3, 4])), "m": ("BOOL", (2,), b"\1\0")},
            {"c": ("C64", (2,), floats([1, 2, 3, 5])), "m": ("BOOL", (2,), b"\1\0")},
        )
        row = self.rows(*paths)[0]
        self.assertEqual((row["verdict"], row["equal"]), ("changed", 1))
        self.assertNotIn("max_abs", row)
        self.assertIn(
            "verdict  name  dtype  shape  changed\nchanged  c     c64    2         50 %\n",
            self.run_command("diff", *paths, code=1)[0],
        )

    def test_types_that_nobody_knows(self):
        data = bytes(range(64))
        paths = self.pair({"old": ("X9", (64,), data), "w": ("X9", (64,), data)}, {"new": ("X9", (64,), data), "w": ("X9", (64,), b"\1" + data[1:])})
        rows = {(row["verdict"], row["name"]): row for row in self.rows(*paths)}
        self.assertEqual(rows["renamed", "old"]["other_name"], "new")
        self.assertNotIn("changed", rows["changed", "w"])
        self.assertNotIn("equal", rows["changed", "w"])

    def test_bytes_of_bool(self):
        """All that is not 0 is true, but identical it is not."""
        paths = self.pair({"m": ("BOOL", (4,), b"\1\0\1\1")}, {"m": ("BOOL", (4,), b"\1\0\xff\1")})
        (row,) = self.rows(*paths)
        self.assertEqual((row["verdict"], row["equal"], row["max_abs"]), ("changed", 3, 0))
        self.run_command("diff", *paths, "--tolerance", "0")

    def test_wide_integers(self):
        """No f64 holds them, and still nothing of their differences is lost."""
        ids = [2**60 + 1, 2**62, -(2**63)]
        longs = lambda values: ("I64", (len(values),), struct.pack(f"<{len(values)}q", *values))
        paths = self.pair({"x": longs(ids)}, {"x": longs([value + 1 for value in ids])})
        (row,) = self.rows(*paths)
        self.assertEqual((row["verdict"], row["equal"], row["max_abs"], row["distance"]), ("changed", 0, 1, math.sqrt(3)))
        self.run_command("diff", *paths, "--tolerance", "0", code=1)
        for number, other in ((2**53 + 1, ("F64", (1,), struct.pack("<d", 2.0**53))), (2**62, ("U64", (1,), struct.pack("<Q", 2**62 + 100)))):
            (row,) = self.rows(*self.pair({"x": longs([number])}, {"x": other}))
            self.assertEqual((row["verdict"], row["equal"]), ("changed", 0))
        same = self.pair({"x": longs([2**53 + 1])}, {"x": ("U64", (1,), struct.pack("<Q", 2**53 + 1))})
        self.assertEqual(self.rows(*same, code=0)[0]["verdict"], "retyped")

    def test_values_across_formats(self):
        """0 is -0, and one NaN another, under the same name and under others."""
        halves = ("F16", (12,), struct.pack("<12e", -0.0, math.nan, *range(10)))
        singles = f32([0.0, -math.nan, *range(10)])
        for name in ("w", "v"):
            self.assertEqual(self.rows(*self.pair({"w": halves}, {name: singles}), code=0)[0]["verdict"], "retyped")
        whole = self.pair({"w": ("F16", (2,), struct.pack("<2e", -0.0, 3))}, {"w": ("I8", (2,), b"\0\3")})
        self.assertEqual(self.rows(*whole, code=0)[0]["verdict"], "retyped")

    def test_other_blocks_of_equal_values(self):
        for name, scale, quant in (("a.gguf", 0.5, 2), ("b.gguf", 1.0, 1)):
            self.gguf(name, {"w": (8, (1, 32), struct.pack("<e32b", scale, *[quant] * 32))})
        self.assertEqual(self.rows("a.gguf", "b.gguf", code=0)[0]["verdict"], "retyped")
        self.run_command("diff", "a.gguf", "b.gguf", "--exact", code=1)

    def test_rounded_and_renamed(self):
        """What a wider tensor rounds to is its counterpart under another name; what only nearly is, is not."""
        draw = random.Random(3)
        values = [[draw.gauss(0, 1) for _ in range(600)] for _ in range(4)]
        def wide(numbers):
            return ("F32", (20, 30), struct.pack("<600f", *numbers))
        def half(numbers):
            return ("F16", (20, 30), struct.pack("<600e", *struct.unpack("<600f", struct.pack("<600f", *numbers))))
        def brain(numbers):
            bits = [bits + 0x7FFF + (bits >> 16 & 1) >> 16 for bits in struct.unpack("<600I", struct.pack("<600f", *numbers))]
            return ("BF16", (20, 30), struct.pack("<600H", *bits))
        near = values[3][:-1] + [values[3][-1] * 1.01 + 0.01]
        both = self.pair({"a": wide(values[0]), "b": wide(values[1]), "c": half(values[2]), "d": wide(values[3])},
                         {"w": brain(values[1]), "x": half(values[0]), "y": wide(values[2]), "z": half(near)})
        rows = {row.get("name") or row["other_name"]: row for row in self.rows(*both, code=1)}
        for name, other, least in (("a", "x", 1e-5), ("b", "w", 1e-4), ("c", "y", 1e-5)):
            row = rows[name]
            self.assertEqual((row["verdict"], row["other_name"], row["paired"]), ("changed", other, "rounded"))
            self.assertTrue(least < row["rel_l2"] < 0.004 and 0.9 < row["changed"], row)
        self.assertEqual((rows["d"]["verdict"], rows["z"]["verdict"]), ("removed", "added"))
        self.run_command("diff", *both, "--tensor", "[a-c]", "--tolerance", "0.02", code=0)

    def test_half_bytes_of_odd_counts(self):
        """What stands behind the last element counts nothing."""
        def field(number, content):
            return bytes([number << 3 | 2, len(content)]) + content
        for name, data in (("a", b"\x21\x43\x05"), ("b", b"\x21\x43\xf5"), ("c", b"\x21\x53\xf5")):
            tensor = b"\x08\x05\x10\x15" + field(8, b"w") + field(9, data)     # dims 5, UINT4
            (self.folder / f"{name}.onnx").write_bytes(b"\x08\x08" + field(7, field(5, tensor)))
        self.assertEqual(self.rows("a.onnx", "b.onnx", code=0)[0]["verdict"], "identical")
        self.run_command("diff", "a.onnx", "b.onnx", "--exact", code=0)
        self.assertEqual(self.rows("b.onnx", "c.onnx", code=1)[0]["verdict"], "changed")

    def test_real_exports(self):
        """Two exports of one model to ONNX hold the same weights; a safetensors file beside them only their transform."""
        old, new = (self.data_file("silero-vad", f"silero_vad_{name}.onnx") for name in ("16k_op15", "op18_ifless"))
        plain = self.data_file("silero-vad", "silero_vad_16k.safetensors")
        same = [row["name"] for row in self.rows(old, new) if row["verdict"] == "identical"]
        self.assertEqual(len(same), 15)
        self.assertIn("model.encoder.0.reparam_conv.weight", same)
        for export in (old, new):
            pairs = {
                (row["name"], row["other_name"]) for row in self.rows(plain, export) if row["verdict"] not in ("removed", "added")
            }
            self.assertEqual(pairs, {("stft_conv.weight", "model.stft.forward_basis_buffer")})

    def test_real_releases(self):
        old, new = (self.data_file("magika", f"standard_v3_{i}.onnx") for i in (0, 1))
        rows = self.rows(old, new)
        counts = {word: sum(row["verdict"] == word for row in rows) for word in ("changed", "identical", "renamed")}
        self.assertEqual((counts["changed"], counts["identical"]), (9, 14))
        self.assertIn(("const_fold_opt__156", "const_fold_opt__152"), [(row.get("name"), row.get("other_name")) for row in rows])
        self.assertGreaterEqual(counts["renamed"], 10)

    # ---- which rows, in which order

    def many(self):
        base = ramp(8)
        a = {"same": base, "small": base, "large": base, "zero": [0.0] * 8, "old": base + [9.0], "older": ramp(30, 3)}
        b = {
            "same": base,
            "small": [x * 1.001 for x in base],
            "large": [x * 3 for x in base],
            "zero": [5.0] + [0.0] * 7,
            "new": ramp(5, 50),
        }
        return self.pair({name: f32(values) for name, values in a.items()}, {name: f32(values) for name, values in b.items()})

    def names(self, *arguments, code=1):
        """The first two columns of the table."""
        lines = self.run_command("diff", *arguments, code=code)[0].split("\n\n")[1].splitlines()[1:]
        return [line.split()[1] for line in lines if line.split()[0].isalpha() and line.split()[0] != "and"]

    def test_order(self):
        paths = self.many()
        self.assertEqual(self.names(*paths), ["zero", "large", "small", "older", "old", "new"])
        self.assertEqual(self.names(*paths, "--top", "2"), ["zero", "large"])
        self.assertIn("\nand 4 more\n", self.run_command("diff", *paths, "--top", "2", code=1)[0])
        self.assertEqual(self.names(*paths, "--all"), ["zero", "large", "small", "older", "old", "new", "same"])
        self.assertEqual(self.names(*paths, "--sort", "-name")[:2], ["zero", "small"])
        self.assertEqual(self.names(*paths, "--sort", "-rel_l2")[:2], ["small", "large"])
        self.assertEqual(
            self.names(*paths, "--sort", "max_abs", "--columns", "verdict,name,max_abs", "--top", "2"), ["zero", "large"]
        )
        top = [row["name"] for row in self.document(*paths, "--top", "3", code=1)["tensors"]]
        self.assertEqual(top, ["zero", "large", "small"])
        self.assertEqual([row["name"] for row in self.document(*paths, code=1)["tensors"]][:4], ["same", "small", "large", "zero"])
        err = self.run_command("diff", *paths, "--sort", "relative", code=2)[1]
        self.assert_one_line(err)
        self.assertIn("rel_l2", self.run_command("diff", *paths, "--sort", "rel_l3", code=2)[1])

    def test_what_comes_before_all_numbers(self):
        a = {
            "zero": f32([0.0, 0.0]),
            "sign": f32([0.0, 0.0]),
            "large": f32([1.0, 1.0]),
            "nan": f32([1.0, 1.0]),
            "type": ("C64", (1,), floats([1, 2])),
        }
        b = {
            "zero": f32([0.0, 9.0]),
            "sign": f32([0.0, -0.0]),
            "large": f32([9.0, 9.0]),
            "nan": f32([1.0, math.nan]),
            "type": ("C64", (1,), floats([1, 3])),
        }
        self.assertEqual(self.names(*self.pair(a, b)), ["zero", "nan", "large", "sign", "type"])

    def test_what_is_on_one_side_only_is_cut_for_people(self):
        base = {f"t{i}": f32(ramp(i + 2, i)) for i in range(30)}
        paths = self.pair({"x": f32([1.0]), **base}, {"x": f32([2.0])})
        self.assertEqual(len(self.names(*paths)), 21)
        self.assertEqual(self.names(*paths)[:3], ["x", "t29", "t28"])
        self.assertIn(
            "\nand 10 more that are on one side only; --all lists everything\n", self.run_command("diff", *paths, code=1)[0]
        )
        for arguments in (("--all",), ("--top", "99"), ("--sort", "name")):
            self.assertEqual(len(self.names(*paths, *arguments)), 31)
        self.assertEqual(len(self.rows(*paths)), 31)

    def test_selection(self):
        paths = self.many()
        self.assertEqual(self.names(*paths, "--tensor", "*l*", "--exclude", "la*"), ["small", "older", "old"])
        self.assertEqual([row["verdict"] for row in self.rows(*paths, "--tensor", "same", code=0)], ["identical"])
        for patterns in (("--tensor", "smal"), ("--exclude", "*")):
            out, err = self.run_command("diff", *paths, *patterns, code=2)
            self.assertEqual(out, "")
            self.assert_one_line(err)

    def test_a_pair_is_excluded_by_either_name(self):
        a = {"old.a": f32(ramp(30)), "old.b": f32(ramp(30, 7)), "x": f32([1.0])}
        paths = self.pair(a, {"new.a": a["old.a"], "mine.b": a["old.b"], "x": f32([1.0])})
        for pattern in ("new*", "*.a", "old.a"):
            document = self.document(*paths, "--exclude", pattern, code=0)
            self.assertEqual([row["other_name"] for row in document["tensors"]], ["x", "mine.b"])
            note = "1 pair is left out: one of the two names is excluded"
            self.assertEqual(note in document["notes"], pattern != "*.a")
        names = [row["name"] for row in self.rows(*paths, "--tensor", "old*", "--exclude", "new*", code=0)]
        self.assertEqual(names, ["old.b"])
        out, err = self.run_command("diff", *paths, "--tensor", "old.a", "--exclude", "new*", code=3)
        self.assertIn("nothing is left to compare", err)
        self.assertNotIn("same weights", out)

    def test_widths(self):
        layers = {f"model.layers.{i}.self_attn.q_proj.weight": f32(ramp(4, i)) for i in range(120)}
        other = {name: f32(ramp(4, i + (i > 60))) for i, name in enumerate(layers)}
        paths = self.pair(layers, {**other, "model.a_name_that_is_quite_long_and_differs.weight": f32(ramp(7))})
        for width in (40, 60, 80, 120):
            for arguments in ((), ("--all",), ("--by", "layer"), ("--by", "kind")):
                out = self.run_command("diff", *paths, *arguments, code=1, COLUMNS=str(width))[0]
                for line in out.splitlines():
                    is_one_word = line.startswith(("A: ", "B: ")) and " " not in line[3:]
                    self.assertTrue(len(line) <= width or is_one_word or line.startswith(("  ", "241 tensors")), (width, arguments, line))
                self.assertEqual(len(re.findall(r"(?m)^[AB]: ", out)), 2)

    def test_what_a_narrow_table_of_layers_keeps(self):
        paths = self.layered()
        for width, kept in ((18, ["layer", "differing"]), (20, ["layer", "differing"]), (30, ["layer", "differing", "rel_l2"])):
            lines = self.run_command("diff", *paths, "--by", "layer", code=1, COLUMNS=str(width))[0].splitlines()
            self.assertIn(kept, [line.split() for line in lines], width)
        paths = self.pair({"l.0.x": f32([1.0]), "l.1.x": f32([1.0])}, {"l.0.x": f32([1.0]), "l.1.x": f32([1.0]), "l.1.y": f32([9.0])})
        lines = self.run_command("diff", *paths, "--by", "layer", code=1, COLUMNS="18")[0].splitlines()
        self.assertIn(["layer", "added"], [line.split() for line in lines])

    def test_colours(self):
        paths = self.many()
        for color in ((), ("--no-color",)):
            self.assertNotIn("\x1b", self.run_command("diff", *paths, *color, code=1)[0])
        out = self.run_command("diff", *paths, "--color", code=1, NO_COLOR="1")[0]
        self.assertRegex(out, "\x1b\\[31mremoved\x1b\\[0m  \x1b\\[31molder\x1b\\[0m")
        self.assertRegex(out, "\x1b\\[32madded\x1b\\[0m")

    # ---- layers

    def layered(self):
        a, b = {"embed": f32(ramp(6))}, {"embed": f32(ramp(6))}
        for i in range(12):
            for kind in ("attn.q.weight", "mlp.experts.0.w", "mlp.experts.1.w", "norm"):
                values = ramp(8, i)
                a[f"model.layers.{i}.{kind}"] = f32(values)
                scale = 1 + (0 if i < 3 or kind == "norm" else 0.5 if kind.startswith("mlp") else 0.0005)
                b[f"model.layers.{i}.{kind}"] = f32([x * scale for x in values])
        del b["model.layers.11.attn.q.weight"]
        b["model.layers.12.attn.q.weight"] = f32(ramp(5, 900))
        return self.pair(a, b)

    def test_grid(self):
        out = self.run_command("diff", *self.layered(), "--by", "layer", code=1)[0]
        grid = out.split("\n\n")[1].splitlines()
        self.assertEqual(
            grid[:3], ["model.layers.*.  0         10", "attn.q.weight    ...--------<>", "mlp.experts.*.w  ...#########"]
        )
        self.assertEqual(grid[3], ". the same, - rel_l2 below 0.001, # 0.1 or more, < in A only, > in B only")
        self.assertEqual(grid[4], "2 kinds are the same everywhere; --all shows them")
        table = out.split("\n\n")[2].splitlines()
        self.assertEqual(
            table[0].split(), ["layer", "tensors", "same", "differing", "removed", "added", "changed", "max_abs", "rel_l2"]
        )
        self.assertEqual([line.split()[0] for line in table[1:]], [str(i) for i in range(3, 13)])
        self.assertIn("norm", self.run_command("diff", *self.layered(), "--by", "layer", "--all", code=1)[0])

    def test_marks_of_what_has_no_figures(self):
        complex_ = ("C64", (1,), floats([1, 2]))
        a = {"l.0.x": complex_, "l.1.x": f32([0.0]), "l.2.e.0.x": f32([1.0]), "l.2.e.1.x": f32([2.0]), "l.3.x": f32([0.0])}
        b = {
            "l.0.x": ("C64", (1,), floats([1, 3])),
            "l.1.x": f32([5.0]),
            "l.2.e.0.x": f32([1.0]),
            "l.2.e.2.x": f32([3.0]),
            "l.3.x": f32([-0.0]),
        }
        out = self.run_command("diff", *self.pair(a, b), "--by", "layer", "--names-only", code=1)[0]
        self.assertIn("\nx      !# -\ne.*.x    !\n- rel_l2 below 0.001, # 0.1 or more, ! different without figures\n", out)

    def test_groups(self):
        paths = self.layered()
        document = self.document(*paths, "--by", "layer", code=1)
        tensors = self.document(*paths, code=1)["tensors"]
        layers = {layer["layer"]: layer for layer in document["layers"]}
        self.assertEqual(list(layers), [*range(13), None])
        self.assertEqual((layers[None]["tensors"], layers[None]["same"]), (1, 1))
        self.assertEqual((layers[11]["tensors"], layers[11]["removed"], layers[12]["added"]), (4, 1, 1))
        members = [row for row in tensors if ".7." in (row["name"] or "")]
        self.assertEqual(layers[7]["tensors"], len(members))
        self.assertEqual(layers[7]["differing"], sum(row["verdict"] == "changed" for row in members))
        self.assertEqual(layers[7]["max_abs"], max(row["max_abs"] for row in members))
        self.assertAlmostEqual(
            layers[7]["changed"], sum(row["count"] - row["equal"] for row in members) / sum(row["count"] for row in members)
        )
        distance, norm = (math.sqrt(sum(row[key] ** 2 for row in members)) for key in ("distance", "norm"))
        self.assertAlmostEqual(layers[7]["rel_l2"], distance / norm)
        cells = [(cell["kind"], cell["layer"], cell["tensors"]) for cell in document["cells"] if cell["layer"] == 7]
        self.assertEqual(
            cells, [("model.layers.*.attn.q.weight", 7, 1), ("model.layers.*.mlp.experts.*.w", 7, 2), ("model.layers.*.norm", 7, 1)]
        )
        kinds = self.document(*paths, "--by", "kind", "--sort", "rel_l2", code=1)["kinds"]
        self.assertEqual([kind["kind"] for kind in kinds][0], "model.layers.*.mlp.experts.*.w")
        self.assertEqual(sum(kind["tensors"] for kind in kinds), len(tensors))
        table = list(csv.DictReader(io.StringIO(self.run_command("diff", *paths, "--by", "layer", "--csv", code=1)[0], newline="")))
        self.assertEqual([row["layer"] for row in table], [str(i) for i in range(13)] + [""])
        self.assert_one_line(self.run_command("diff", *paths, "--by", "tensor", code=2)[1])
        for extra in (("--sort", "-name"), ("--columns", "layer,name"), ("--columns", "name")):
            err = self.run_command("diff", *paths, "--by", "layer", *extra, code=2)[1]
            self.assert_one_line(err)
            self.assertIn('"name" is a column of tensors; with --by there are layer, tensors, ', err)
        self.assertIn('did you mean "same"', self.run_command("diff", *paths, "--by", "layer", "--sort", "sme", code=2)[1])

    def test_layers_without_a_difference(self):
        a, _ = self.layered()
        out = self.run_command("diff", a, a, "--by", "layer")[0]
        self.assertIn("same weights: 49 identical\n", out)
        self.assertNotIn("layer  ", out)
        self.assertIn("mlp.experts.*.w  ............\n", self.run_command("diff", a, a, "--by", "layer", "--all")[0])

    # ---- what it is told, and how it ends

    def test_command_line(self):
        path = self.small_model()
        for arguments in ((), (path,), (path, path, path), (path, path, "--json", "--csv"), (path, path, "--nams-only")):
            out, err = self.run_command("diff", *arguments, code=2)
            self.assertEqual(out, "")
            self.assert_one_line(err)
        self.assertIn("--names-only", err)
        self.assertIn("tensormorph diff", self.run_command("diff", "--help")[0])

    def test_trouble(self):
        good = self.small_model()
        (self.folder / "lfs.safetensors").write_text("version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 1\n")
        several = self.folder / "several"
        several.mkdir()
        for name in "ab":
            self.small_model(f"several/{name}.safetensors")
        fifo = self.folder / "fifo"
        os.mkfifo(fifo)
        for bad, words in (
            ("nowhere", "nowhere"),
            ("lfs.safetensors", "Git LFS pointer"),
            ("several", "a.safetensors"),
            ("fifo", "fifo"),
        ):
            for arguments in ((good, bad), (bad, good), (bad, good, "--json"), (bad, good, "--quiet")):
                out, err = self.run_command("diff", *arguments, code=3)
                self.assertEqual(out, "")
                self.assert_one_line(err)
                self.assertIn(words, err)
        self.assertEqual(self.run_command("diff", "nowhere", "lfs.safetensors", code=3)[1].count("\n"), 2)
        self.run_command("diff", good, good, "--max-header", "16", code=3)

    def test_truncated(self):
        paths = self.pair(
            {name: f32(ramp(40, i)) for i, name in enumerate("abc")}, {name: f32(ramp(40, i)) for i, name in enumerate("abc")}
        )
        os.truncate(self.folder / paths[1], (self.folder / paths[1]).stat().st_size - 8)
        out, err = self.run_command("diff", *paths, code=3)
        self.assertIn("1 unexamined; the same: 2 identical", out)
        self.assert_one_line(err)
        self.assertIn("c", err)
        self.assertEqual([row["verdict"] for row in self.rows(*paths, code=3)], ["identical", "identical", "unexamined"])

    def test_quiet_ends_at_the_first_difference(self):
        paths = self.pair(
            {name: f32(ramp(40, i)) for i, name in enumerate("abc")},
            {name: f32(ramp(40, i + (i == 0))) for i, name in enumerate("abc")},
        )
        self.assertEqual(self.run_command("diff", *paths, "--quiet", code=1), ("", ""))
        os.truncate(self.folder / paths[1], (self.folder / paths[1]).stat().st_size - 8)
        self.run_command("diff", *paths, code=3)
        self.assertEqual(self.run_command("diff", *paths, "--quiet", code=1), ("", ""))
        self.assertEqual(self.document(*paths, "--quiet", code=3)["summary"]["changed"], 1)

    def test_quiet_and_nothing_wrong_but_the_end_of_a_file(self):
        whole = {name: f32(ramp(40, i)) for i, name in enumerate("abc")}
        for other in ("c", "d"):
            for shape in ((40,), (8, 5)):
                paths = self.pair(whole, {"a": whole["a"], "b": whole["b"], other: f32(ramp(40, 2), shape)})
                os.truncate(self.folder / paths[1], (self.folder / paths[1]).stat().st_size - 8)
                out, err = self.run_command("diff", *paths, "--quiet", code=3)
                self.assertEqual(out, "")
                self.assert_one_line(err)
        paths = self.pair(whole, {"a": whole["a"], "c": whole["c"]})
        self.assertEqual(self.run_command("diff", *paths, "--quiet", code=1), ("", ""))

    def test_notes_of_many_tensors_are_cut_for_people(self):
        tensors = {f"t{i}": f32(ramp(40, i)) for i in range(30)}
        paths = self.pair({"x": f32([1.0]), **tensors}, {"x": f32([1.0]), **tensors})
        os.truncate(self.folder / paths[1], (self.folder / paths[1]).stat().st_size - 160 * 25)
        out, err = self.run_command("diff", *paths, code=3)
        self.assertEqual(out.count("the file ends before the tensor does"), 5)
        self.assertIn("\nnote: and 20 more notes; --json lists all\n", out)
        err = self.run_command("diff", *paths, "--csv", code=3)[1]
        self.assertEqual(err.count("the file ends before the tensor does"), 5)
        self.assertIn("and 20 more notes", err)
        self.assertEqual(len(self.document(*paths, code=3)["notes"]), 25)

    def test_sets_and_folders(self):
        tensors = {"a": f32(ramp(40)), "b": f32(ramp(40, 7))}
        whole = self.safetensors("whole.safetensors", tensors)
        folder = self.folder / "set"
        folder.mkdir()
        for i, (name, tensor) in enumerate(tensors.items(), 1):
            self.safetensors(f"set/m-{i}.safetensors", {name: tensor})
        index = folder / "model.safetensors.index.json"
        index.write_text(json.dumps({"metadata": {}, "weight_map": {"a": "m-1.safetensors", "b": "m-2.safetensors"}}))
        for other in (folder, index, folder / "m-2.safetensors"):
            self.assertEqual([row["verdict"] for row in self.rows(whole, other, code=0)], ["identical"] * 2)
        self.assertIn("A and B are the same files", self.run_command("diff", folder, index)[0])

    def test_every_thread_count_and_device_says_the_same(self):
        paths = self.layered()
        wanted = self.document(*paths, code=1)["tensors"]
        for extra in (["--threads", "1"], ["--device", "reference"], ["--max-memory", "64M"], ["--reproducible"]):
            self.assertEqual(self.document(*paths, *extra, code=1)["tensors"], wanted, extra)

    def test_too_little_memory_is_told_before_anything_is_read(self):
        hole = ("F32", (1 << 20,), None)
        paths = [self.safetensors(name, {"t": hole}) for name in ("a.safetensors", "b.safetensors")]
        failures = 0
        for kibibytes in range(400, 1400, 100):
            arguments = ["diff", *paths, "--threads", "1", "--max-memory", f"{kibibytes}K", "--json"]
            done = subprocess.run([harness.COMMAND, *arguments], env=self.environment(), capture_output=True, timeout=60)
            if done.returncode == 0 or not done.stdout:
                continue
            document = json.loads(done.stdout)
            self.assertEqual(done.returncode, 3, kibibytes)
            self.assertTrue(document["bytes"] == 0 or "results" not in document["error"], kibibytes)
            self.assertRegex(document["error"], r"; [\d.]+ [kM]B are allowed in all \(--max-memory\), and at least [\d.]+ [kM]B are needed")
            failures += 1
        self.assertGreater(failures, 0)

    def start(self, *arguments):
        paths = [
            self.safetensors(name, {f"t{i}": ("F32", (1 << 24,), None) for i in range(1024)})
            for name in ("a.safetensors", "b.safetensors")
        ]
        process = subprocess.Popen(
            [harness.COMMAND, "diff", *paths, *arguments],
            env=self.environment(),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
        )
        self.wait_until_at_work(process, paths[1])
        return process, paths

    def test_interrupt(self):
        for arguments in (("--by", "layer", "--json"), ()):
            process, _ = self.start(*arguments)
            process.send_signal(signal.SIGINT)
            out, err = process.communicate(timeout=60)
            self.assertEqual(process.returncode, 130)
            self.assertIn("interrupted", err.decode())
            if arguments:
                self.assertFalse(json.loads(out)["complete"])
            else:
                self.assertIn("(cancelled after", out.decode())
                self.assertNotIn("same weights", out.decode())

    def test_file_that_shrinks_meanwhile(self):
        process, paths = self.start("--json")
        os.truncate(paths[1], 1 << 20)
        out, err = process.communicate(timeout=60)
        document = json.loads(out)
        self.assertEqual((process.returncode, document["verdict"], document["complete"]), (3, "trouble", False), err)
        self.assert_one_line(err.decode())
        self.assertIn("b.safetensors", err.decode())


if __name__ == "__main__":
    harness.main()
