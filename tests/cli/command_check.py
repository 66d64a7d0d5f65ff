# SPDX-License-Identifier: Apache-2.0
"""check: every kind of finding on a file that was built for it, exit codes, and what happens meanwhile."""

import json
import math
import os
import re
import signal
import struct
import subprocess

import harness

F32 = struct.Struct("<f")
Q8_0, Q4_K, MXFP4 = 8, 12, 39
BLOCKS = {2: (32, 18), Q8_0: (32, 34), Q4_K: (256, 144), MXFP4: (32, 17)}


def floats(values):
    return struct.pack(f"<{len(values)}f", *values)


def ramp(count, start=1.0):
    return floats([start + i / 8 for i in range(count)])


class Check(harness.CommandTest):
    def rows(self, *arguments, code=1, level=None):
        """The rows of the JSON document as dictionaries without what is undefined."""
        document = self.json_of("check", *arguments, code=code)
        self.assertEqual(document["schema"], "tensormorph.check/1")
        counts = {name: 0 for name in ("finding", "note", "trouble")}
        for row in document["rows"]:
            counts[row["level"]] += 1
        self.assertEqual(counts, {name: document[name + "_count"] for name in counts})
        self.assertEqual(document["verdict"], {0: "clean", 1: "findings", 3: "trouble"}[code])
        self.assertEqual(document["complete"], counts["trouble"] == 0)
        rows = [{key: value for key, value in row.items() if value is not None} for row in document["rows"]]
        return [row for row in rows if level in (None, row["level"])]

    def gguf(self, name, tensors, **numbers):
        """Writes {name: (type number, shape outermost first, bytes)}, and metadata split_no=0 as split.no."""
        infos, data = b"", b""
        for key, value in numbers.items():
            text = key.replace("_", ".").encode()
            infos += struct.pack("<Q", len(text)) + text + struct.pack("<II", 4, value)
        for key, (number, shape, content) in tensors.items():
            text = key.encode()
            infos += struct.pack("<Q", len(text)) + text + struct.pack("<I", len(shape))
            infos += struct.pack(f"<{len(shape)}Q", *reversed(shape)) + struct.pack("<IQ", number, len(data))
            data += content + bytes(-len(content) % 32)
        head = struct.pack("<4sIQQ", b"GGUF", 3, len(tensors), len(numbers)) + infos
        path = self.folder / name
        path.write_bytes(head + bytes(-len(head) % 32) + data)
        return path

    def blocks(self, number, count, scale=b"\x00\x3c"):
        """Blocks of that type that differ, with scales (the first two bytes) of 1."""
        size = BLOCKS[number][1]
        body = bytes(i * 7 % 120 + 1 for i in range(size - 2))
        return bytearray(b"".join(scale + bytes([(i + 1) % 120]) + body[1:] for i in range(count)))

    # ---- values

    def test_nothing_to_find(self):
        path = self.small_model()
        out, err = self.run_command("check", path)
        self.assertIn("no findings", out)
        self.assertRegex(out, r"3 tensors, 72 B in .*/s\n")
        self.assertEqual(err, "")
        self.assertEqual(self.rows(path, code=0), [])
        self.assertEqual(self.run_command("check", path, "--quiet"), ("", ""))

    def test_nan_and_infinities(self):
        values = [float(i) for i in range(24)]
        values[13], values[22], values[7], values[9] = math.nan, math.nan, -math.inf, math.inf
        path = self.safetensors("odd.safetensors", {"good": ("F32", (4,), ramp(4)), "odd": ("F32", (4, 6), floats(values))})
        nan, inf = self.rows(path)
        self.assertEqual((nan["kind"], nan["tensor"], nan["dtype"], nan["shape"]), ("nan", "odd", "f32", [4, 6]))
        self.assertEqual((nan["count"], nan["total"], nan["first"]), (2, 24, [2, 1]))
        self.assertEqual((inf["kind"], inf["count"], inf["first"]), ("inf", 2, [1, 1]))
        self.assertIn("1 +Inf and 1 -Inf of 24 elements, the first at [1, 1]", inf["message"])
        out = self.run_command("check", path, code=1)[0]
        self.assertIn(f"finding: {path}: odd: 2 NaN of 24 elements, the first at [2, 1]\n", out)
        self.assertEqual(self.run_command("check", path, "--quiet", code=1), ("", ""))

    def test_words_have_no_holes(self):
        """No zero counts, and a tensor without a name has something in its place."""
        path = self.safetensors("holes.safetensors", {"": ("F32", (1,), floats([-math.inf])), "p": ("F32", (2,), floats([math.inf, 1]))})
        out, _ = self.run_command("check", path, code=1)
        self.assertRegex(out, r"holes.safetensors: '': 1 -Inf of 1 element[,\n ]")
        self.assertRegex(out, r"holes.safetensors: p: 1 \+Inf of 2 elements")
        self.assertNotIn("0 +Inf", out)

    def test_every_float_format(self):
        nan = {"F64": b"\0" * 6 + b"\xf8\x7f", "F32": b"\0\0\xc0\x7f", "F16": b"\x01\xfc", "BF16": b"\x81\x7f"}
        for dtype, bits in nan.items():
            one = bytes([1] * harness.SIZES[dtype])
            path = self.safetensors("nan.safetensors", {"x": (dtype, (3, 2), one * 4 + bits + one)})
            row = self.rows(path)[0]
            self.assertEqual((row["kind"], row["count"], row["first"]), ("nan", 1, [2, 0]), dtype)
        path = self.safetensors("c.safetensors", {"c": ("C64", (2,), F32.pack(1) * 3 + F32.pack(math.inf))})
        self.assertEqual([(row["kind"], row["first"]) for row in self.rows(path)], [("inf", [1])])
        path = self.safetensors("s.safetensors", {"s": ("F32", (), F32.pack(math.nan))})
        self.assertEqual([(row["count"], row["first"]) for row in self.rows(path)], [(1, [])])
        path = self.safetensors("i.safetensors", {"i": ("I8", (4,), b"\xff\x7f\x80\x01"), "e": ("F32", (0, 3), b"")})
        self.assertEqual(self.rows(path, code=0), [])

    def test_slices_and_experts(self):
        values = [1.0 + i for i in range(8 * 6)]
        values[3 * 6 + 5] = values[5 * 6] = math.nan
        for name, word in (("blk.0.ffn_up_exps.weight", "expert"), ("conv.weight", "slice")):
            path = self.safetensors("e.safetensors", {name: ("F32", (8, 2, 3), floats(values))})
            row = self.rows(path)[0]
            self.assertEqual((row["first"], row["slices"]), ([3, 1, 2], [3, 5]))
            self.assertIn(f"; in {word}s 3, 5 of 8", row["message"])
        path = self.safetensors("two.safetensors", {"w": ("F32", (8, 6), floats(values))})
        self.assertNotIn("slices", self.rows(path)[0])

    def test_scales_of_blocks(self):
        data = self.blocks(Q8_0, 6 * 2 * 4)
        for block, scale in ((3 * 8 + 5, 0x7E00), (3 * 8 + 6, 0xFC00), (3 * 8 + 7, 0xFE01)):
            data[block * 34 : block * 34 + 2] = struct.pack("<H", scale)
        path = self.gguf("q8.gguf", {"blk.0.ffn_gate_exps.weight": (Q8_0, (6, 2, 128), bytes(data))})
        (row,) = self.rows(path)
        self.assertEqual((row["kind"], row["count"], row["total"]), ("block_scale", 3, 48))
        self.assertEqual((row["first"], row["slices"]), ([3, 1, 1], [3]))
        self.assertIn("3 of 48 blocks have a scale that is not finite (2 NaN, 1 infinite)", row["message"])
        self.assertIn("in expert 3 of 6", row["message"])

    def test_one_expert_of_many(self):
        """61,440 of 9,830,400 blocks, all in one expert of 160; the others are a hole in the file."""
        blocks, name = 61440, b"blk.0.ffn_down_exps.weight"
        info = struct.pack("<Q", len(name)) + name + struct.pack("<IQQQIQ", 3, 1280, 1536, 160, 2, 0)
        head = struct.pack("<4sIQQ", b"GGUF", 3, 1, 0) + info
        head += bytes(-len(head) % 32)
        path = self.folder / "moe.gguf"
        with open(path, "wb") as file:
            file.write(head)
            file.seek(len(head) + 97 * blocks * 18)
            file.write((b"\xff\x7f" + bytes(16)) * blocks)
            file.truncate(len(head) + 160 * blocks * 18)
        (row,) = self.rows(path)
        self.assertEqual((row["kind"], row["count"], row["total"]), ("block_scale", 61440, 9830400))
        self.assertEqual((row["first"], row["slices"]), ([97, 0, 0], [97]))
        self.assertIn("in expert 97 of 160", row["message"])

    def test_swapped_bytes(self):
        name, values = b"w", b"".join(struct.pack(">H", scale) + bytes(range(1, 33)) for scale in (0x3C00, 0x3C00, 0x7E01, 0x3C00))
        info = struct.pack(">Q", len(name)) + name + struct.pack(">IQQIQ", 2, 64, 2, Q8_0, 0)
        head = struct.pack(">4sIQQ", b"GGUF", 3, 1, 0) + info
        path = self.folder / "swapped.gguf"
        path.write_bytes(head + bytes(-len(head) % 32) + values)
        (row,) = self.rows(path)
        self.assertEqual((row["kind"], row["count"], row["first"]), ("block_scale", 1, [1, 0]))

    def test_scales_without_arithmetic(self):
        data = self.blocks(Q4_K, 4)
        data[144 * 2 + 2 : 144 * 2 + 4] = b"\x00\x7e"     # the second scale, of the minima
        path = self.gguf("q4k.gguf", {"w": (Q4_K, (2, 512), bytes(data))})
        self.assertEqual([(row["kind"], row["count"], row["first"]) for row in self.rows(path)], [("block_scale", 1, [1, 0])])
        data = self.blocks(MXFP4, 4)
        data[17 * 3] = 0xFF
        path = self.gguf("mxfp4.gguf", {"w": (MXFP4, (2, 64), bytes(data))})
        self.assertEqual([(row["kind"], row["count"], row["first"]) for row in self.rows(path)], [("block_scale", 1, [1, 1])])

    def test_what_is_not_known_is_not_vouched_for(self):
        path = self.gguf("new.gguf", {"w": (99, (32,), bytes(32)), "ok": (0, (2,), ramp(2))})
        (row,) = self.rows(path)
        self.assertEqual((row["kind"], row["tensor"]), ("unexamined", "w"))
        self.assertIn("99", row["message"])

    def test_zeros_are_a_note(self):
        tensors = {"z": ("BF16", (4, 4), bytes(32)), "m": ("F32", (2,), b"\0\0\0\x80" * 2), "i": ("I32", (2,), bytes(8))}
        tensors["one"] = ("F32", (1,), bytes(4))
        path = self.safetensors("zero.safetensors", {**tensors, "x": ("F32", (2,), ramp(2))})
        self.assertEqual([(row["kind"], row["tensor"]) for row in self.rows(path, code=0)], [("zero", name) for name in "zmi"])
        path = self.gguf("zero.gguf", {"w": (Q8_0, (64,), bytes(68)), "v": (Q8_0, (64,), bytes(self.blocks(Q8_0, 2)))})
        self.assertEqual([row["tensor"] for row in self.rows(path, code=0)], ["w"])

    def test_tied_tensors(self):
        same, large = ramp(64), ramp(300000)
        other = bytearray(large)
        other[1200] ^= 1
        tensors = {"embed": ("F32", (8, 8), same), "norm": ("F32", (64,), ramp(64, 2.0)), "head": ("F32", (64,), same)}
        tensors.update({"a": ("F32", (300000,), large), "b": ("F32", (300000,), bytes(other)), "c": ("F32", (300000,), large)})
        tensors.update({"one": ("I64", (), bytes([1] * 8)), "two": ("I64", (), bytes([1] * 8))})
        path = self.safetensors("tied.safetensors", tensors)
        ties = [(row["kind"], row["tensor"], row["other"]) for row in self.rows(path, code=0)]
        self.assertEqual(ties, [("tied", "head", "embed"), ("tied", "c", "a")])
        for extra in (["--threads", "1"], ["--device", "reference"], ["--max-memory", "64M"]):
            self.assertEqual([(r["kind"], r["tensor"], r["other"]) for r in self.rows(path, *extra, code=0)], ties)

    def test_ties_are_those_of_one_checkpoint(self):
        same = ramp(64)
        first = self.safetensors("m-1.safetensors", {"embed": ("F32", (64,), same)})
        second = self.safetensors("m-2.safetensors", {"head": ("F32", (64,), same)})
        self.assertEqual(self.rows(first, second, code=0), [])
        self.assertEqual(self.rows(first, first, code=0), [])
        self.index({"embed": "m-1.safetensors", "head": "m-2.safetensors"})
        (row,) = self.rows(self.folder, code=0)
        self.assertEqual((row["kind"], row["tensor"], row["other"], row["file"]), ("tied", "head", "embed", str(second)))
        self.assertIn(f"as embed of {first}", row["message"])

    def test_nan_in_tied_tensors(self):
        data = floats([1.0] * 10 + [math.nan] + [2.0] * 5)
        path = self.safetensors("tied.safetensors", {name: ("F32", (16,), data) for name in ("a", "b")})
        found = [(row["kind"], row["tensor"], row.get("first")) for row in self.rows(path)]
        self.assertEqual(found, [("nan", "a", [10]), ("nan", "b", [10]), ("tied", "b", None)])

    # ---- structure

    def test_strangers_are_named(self):
        strangers = {
            "lfs.safetensors": (b"version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 1\n", "Git LFS pointer"),
            "page.gguf": (b"<!DOCTYPE html><html><body>Sign in</body></html>", "web page"),
            "zip.safetensors": (b"PK\3\4" + bytes(60), "zip"),
            "pickle.safetensors": (b"\x80\x02}q\0" + bytes(60), "pickle"),
            "empty.safetensors": (b"", "is empty"),
        }
        for name, (content, words) in strangers.items():
            (self.folder / name).write_bytes(content)
            (row,) = self.rows(self.folder / name)
            self.assertEqual((row["kind"], row["level"]), ("structure", "finding"))
            self.assertIn(words, row["message"])
            self.assertFalse(row["message"].startswith(str(self.folder)), row["message"])
        out = self.run_command("check", *(self.folder / name for name in strangers), code=1)[0]
        self.assertIn("5 findings", out)

    def test_truncated(self):
        path = self.safetensors("short.safetensors", {f"t{i}": ("F32", (100,), ramp(100, i)) for i in range(10)})
        os.truncate(path, path.stat().st_size - 900)
        file, *tensors = self.rows(path)
        self.assertEqual((file["kind"], file["count"], file["total"]), ("truncated_file", 3, 10))
        self.assertIn("3 of 10 tensors incomplete, 7 intact", file["message"])
        self.assertEqual([(row["kind"], row["tensor"]) for row in tensors], [("truncated", f"t{i}") for i in (7, 8, 9)])

    def test_what_was_not_read_is_not_counted(self):
        path = self.safetensors("short.safetensors", {"a": ("F32", (4,), ramp(4)), "b": ("F32", (1 << 38,), None), "e": ("F32", (0,), b"")})
        os.truncate(path, path.stat().st_size - 8)
        self.assertIn("\n2 tensors, 16 B in ", self.run_command("check", path, code=1)[0])
        self.assertEqual(self.json_of("check", path, code=1)["bytes"], 16)
        path = self.gguf("new.gguf", {"w": (99, (32,), bytes(32)), "ok": (0, (2,), ramp(2))})
        self.assertIn("\n1 tensor, 8 B in ", self.run_command("check", path, code=1)[0])

    def test_values_of_what_is_left_are_examined(self):
        path = self.safetensors("short.safetensors", {"a": ("F32", (2,), floats([1, math.nan])), "b": ("F32", (100,), ramp(100))})
        os.truncate(path, path.stat().st_size - 8)
        self.assertEqual([row["kind"] for row in self.rows(path)], ["truncated_file", "truncated", "nan"])

    def shard(self, name, tensors):
        return self.safetensors(name, {key: ("F32", (8,), ramp(8, start)) for key, start in tensors.items()})

    def index(self, weight_map, total=None, name="model.safetensors.index.json"):
        path = self.folder / name
        metadata = {} if total is None else {"total_size": total}
        path.write_text(json.dumps({"metadata": metadata, "weight_map": weight_map}))
        return path

    def test_a_set_in_order(self):
        self.shard("m-1.safetensors", {"a": 1, "b": 2})
        self.shard("m-2.safetensors", {"c": 3})
        index = self.index({"a": "m-1.safetensors", "b": "m-1.safetensors", "c": "m-2.safetensors"}, 96)
        shards = [self.folder / f"m-{i}.safetensors" for i in (1, 2)]
        for paths in ([index], [self.folder], [index.name], [shards[1]], ["m-1.safetensors"], shards, [index, *shards, self.folder]):
            self.assertEqual(self.rows(*paths, code=0), [])
            self.assertIn("3 tensors", self.run_command("check", *paths)[0])
        self.index({"a": "m-1.safetensors", "b": "m-1.safetensors", "c": "./m-2.safetensors"}, 95)
        (row,) = self.rows(self.folder, code=0)
        self.assertEqual((row["kind"], row["level"]), ("odd", "note"))

    def test_index_against_shards_both_ways(self):
        self.shard("m-1.safetensors", {"a": 1, "b": 2, "new": 3, "new2": 4})
        self.shard("m-2.safetensors", {"c": 5, "moved": 6, "a": 7})
        self.shard("stray.safetensors", {"s": 8})
        (self.folder / "m-3.safetensors").write_bytes(b"<html>not here</html>")
        self.index(
            {"a": "m-1.safetensors", "b": "m-1.safetensors", "gone": "m-1.safetensors", "gone2": "m-2.safetensors",
             "moved": "m-1.safetensors", "c": "m-2.safetensors", "x": "m-3.safetensors", "y": "m-4.safetensors",
             "z": "m-4.safetensors"}, 1)
        found = {(r["kind"], r["file"].rsplit("/", 1)[-1], r.get("tensor"), r.get("other", "").rsplit("/", 1)[-1])
                 for r in self.rows(self.folder)}
        self.assertEqual(found, {
            ("unindexed_tensor", "m-1.safetensors", "new", ""),
            ("unindexed_tensor", "m-1.safetensors", "new2", ""),
            ("misplaced_tensor", "m-2.safetensors", "moved", "m-1.safetensors"),
            ("duplicate_tensor", "m-2.safetensors", "a", "m-1.safetensors"),
            ("structure", "m-3.safetensors", None, ""),
            ("missing_shard", "m-4.safetensors", None, ""),
            ("missing_tensor", "m-1.safetensors", "gone", ""),
            ("missing_tensor", "m-2.safetensors", "gone2", ""),
            ("stray_shard", "stray.safetensors", None, ""),
        })
        missing = next(r for r in self.rows(self.folder) if r["kind"] == "missing_shard")
        self.assertIn("2 tensors", missing["message"])

    def test_values_of_a_broken_set_are_examined(self):
        self.safetensors("m-1.safetensors", {"a": ("F32", (2,), floats([1, math.inf]))})
        self.index({"a": "m-1.safetensors", "b": "m-2.safetensors"})
        self.assertEqual([row["kind"] for row in self.rows(self.folder)], ["missing_shard", "inf"])

    def gguf_part(self, number, count, values, said_count=None):
        numbers = {"split_no": number - 1, "split_count": said_count or count}
        return self.gguf(f"m-{number:05}-of-{count:05}.gguf", {f"t{number}": (0, (2,), floats(values))}, **numbers)

    def test_values_of_a_split_model_without_a_part_are_examined(self):
        first, third = self.gguf_part(1, 3, [1, math.nan]), self.gguf_part(3, 3, [math.inf, 1])
        for paths in ([first], [third], [first, third], [self.folder]):
            self.assertEqual([row["kind"] for row in self.rows(*paths)], ["missing_shard", "nan", "inf"])
        second = self.folder / "m-00002-of-00003.gguf"
        second.write_bytes(b"<html>not here</html>")
        for paths in ([first], [second], [first, second, third], [self.folder]):
            found = [(row["kind"], row["file"]) for row in self.rows(*paths)]
            self.assertEqual(found, [("structure", str(second)), ("nan", str(first)), ("inf", str(third))])
        third.unlink()
        self.assertEqual([row["kind"] for row in self.rows(self.folder)], ["missing_shard", "structure", "nan"])

    def test_values_of_parts_that_do_not_agree_are_examined(self):
        first = self.gguf_part(1, 2, [1, math.nan])
        second = self.gguf_part(2, 2, [1, 2], said_count=3)
        os.truncate(second, second.stat().st_size - 30)
        kinds = [row["kind"] for row in self.rows(first)]
        self.assertEqual(kinds, ["truncated_file", "truncated", "structure", "nan"])

    def onnx(self, name, tensors):
        """Writes {name: f32 values, or the file that has them}."""
        def field(number, content):
            return bytes([number << 3 | 2, len(content)]) + content
        graph = b""
        for key, value in tensors.items():
            place = field(13, field(1, b"location") + field(2, value.encode())) + bytes([14 << 3, 1]) if isinstance(value, str) \
                else field(9, floats(value))
            graph += field(5, bytes([1 << 3, 2, 2 << 3, 1]) + field(8, key.encode()) + place)
        path = self.folder / name
        path.write_bytes(bytes([1 << 3, 8]) + field(7, graph) + field(8, bytes([2 << 3, 17])))
        return path

    def test_a_set_needs_few_handles(self):
        one = ("F32", (1,), floats([1]))
        names = [f"m-{i:05}-of-00060.safetensors" for i in range(1, 61)]
        for i, name in enumerate(names):
            self.safetensors(name, {f"t{i}": one})
        index = self.folder / "m.safetensors.index.json"
        limited = f'ulimit -n 24; exec "{harness.COMMAND}" check "$@"'
        for is_set in (True, False):
            if is_set:
                index.write_text(json.dumps({"weight_map": {f"t{i}": name for i, name in enumerate(names)}}))
            else:
                index.unlink()
            done = subprocess.run(["sh", "-c", limited, "sh", *names], cwd=self.folder, env=self.environment(), capture_output=True,
                                  text=True, timeout=60)
            self.assertEqual((done.returncode, done.stderr), (0 if is_set else 1, ""), done.stdout)
            self.assertIn("60 tensors", done.stdout)

    def test_values_of_a_model_without_its_data_file_are_examined(self):
        (self.folder / "here.bin").write_bytes(floats([math.inf, 1]))
        path = self.onnx("m.onnx", {"a": [1, math.nan], "b": "gone.bin", "c": "here.bin", "d": "lost.bin"})
        for what in (path, self.folder):
            found = [(row["level"], row["kind"], row.get("tensor")) for row in self.rows(what)]
            self.assertEqual(found, [("finding", "missing_shard", None), ("note", "odd", None), ("finding", "nan", "a"),
                                     ("finding", "inf", "c")])
        self.assertIn("lost.bin", self.rows(path)[1]["message"])
        for name in ("gone.bin", "lost.bin"):
            (self.folder / name).write_bytes(b"version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 1\n")
        kinds = [row["kind"] for row in self.rows(self.folder)]
        self.assertEqual(kinds, ["structure", "odd", "nan", "inf"])
        self.assertEqual(self.run_command("inspect", path, code=3)[0], "")

    def test_any_shard_stands_for_its_set(self):
        self.shard("m-1.safetensors", {"a": 1})
        self.index({"a": "m-1.safetensors", "b": "m-2.safetensors"})
        self.assertEqual([row["kind"] for row in self.rows("m-1.safetensors")], ["missing_shard"])

    def test_parts_without_an_index(self):
        folder = self.folder / "set"
        folder.mkdir()
        names = [f"set/model-{i:05}-of-00003.safetensors" for i in (1, 2, 3)]
        for name in names[:2]:
            self.shard(name, {name: 1})
            for target in (folder, self.folder / name):
                (row,) = self.rows(target)
                self.assertEqual((row["kind"], row["level"]), ("missing_shard", "finding"))
        self.assertIn("1 is missing beside it, such as ", row["message"])
        self.assertIn("model-00003-of-00003.safetensors", row["message"])
        self.shard(names[2], {"c": 1})
        self.assertEqual([row["kind"] for row in self.rows(folder)], ["missing_index"])
        self.run_command("diff", folder, folder, code=3)
        self.shard("set/whole-00001-of-00001.safetensors", {"d": 1})
        self.assertEqual(self.rows("set/whole-00001-of-00001.safetensors", code=0), [])

    def test_a_set_on_its_way_is_told(self):
        """Its writer was killed before, while or after it removed the old files."""
        for kept in (3, 1, 0, None):
            folder = self.folder / f"kept{kept}"
            folder.mkdir()
            shards = [f"m-{i:05}-of-00003.safetensors" for i in (1, 2, 3)]
            for i, name in enumerate(shards):
                self.shard(f"{folder.name}/{name}", {f"t{i}": 1})
                (folder / f"{name}.0123456789ab.part").write_bytes((folder / name).read_bytes())
            index = folder / "m.safetensors.index.json"
            index.write_text(json.dumps({"weight_map": {f"t{i}": name for i, name in enumerate(shards)}}))
            (folder / f"{index.name}.0123456789ab.whole").write_bytes(index.read_bytes())
            for name in shards[kept or 0:]:
                (folder / name).unlink()
            if kept is None:
                index.unlink()
            for target in (folder, index, folder / shards[0]):
                kinds = [row["kind"] for row in self.rows(target, level="finding")]
                self.assertEqual(kinds, ["interrupted"] + ["missing_shard"] * (0 if kept is None else 3 - kept), target)
            out, err = self.run_command("check", *(folder / name for name in shards), code=1)
            self.assertEqual(out.count("a complete checkpoint was being put in its place here"), 1)
            self.assertIn("the same merge again with --force completes it", " ".join(out.split()))
            models = [self.small_model("a.safetensors"), self.small_model("b.safetensors")]
            arguments = ("merge", "--linear", *models, "-o", folder / "m.safetensors", "--shard-size", "40B")
            if kept is not None:
                err = self.run_command(*arguments, code=1)[1]
                self.assertRegex(err, r"tensormorph: \S*/(m-00001-of-00003.safetensors|m.safetensors.index.json) is there; --force")
            self.run_command(*arguments, "--force")
            self.assertEqual(self.rows(folder, code=0, level="finding"), [])

    def test_an_index_that_is_something_else(self):
        self.shard("m-00001-of-00001.safetensors", {"a": 1})
        index = self.folder / "model.safetensors.index.json"
        for content, words in ((b"version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 1\n", "Git LFS pointer"),
                               (b"<!DOCTYPE html><html><body>Sign in</body></html>", "web page")):
            index.write_bytes(content)
            for target in (self.folder, index):
                self.assertIn(words, self.rows(target)[0]["message"])
            (note,) = self.rows("m-00001-of-00001.safetensors", code=0)
            self.assertIn(words, note["message"])

    def test_many_files_need_few_handles(self):
        for i in range(150):
            self.safetensors(f"f{i}.safetensors", {"x": ("F32", (2,), ramp(2, i))})
        limited = f'ulimit -n 100; exec "{harness.COMMAND}" check "$@"'
        for paths in ([self.folder], sorted(self.folder.glob("*.safetensors")), [self.index({f"x{i}": f"f{i}.safetensors" for i in range(150)})]):
            done = subprocess.run(["bash", "-c", limited, "check", *map(str, paths)], env=self.environment(), stdout=subprocess.PIPE,
                                  stderr=subprocess.PIPE, timeout=120, text=True)
            self.assertIn("150 tensors", done.stdout, done.stderr)
            self.assertEqual(done.stderr, "")

    def test_files_of_other_sets_are_no_strays(self):
        self.shard("m-1.safetensors", {"a": 1})
        self.shard("m.fp16-1.safetensors", {"a": 2})
        self.index({"a": "m-1.safetensors"})
        other = self.index({"a": "m.fp16-1.safetensors", "b": "m.fp16-2.safetensors"}, name="model.fp16.safetensors.index.json")
        self.assertEqual(self.rows(self.folder, code=0), [])
        (self.folder / "model.safetensors.index.json").rename(self.folder / "x.safetensors.index.json")
        self.assertEqual([row["kind"] for row in self.rows(self.folder)], ["missing_shard"])    # two sets now
        self.assertEqual([row["kind"] for row in self.rows(other)], ["missing_shard"])

    def test_a_truncated_shard(self):
        path = self.shard("m-1.safetensors", {"a": 1, "b": 2})
        os.truncate(path, path.stat().st_size - 8)
        self.index({"a": "m-1.safetensors", "b": "m-1.safetensors"})
        found = [(row["kind"], row.get("tensor")) for row in self.rows(self.folder)]
        self.assertEqual(found, [("truncated_file", None), ("truncated", "b")])

    def test_totals_that_are_no_numbers_of_bytes(self):
        self.shard("m-1.safetensors", {"a": 1})
        for total in (-1, "6144", 2.5, None):
            path = self.index({"a": "m-1.safetensors"}, total=total)
            for target in (path, self.folder):
                self.assertEqual([row["kind"] for row in self.rows(target, code=0)], [] if total is None else ["odd"], total)
            self.assertEqual(len(self.json_of("inspect", path)["notes"]), 0 if total is None else 1)

    def test_a_broken_index(self):
        for weight_map in ('{"a": 1}', '{"a": "../m.safetensors"}', '{"a": {"b": []}}', '[]'):
            path = self.folder / "model.safetensors.index.json"
            path.write_text(f'{{"weight_map": {weight_map}}}')
            self.assertEqual([row["kind"] for row in self.rows(path)], ["structure"])

    def test_a_wrong_entry_costs_the_others_nothing(self):
        self.safetensors("m-1.safetensors", {"a": ("F32", (2,), floats([1, math.nan])), "norm": ("F32", (2,), floats([1, math.inf]))})
        self.shard("m-2.safetensors", {"c": 3})
        whole = '"a": "m-1.safetensors", "c": "m-2.safetensors"'
        for entry in ('"../a.safetensors"', "5", "null", '{"x": ["m-1.safetensors"]}', '""', '"/a"', '"a\\u0000b"'):
            for weight_map in (f'"norm": {entry}, {whole}', f'{whole}, "n\\u006frm": {entry}', f'"other": 1, {whole}, "norm": {entry}'):
                path = self.folder / "model.safetensors.index.json"
                path.write_text(f'{{"weight_map": {{{weight_map}}}}}')
                flaws = ["structure"] * (1 + weight_map.count("other"))
                for target in (path, self.folder):
                    rows = self.rows(target)
                    self.assertEqual([row["kind"] for row in rows], [*flaws, "nan", "inf"], weight_map)
                    self.assertIn('tensor "norm": ', rows[len(flaws) - 1]["message"])
        path.write_text(f'{{"weight_map": {{{whole}, "norm": "m-1.safetensors", "norm": "m-2.safetensors"}}}}')
        rows = self.rows(path)
        self.assertEqual([row["kind"] for row in rows], ["structure", "nan", "inf"])
        self.assertIn('"norm" occurs twice', rows[0]["message"])

    def test_a_folder_of_several_models(self):
        self.small_model("a.safetensors")
        self.safetensors("b.safetensors", {"x": ("F32", (1,), F32.pack(math.nan))})
        self.assertEqual([(row["kind"], row["file"]) for row in self.rows(self.folder)], [("nan", f"{self.folder}/b.safetensors")])

    def test_hidden_files_do_not_count(self):
        self.small_model("model.safetensors")
        for name in ("._model.safetensors", "._model.safetensors.index.json", ".x.gguf"):
            (self.folder / name).write_bytes(b"\0\5\x16\7" + bytes(20))
        self.assertEqual(self.rows(self.folder, code=0), [])
        self.assertEqual(self.rows("model.safetensors", code=0), [])
        self.assertEqual(self.json_of("inspect", self.folder)["notes"], [])
        self.shard("m-1.safetensors", {"a": 1})
        self.index({"a": "m-1.safetensors"})
        (self.folder / "model.safetensors").unlink()
        self.assertEqual(self.rows(self.folder, code=0), [])
        self.assertEqual([row["kind"] for row in self.rows("._model.safetensors")], ["structure"])
        several = self.folder / "several"
        several.mkdir()
        (several / "._a.safetensors").write_bytes(bytes(24))
        self.run_command("check", several, code=3)
        for name in ("a", "b"):
            self.small_model(f"several/{name}.safetensors")
        self.assertEqual(self.rows(several, code=0), [])

    def test_a_folder_of_two_indexes(self):
        self.shard("m-1.safetensors", {"a": 1})
        for name in ("a", "b"):
            self.index({"a": "m-1.safetensors"}, name=f"{name}.safetensors.index.json")
        err = self.run_command("inspect", self.folder, code=3)[1]
        self.assertIn("the indexes of 2 sets; name one of them: a.safetensors.index.json b.safetensors.index.json\n", err)

    # ---- what the command is told, and how it ends

    def test_selection(self):
        path = self.safetensors("m.safetensors", {name: ("F32", (1,), F32.pack(math.nan)) for name in ("a.w", "b.w", "c")})
        self.assertEqual([row["tensor"] for row in self.rows(path, "--tensor", "*.w", "--exclude", "b*")], ["a.w"])
        for patterns in (("--exclude", "*"), ("--tensor", "c", "--exclude", "c"), ("--tensor", "d")):
            out, err = self.run_command("check", path, *patterns, code=2)
            self.assertEqual(out, "")
            self.assert_one_line(err)
        self.assertEqual(self.rows(self.safetensors("none.safetensors", {}), code=0), [])

    def test_patterns_hide_no_structure(self):
        self.shard("m-1.safetensors", {"a": 1})
        for name, kind in (("m-2.safetensors", "missing_shard"), ("m-1.safetensors", "missing_tensor")):
            self.index({"a": "m-1.safetensors", "c": name})
            for pattern in (("--tensor", "c"), ("--tensor", "mistyped"), ("--exclude", "*"), ("--exclude", "mistyped")):
                self.assertEqual([row["kind"] for row in self.rows(self.folder, *pattern)], [kind])
        rows = self.rows(self.folder, "nowhere.safetensors", "--tensor", "mistyped", code=3)
        self.assertEqual([row["kind"] for row in rows], ["missing_tensor", "unreadable"])
        self.assertIn("no tensor matches 'mistyped'", self.run_command("check", self.folder, "--tensor", "mistyped", code=1)[0])

    def test_trouble(self):
        good, bad = self.small_model(), self.safetensors("bad.safetensors", {"x": ("F32", (1,), F32.pack(math.nan))})
        out, err = self.run_command("check", good, "missing.safetensors", bad, code=3)
        self.assertIn("x: 1 NaN of 1 element", out)
        self.assertIn("1 finding; 1 file could not be examined\n", out)
        self.assert_one_line(err)
        self.assertIn("missing.safetensors", err)
        self.assertEqual(self.run_command("check", good, "missing.safetensors", "--quiet", code=3), ("", err))
        document = self.json_of("check", good, "missing.safetensors", code=3)
        self.assertEqual((document["complete"], document["trouble_count"]), (False, 1))
        self.assertIn("missing.safetensors", document["error"])
        self.run_command("check", self.folder / "nowhere", code=3)
        empty = self.folder / "empty"
        empty.mkdir()
        self.run_command("check", empty, code=3)
        self.run_command("check", code=2)
        self.run_command("check", good, "--max-header", "16", code=3)
        fifo = self.folder / "fifo"
        os.mkfifo(fifo)
        self.run_command("check", fifo, code=3)

    def test_many_notes_are_cut_for_people_only(self):
        path = self.safetensors("zeros.safetensors", {f"z{i}": ("F32", (i + 2,), bytes(4 * (i + 2))) for i in range(50)})
        out = self.run_command("check", path)[0]
        self.assertIn("and 30 more notes; --json lists all", out)
        self.assertEqual(len(self.rows(path, code=0)), 50)

    def test_names_cannot_forge_output(self):
        path = self.safetensors("m.safetensors", {"a\n\x1b[31mno findings": ("F32", (1,), F32.pack(math.nan))})
        out = self.run_command("check", path, code=1)[0]
        self.assertNotIn("\x1b", out)
        self.assertEqual(len([line for line in out.splitlines() if line.startswith("no findings")]), 0)

    def test_long_names_are_shortened_for_people(self):
        names = ["first." + "x" * 3000 + ".last", "one." + "\u00e4" * 1500 + ".end", "other." + "y" * 3000 + ".end"]
        self.safetensors("m.safetensors", {
            names[0]: ("F32", (2,), floats([1, math.nan])), names[1]: ("F32", (512,), ramp(512)), names[2]: ("F32", (512,), ramp(512))})
        out = self.run_command("check", "m.safetensors", code=1)[0]
        self.assertRegex(out, r"first\.x+\.\.\.x+\.last: 1 NaN of 2 elements")
        self.assertIn(".end: ", out)
        self.assertLess(max(map(len, re.findall(r"\w+", out))), 250)           # those in messages are cut at 200
        self.assertEqual([row["tensor"] for row in self.rows("m.safetensors")][0], names[0])

    def test_more_tensors_than_are_open_at_once(self):
        tensors = {}
        for i in range(700):
            tensors[f"f{i:03}"] = ("F32", (2,), floats([i, math.nan if i % 100 == 50 else 1]))
            tensors[f"i{i:03}"] = ("I32", (2,), struct.pack("<2i", i + 1, 7))
        path = self.safetensors("many.safetensors", tensors)
        for extra in ([], ["--threads", "1"], ["--device", "reference"]):
            rows = self.rows(path, *extra, level="finding")
            self.assertEqual([row["tensor"] for row in rows], [f"f{i:03}" for i in range(50, 700, 100)])

    def start(self, *arguments, tensors=None):
        equal = {f"t{i}": ("F32" if i % 2 else "I32", (1 << 28,), None) for i in range(64)}
        path = self.safetensors("sparse.safetensors", tensors or equal)
        process = subprocess.Popen([harness.COMMAND, "check", path, *arguments], env=self.environment(), stdout=subprocess.PIPE,
                                   stderr=subprocess.PIPE, preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL))
        self.wait_until_at_work(process, path)
        return process, path

    def test_interrupt(self):
        process, _ = self.start("--json")
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=60)
        self.assertEqual((process.returncode, json.loads(out)["complete"]), (130, False))
        self.assertIn("interrupted", err.decode())

    def test_file_that_shrinks_meanwhile(self):
        for tensors in (None, {"one": ("F32", (1 << 34,), None), "two": ("BF16", (1 << 30,), None)}):
            process, path = self.start("--json", tensors=tensors)
            size = path.stat().st_size
            os.truncate(path, 1 << 20)
            out, err = process.communicate(timeout=60)
            document = json.loads(out)
            self.assertEqual((process.returncode, document["verdict"], document["complete"]), (3, "trouble", False), err)
            self.assertEqual([row["kind"] for row in document["rows"] if row["level"] == "trouble"], ["changed"])
            self.assertLess(document["bytes"], size)


class LittleMemory(harness.CommandTest):
    def test_the_least_that_is_named_leads_to_enough(self):
        """Whoever gives what the message asks for comes further each time, and soon far enough."""
        model = self.safetensors("big.safetensors", {name: ("F32", (100000,), None) for name in "abcdefgh"})
        allowed = r"; [\d.]+ (?:[kM]B|B) are allowed in all \(--max-memory\)"
        said = (
            rf"(?:{allowed}, and at least (?P<least>\S+ [kM]B) are needed|, which takes about (?P<about>\S+ [kM]B){allowed}"
            r"|takes at least (?P<merge>\S+ [kM]B) in all, and [\d.]+ [kM]B are allowed)\n\Z"
        )
        operation = ("--dtype", "f32,f32", "--shape", "4,4")
        for arguments in (
            ("stats", model),
            ("check", model),
            ("backends",),
            ("inspect", model),
            ("diff", model, model),
            ("merge", "--linear", model, model, "--force", "-o", "out.safetensors"),
            ("bench", "add", *operation, "--repeat", "2"),
            ("profile", "show"),
        ):
            for limit in (1000, 60000):
                with self.subTest(arguments=arguments, limit=limit):
                    self.follow(arguments, limit, said)

    def follow(self, arguments, limit, said):
        for _ in range(60):
            done = self.run_limited(*arguments, "--max-memory", str(limit))
            if done.returncode == 0:
                return
            text = done.stderr.decode()
            found = re.search(said, text)
            self.assertIsNotNone(found, text)
            self.assertEqual(len([line for line in text.splitlines() if ": note: " not in line]), 1, text)
            number, unit = next(group for group in found.groups() if group is not None).split()
            needed = round(float(number) * (1000 if unit == "kB" else 1000000))
            self.assertGreater(needed, limit)
            limit = needed
        self.fail(text)

    def run_limited(self, *arguments):
        return subprocess.run([harness.COMMAND, *map(str, arguments)], cwd=self.folder, env=self.environment(), stdin=subprocess.DEVNULL,
                              capture_output=True, timeout=120, check=False)


class ImpossibleParts(harness.CommandTest):
    def test_a_part_beyond_all_is_refused(self):
        tensors = {"a": ("F32", (4,), bytes(16))}
        path = self.safetensors("x-00003-of-00002.safetensors", tensors)
        said = "x-00003-of-00002.safetensors: by its name part 3 of 2, which no set has"
        self.assertIn(said, self.run_command("inspect", path, code=3)[1])
        self.assertIn(said, self.run_command("check", path, code=1)[0])
        self.assertIn(said, self.run_command("check", self.folder, code=1)[0])
        self.safetensors("x-00001-of-00002.safetensors", {"b": ("F32", (4,), bytes(16))})
        index = {"weight_map": {"a": "x-00003-of-00002.safetensors", "b": "x-00001-of-00002.safetensors"}}
        (self.folder / "x.safetensors.index.json").write_text(json.dumps(index))
        self.assertIn(said, self.run_command("inspect", "x.safetensors.index.json", code=3)[1])
        self.assertIn(said, self.run_command("check", "x.safetensors.index.json", code=1)[0])

    def test_parts_that_count_from_0_are_none_of_these(self):
        tensors = {"a": ("F32", (4,), bytes(16))}
        self.run_command("inspect", self.safetensors("x-00000-of-00002.safetensors", tensors))

    def test_no_set_is_named_like_a_part(self):
        model = self.safetensors("big.safetensors", {name: ("F32", (100000,), None) for name in "abcdefgh"})
        merge = ("merge", "--linear", model, model, "--shard-size", "1M", "-o")
        for name, count in (("m-00001-of-00002.safetensors", 2), ("m-00001-of-00001.safetensors", 1)):
            err = self.run_command(*merge, name, code=2)[1]
            self.assertIn(f"{name}: by its name part 1 of {count}, but it would be a set, whose parts get such names", err)
        self.assertEqual([entry.name for entry in self.folder.iterdir() if entry.name.startswith("m-")], [])
        self.run_command(*merge, "m.safetensors")


if __name__ == "__main__":
    harness.main()
