# SPDX-License-Identifier: Apache-2.0
"""merge: methods, recipes, plans and policies, formats in and out, every wrong word, and what stands there when it is stopped."""

import hashlib
import json
import math
import os
import pathlib
import random
import resource
import signal
import struct
import subprocess
import time

import harness

NIGHTLY = os.environ.get("TM_NIGHTLY") == "1"
CODES = {"F32": "f", "F64": "d", "F16": "e", "I64": "q", "I32": "i", "U8": "B"}


def packed(dtype, values):
    if dtype == "BF16":
        return b"".join(struct.pack("<f", value)[2:] for value in values)       # of numbers that bf16 holds
    return struct.pack(f"<{len(values)}{CODES[dtype]}", *values)


def unpacked(dtype, data):
    if dtype == "BF16":
        return [struct.unpack("<f", b"\0\0" + data[i : i + 2])[0] for i in range(0, len(data), 2)]
    return list(struct.unpack(f"<{len(data) // harness.SIZES[dtype]}{CODES[dtype]}", data))


def f32(value):
    return struct.unpack("<f", struct.pack("<f", value))[0]


def read_safetensors(path):
    """{name: (dtype, shape, bytes)} and the metadata."""
    data = pathlib.Path(path).read_bytes()
    length = struct.unpack("<Q", data[:8])[0]
    header = json.loads(data[8 : 8 + length])
    metadata = header.pop("__metadata__", {})
    tensors = {}
    for name, entry in header.items():
        begin, end = entry["data_offsets"]
        tensors[name] = (entry["dtype"], entry["shape"], data[8 + length + begin : 8 + length + end])
    return tensors, metadata


class Merge(harness.CommandTest):
    def model(self, name, **tensors):
        """Writes a file from {name: values}, or {name: (dtype, shape, values)}."""
        content = {}
        for key, value in tensors.items():
            dtype, shape, values = value if isinstance(value, tuple) else ("F32", (len(value),), value)
            content[key.replace("__", ".")] = (dtype, shape, packed(dtype, values))
        return self.safetensors(name, content, {"format": "pt"})

    def merge(self, *arguments, code=0, **variables):
        return self.run_command("merge", "-o", "out.safetensors", *arguments, code=code, **variables)

    def values(self, name="out.safetensors"):
        tensors, _ = read_safetensors(self.folder / name)
        return {key: unpacked(dtype, data) for key, (dtype, _, data) in tensors.items()}

    def tensor_bytes(self, name="out.safetensors"):
        """What is equal where the bytes are: hashes, whose differences are quickly told."""
        return {key: hashlib.sha256(value[2]).hexdigest() for key, value in read_safetensors(self.folder / name)[0].items()}

    def random_models(self, count=3, size=600):
        draw = random.Random(5)
        for i in range(count):
            self.model("abcd"[i] + ".safetensors", **{f"l{j}__w": [f32(draw.gauss(0, 1)) for _ in range(size)] for j in range(3)})

    def gguf(self, name, tensors, key_count=1):
        """Writes {name: (type number, shape outermost first, bytes)}."""
        infos, data = b"", b""
        for key, (number, shape, content) in tensors.items():
            infos += struct.pack("<Q", len(key)) + key.encode() + struct.pack("<I", len(shape))
            infos += struct.pack(f"<{len(shape)}Q", *reversed(shape)) + struct.pack("<IQ", number, len(data))
            data += content + bytes(-len(content) % 32)
        key = b"general.architecture"
        entry = struct.pack("<Q", len(key)) + key + struct.pack("<IQ", 8, 4) + b"test"
        head = struct.pack("<4sIQQ", b"GGUF", 3, len(tensors), key_count) + entry * key_count + infos
        (self.folder / name).write_bytes(head + bytes(-len(head) % 32) + data)

    def folder_state(self):
        return {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in self.folder.rglob("*") if path.is_file()}

    # ---- methods

    def test_linear(self):
        self.model("a.safetensors", x=[1, 2, -4, 0.5], y=[8])
        self.model("b.safetensors", x=[3, 6, 4, 1.5], y=[16])
        self.merge("--linear", "a.safetensors", "b.safetensors")
        self.assertEqual(self.values(), {"x": [2, 4, 0, 1], "y": [12]})
        self.merge("--linear", "-f", "-w", "1,3", "a.safetensors", "b.safetensors")
        self.assertEqual(self.values(), {"x": [2.5, 5, 2, 1.25], "y": [14]})
        self.merge("--linear", "-f", "-w", "1,3", "--no-normalize", "a.safetensors", "b.safetensors")
        self.assertEqual(self.values(), {"x": [10, 20, 8, 5], "y": [56]})
        self.merge("--linear", "-f", "-w", "a=1,b=3", "-wy:0,1", "a.safetensors", "b.safetensors")
        self.assertEqual(self.values(), {"x": [2.5, 5, 2, 1.25], "y": [16]})
        self.merge("--linear", "-f", "--weight", "y:b=0", "a.safetensors", "b.safetensors")
        self.assertEqual(self.values(), {"x": [2, 4, 0, 1], "y": [8]})

    def test_slerp(self):
        self.random_models(2)
        a, b = self.values("a.safetensors"), self.values("b.safetensors")
        self.merge("--slerp", "--t", "0.25", "a.safetensors", "b.safetensors")
        for name, merged in self.values().items():
            norm_a, norm_b = (math.sqrt(sum(x * x for x in side[name])) for side in (a, b))
            angle = math.acos(sum(x * y for x, y in zip(a[name], b[name])) / norm_a / norm_b)
            left, right = math.sin(0.75 * angle) / math.sin(angle), math.sin(0.25 * angle) / math.sin(angle)
            for x, y, z in zip(a[name], b[name], merged):
                self.assertAlmostEqual(z, left * x + right * y, delta=2e-7 * (abs(x) + abs(y)))
        for t, side in (("0", "a"), ("1", "b")):
            self.merge("--slerp", "-f", "--t", t, "a.safetensors", "b.safetensors")
            self.assertEqual(self.tensor_bytes(), self.tensor_bytes(f"{side}.safetensors"))
        self.merge("--slerp", "-f", "--t", "l1*:1", "--t", "0", "a.safetensors", "b.safetensors")
        self.assertEqual(self.tensor_bytes()["l1.w"], self.tensor_bytes("b.safetensors")["l1.w"])
        self.assertEqual(self.tensor_bytes()["l0.w"], self.tensor_bytes("a.safetensors")["l0.w"])

    def test_a_model_with_itself(self):
        self.random_models(2)
        base = ["--base", "a.safetensors"]
        for method in (["--linear"], ["--linear", "-w", "0.3,0.7"], ["--slerp", "--t", "0.3"], ["--task", *base],
                       ["--ties", *base, "--density", "0.5"], ["--dare", *base, "--density", "0.5"]):
            self.merge("-f", *method, "a.safetensors", "a.safetensors")
            self.assertEqual(self.tensor_bytes(), self.tensor_bytes("a.safetensors"), method)

    def test_task_and_dare(self):
        self.random_models(3)
        base, a, b = (self.values(f"{name}.safetensors") for name in "abc")
        task = ["--base", "a.safetensors", "-w", "0.5,0.25", "--scale", "2", "b.safetensors", "c.safetensors"]
        self.merge("--task", *task)
        merged = self.values()
        for name, values in merged.items():
            for m, x, y, z in zip(base[name], a[name], b[name], values):
                self.assertAlmostEqual(z, m + 2 * (0.5 * (x - m) + 0.25 * (y - m)), delta=4e-7 * (abs(m) + abs(x) + abs(y)))
        self.merge("--dare", "-f", "--density", "1", *task)
        for name, values in self.values().items():
            for plain, whole in zip(merged[name], values):
                self.assertAlmostEqual(plain, whole, delta=1e-6)
        sums = set()
        for seed in ("1", "2"):
            self.merge("--dare", "-f", "--density", "0.25", "--seed", seed, "--base", "a.safetensors", "b.safetensors")
            kept = [z for m, z in zip(base["l0.w"], self.values()["l0.w"]) if m != z]
            self.assertTrue(100 < len(kept) < 200, len(kept))
            for m, x, z in zip(base["l0.w"], a["l0.w"], self.values()["l0.w"]):
                self.assertTrue(z == m or abs(z - (m + 4 * (x - m))) < 1e-5 * (abs(m) + abs(x)))
            sums.add(self.tensor_bytes()["l0.w"])
            first = self.tensor_bytes()
            self.merge("--dare", "-f", "--density", "0.25", "--seed", seed, "--base", "a.safetensors", "b.safetensors",
                       "--threads", "1", "--no-device", "cpu")
            self.assertEqual(self.tensor_bytes(), first)
        self.assertEqual(len(sums), 2)
        self.merge("--dare", "-f", "--density", "0.5", "--no-rescale", "--base", "a.safetensors", "b.safetensors")
        for m, x, z in zip(base["l0.w"], a["l0.w"], self.values()["l0.w"]):
            self.assertTrue(z == m or abs(z - x) < 1e-6 * (abs(m) + abs(x)))

    def test_ties(self):
        self.model("m.safetensors", x=[0, 0, 0, 0, 10])
        self.model("a.safetensors", x=[1, -8, 4, 0.5, 12])
        self.model("b.safetensors", x=[3, 2, -6, 0.25, 16])
        self.merge("--ties", "--base", "m.safetensors", "a.safetensors", "b.safetensors")
        self.assertEqual(self.values()["x"], [2, -8, -6, 0.375, 14])
        self.merge("--ties", "-f", "--density", "0.4", "--base", "m.safetensors", "a.safetensors", "b.safetensors")
        self.assertEqual(self.values()["x"], [0, -8, -6, 0, 16])        # each keeps the two largest
        self.merge("--ties", "-f", "--no-normalize", "--base", "m.safetensors", "a.safetensors", "b.safetensors")
        self.assertEqual(self.values()["x"], [4, -8, -6, 0.75, 18])

    def test_order_changes_no_byte(self):
        self.random_models(4)
        base = ["--base", "d.safetensors"]
        for method in (["--linear"], ["--ties", *base, "--density", "0.5"], ["--task", *base]):
            self.merge("-f", *method, "-w", "0.2,0.3,0.5", "a.safetensors", "b.safetensors", "c.safetensors")
            first = self.tensor_bytes()
            self.merge("-f", *method, "-w", "a=0.2,b=0.3,c=0.5", "c.safetensors", "a.safetensors", "b.safetensors")
            self.assertEqual(self.tensor_bytes(), first, method)

    # ---- recipes

    def test_recipe_and_flags_are_one(self):
        self.random_models(3)
        flags = ["--ties", "--base", "a.safetensors", "-w", "0.5,0.25", "--density", "0.5", "-wl1*:1,0", "--dtype", "bf16",
                 "--dtype", "l2*:f32", "--scale", "0.75", "b.safetensors", "c.safetensors"]
        self.merge(*flags)
        by_flags = (self.folder / "out.safetensors").read_bytes()
        recipe = {"method": "ties", "base": "a.safetensors", "weight": [0.5, 0.25], "density": 0.5, "dtype": "bf16", "scale": 0.75,
                  "models": ["b.safetensors", {"path": "c.safetensors", "name": "third"}],
                  "tensors": [{"match": "l1*", "weight": {"b": 1, "third": 0}}, {"match": "l2*", "dtype": "f32"}]}
        (self.folder / "r.json").write_text(json.dumps(recipe))
        (self.folder / "r.yaml").write_text(
            "# like the flags\nmethod: ties\nbase: a.safetensors\nmodels:\n  - {path: b.safetensors, weight: 0.5}\n"
            "  - path: c.safetensors\n    weight: 0.25\ndensity: 0.5\ndtype: bf16\nscale: 0.75\noutput: elsewhere.safetensors\n"
            "tensors:\n  - match: 'l1*'\n    weight: [1, 0]\n  - {match: 'l2*', dtype: f32}\n")
        (self.folder / "made.safetensors").write_bytes(by_flags)
        for source in ("r.json", "r.yaml", "made.safetensors"):
            self.merge("-f", "--recipe", source)
            self.assertEqual((self.folder / "out.safetensors").read_bytes(), by_flags, source)
        self.run_command("merge", "--recipe", "r.yaml")
        self.assertEqual((self.folder / "elsewhere.safetensors").read_bytes(), by_flags)

    def test_options_win_over_the_recipe(self):
        self.model("a.safetensors", x=[1], y=[1])
        self.model("b.safetensors", x=[3], y=[3])
        (self.folder / "sub").mkdir()
        recipe = self.folder / "sub" / "r.yaml"
        recipe.write_text("method: linear\nmodels: [../a.safetensors, ../b.safetensors]\nweight: [1, 0]\n"
                          "tensors: [{match: y, weight: [0, 1]}]\n")
        self.merge("--recipe", recipe)
        self.assertEqual(self.values(), {"x": [1], "y": [3]})
        self.merge("-f", "--recipe", recipe, "-w", "1,1")
        self.assertEqual(self.values(), {"x": [2], "y": [3]})
        self.merge("-f", "--recipe", recipe, "-w", "*:1,1")
        self.assertEqual(self.values(), {"x": [2], "y": [2]})
        self.merge("-f", "--recipe", recipe, "b.safetensors", "a.safetensors")
        self.assertEqual(self.values(), {"x": [3], "y": [1]})
        self.merge("-f", "--recipe", recipe, "--task", "--base", "a.safetensors")
        self.assertEqual(self.values(), {"x": [1], "y": [3]})

    def test_wrong_recipes(self):
        self.model("a.safetensors", x=[1])
        (self.folder / "r.yaml").write_text("method: linear\nmodels: [a.safetensors, a.safetensors]\nwieght: 1\n")
        _, err = self.merge("--recipe", "r.yaml", code=2)
        self.assertEqual(err, 'tensormorph: r.yaml:3:1: unknown key "wieght"; did you mean "weight"?\n')
        self.assertIn("No such file", self.merge("--recipe", "none.yaml", code=3)[1])
        self.assertIn("not a regular file", self.merge("--recipe", "/dev/null", code=3)[1])
        self.assertIn("no merge made this", self.merge("--recipe", "a.safetensors", code=2)[1])
        (self.folder / "big.yaml").write_bytes(b"#" * 1100000)
        self.assertIn("larger than 1048576 bytes", self.merge("--recipe", "big.yaml", code=2)[1])
        os.mkfifo(self.folder / "fifo")
        self.assertIn("not a regular file", self.merge("--recipe", "fifo", code=3)[1])
        self.assertFalse((self.folder / "out.safetensors").exists())

    def test_record(self):
        self.random_models(3)
        self.merge("--dare", "--seed", "7", "--density", "0.5", "-wl1*:b=2", "--base", "a.safetensors", "b.safetensors",
                   "c.safetensors")
        metadata = read_safetensors(self.folder / "out.safetensors")[1]
        self.assertEqual(metadata["format"], "pt")
        record = json.loads(metadata["tensormorph.merge"])
        self.assertEqual((record["method"], record["seed"]), ("dare", 7))
        self.assertEqual([model["path"] for model in record["models"]], ["b.safetensors", "c.safetensors"])
        hashes = [model["hash"] for model in record["models"]] + [record["base"]["hash"]]
        self.assertEqual(len(set(hashes)), 3)
        self.assertFalse([text for text in hashes if set(text.split(":")[-1]) == {"0"}])

    def test_record_of_names_that_are_no_utf8(self):
        self.random_models(2)
        names = [os.fsencode(self.folder) + name for name in (b"/m\xff.safetensors", b"/m\xfe\xc3\xa4.safetensors")]
        for old, name in zip("ab", names):
            os.rename(self.folder / f"{old}.safetensors", name)
        self.merge("--linear", *map(os.fsdecode, names))
        record = json.loads(read_safetensors(self.folder / "out.safetensors")[1]["tensormorph.merge"])
        self.assertEqual([model["path"].rsplit("/", 1)[-1] for model in record["models"]], ["m\\xff.safetensors", "m\\xfe\u00e4.safetensors"])

    def test_record_of_equal_names(self):
        for folder, values in (("A", [1, 2]), ("B", [3, 6])):
            (self.folder / folder).mkdir()
            self.model(f"{folder}/model.safetensors", x=values, y=values)
        models = ["A/model.safetensors", "B/model.safetensors"]
        out, _ = self.merge("--linear", *models)
        self.assertIn("B/model.safetensors, A/model.safetensors", out)
        whole = (self.folder / "out.safetensors").read_bytes()
        made = self.folder / "made.safetensors"
        made.write_bytes(whole)
        self.merge("-f", "--recipe", made)
        self.assertEqual((self.folder / "out.safetensors").read_bytes(), whole)
        self.merge("-f", "--linear", "-w", "A/model=1,B/model.safetensors=0", *models)
        self.assertEqual(self.values()["x"], [1, 2])
        # two that became one are no merge of what was recorded
        (self.folder / "B" / "model.safetensors").unlink()
        (self.folder / "B" / "model.safetensors").symlink_to("../A/model.safetensors")
        _, err = self.merge("-f", "--recipe", made, code=2)
        self.assertIn("two different hashes of this one file", err)
        self.assert_one_line(err)
        self.merge("-f", "--recipe", made, *models)
        self.assertEqual(self.values()["x"], [1, 2])

    def test_record_of_models_that_changed(self):
        self.random_models(3)
        self.merge("--task", "--base", "c.safetensors", "a.safetensors", "b.safetensors")
        made = self.folder / "made.safetensors"
        (self.folder / "out.safetensors").rename(made)
        self.merge("--recipe", made)
        self.assertEqual((self.folder / "out.safetensors").read_bytes(), made.read_bytes())
        for name in "bc":
            data = bytearray((self.folder / f"{name}.safetensors").read_bytes())
            data[-1] ^= 1
            (self.folder / f"{name}.safetensors").write_bytes(data)
        _, err = self.merge("-f", "--recipe", made, code=1)
        self.assertEqual([line.split(" ")[1].rsplit("/", 1)[-1] for line in err.splitlines()], ["b.safetensors", "c.safetensors"])
        self.assertIn("is not what the recipe has the hash of", err)
        document = self.json_of("merge", "-f", "-o", "out.safetensors", "--recipe", made, code=1)
        self.assertEqual((document["verdict"], len(document["changed_models"])), ("merged", 2))
        self.assertNotIn("0" * 32, json.dumps(document["recipe"]))
        # who asks for something else is not told that it is
        self.merge("-f", "--recipe", made, "-w", "0.5,0.25")
        self.merge("-f", "--recipe", made, "--base", "a.safetensors", "a.safetensors", "b.safetensors")

    def test_record_of_a_set_by_any_name(self):
        (self.folder / "set").mkdir()
        self.random_models(2)
        for name in "ab":
            (self.folder / f"{name}.safetensors").rename(self.folder / "set" / f"{name}.safetensors")
        self.run_command("merge", "--linear", "--shard-size", "4kB", "-o", "model.safetensors", "set/a.safetensors",
                         "set/b.safetensors")
        self.merge("--linear", "set/a.safetensors", "set/b.safetensors")
        whole = self.tensor_bytes()
        inside = self.folder / "dset"
        inside.mkdir()
        for path in self.folder.glob("model*"):
            path.rename(inside / path.name)
        for way in ("dset", "dset/", "dset//", "./dset", "dset/model.safetensors.index.json"):
            with self.subTest(way):
                _, err = self.merge("-n", "--recipe", way, code=3)
                self.assertEqual([line.count("dset/") for line in err.splitlines()], [1, 1], err)
        for name in "ab":
            (self.folder / "set" / f"{name}.safetensors").rename(inside / f"{name}.safetensors")
        for way in ("dset", "dset/", "dset/model.safetensors.index.json"):
            self.merge("-f", "--recipe", way, "--shard-size", "0")
            self.assertEqual(self.tensor_bytes(), whole)

    def test_record_of_a_format_that_is_usual(self):
        self.model("a.safetensors", x=("BF16", (2,), [1, 2]), y=[1, 2])
        self.model("b.safetensors", x=("BF16", (2,), [3, 4]), y=[3, 4])
        self.merge("--linear", "--dtype", "f16", "--dtype", "x:lead", "a.safetensors", "b.safetensors")
        tensors, metadata = read_safetensors(self.folder / "out.safetensors")
        self.assertEqual({name: tensor[0] for name, tensor in tensors.items()}, {"x": "BF16", "y": "F16"})
        self.assertIn({"match": "x", "dtype": "lead"}, json.loads(metadata["tensormorph.merge"])["tensors"])
        whole = (self.folder / "out.safetensors").read_bytes()
        (self.folder / "out.safetensors").rename(self.folder / "made.safetensors")
        self.merge("--recipe", "made.safetensors")
        self.assertEqual((self.folder / "out.safetensors").read_bytes(), whole)

    # ---- the plan

    def uneven_models(self):
        step = ("I64", (), [7])
        self.model("a.safetensors", x=[1, 2], v=("F32", (3, 2), [1, 2, 3, 4, 5, 6]), only=[5], s=("F32", (2, 2), [1] * 4),
                   step=step, k=("I64", (1,), [1]))
        self.model("b.safetensors", x=[3, 4], v=("F32", (2, 2), [3, 4, 5, 6]), s=("F32", (2, 3), [1] * 6),
                   step=step, k=("I64", (1,), [2]))

    def test_mismatches_are_refused(self):
        self.uneven_models()
        before = self.folder_state()
        out, err = self.merge("--linear", "a.safetensors", "b.safetensors", code=1)
        self.assertEqual(self.folder_state(), before)
        self.assertIn("what does not match:", out)
        for words in (r"refuse +missing +only: ", r"refuse +rows +v: ", r"refuse +shape +s: ", r"refuse +type +k: "):
            self.assertRegex(out, words)
        self.assertNotIn("step: ", out)
        self.assertEqual(len(err.splitlines()), 4)
        self.assertIn("tensormorph: tensor 'only': not in b.safetensors", err)
        document = self.json_of("merge", "-o", "out.safetensors", "--linear", "a.safetensors", "b.safetensors", code=1)
        self.assertEqual((document["schema"], document["verdict"]), ("tensormorph.merge/1", "refused"))
        plan = document["plan"]
        self.assertEqual((plan["refused"], plan["mismatches"], len(plan["problems"])), (4, 4, 4))
        self.assertNotIn("rows", document)

    def test_policies(self):
        self.uneven_models()
        models = ["--linear", "a.safetensors", "b.safetensors"]
        self.merge(*models, "--missing", "copy", "--rows", "lead", "--other", "copy")
        self.assertEqual(self.values(), {"x": [2, 3], "v": [2, 3, 4, 5, 5, 6], "only": [5], "s": [1] * 4, "step": [7], "k": [1]})
        out, _ = self.merge("-f", *models, "--missing", "skip", "--rows", "common", "--other", "skip")
        self.assertEqual(self.values(), {"x": [2, 3], "v": [2, 3, 4, 5], "step": [7]})
        self.assertIn("3 left out", out)
        self.merge("-f", *models, "--missing", "available", "--rows", "longest", "--other", "skip")
        self.assertEqual(self.values(), {"x": [2, 3], "v": [2, 3, 4, 5, 5, 6], "only": [5], "step": [7]})

    def test_a_weight_that_does_not_count_is_told(self):
        self.random_models(2)
        out, _ = self.merge("--linear", "-w", "1e-12,1", "-wl1*:1", "a.safetensors", "b.safetensors")
        self.assertRegex(out, r"what else is told of tensors:\n.*tensor\n +copy +l0.w: the weight of a.safetensors is too small")
        self.assertNotIn("l1.w: ", out)
        self.assertNotIn("what does not match", out)

    def test_types_that_differ_are_told_once(self):
        names = ("x", "y", "z")
        self.model("a.safetensors", **{name: ("F32", (2,), [1, 2]) for name in names})
        self.model("b.safetensors", **{name: ("F64", (2,), [3, 4]) for name in names})
        out, _ = self.merge("--linear", "a.safetensors", "b.safetensors")
        self.assertEqual(self.values(), {name: [2, 3] for name in names})
        self.assertRegex(out, r"what does not match:\n.*\n +merge +type +x: f32 in a.safetensors, f64 in b.safetensors")
        self.assertIn("and 2 more (--wide names them): f32 in a.safetensors, f64 in b.safetensors", out)
        out, _ = self.merge("-n", "-f", "--wide", "--linear", "a.safetensors", "b.safetensors")
        for name in names:
            self.assertRegex(out, rf"\n +merge +type +{name}: f32 in a.safetensors, f64 in b.safetensors; ")
        self.assertNotIn(" more", out)
        out, _ = self.merge("-n", "-f", "--json", "--linear", "a.safetensors", "b.safetensors")
        self.assertEqual([row["mismatch"] for row in json.loads(out)["plan"]["rows"]], ["type"] * 3)

    def test_dry_run_touches_nothing(self):
        self.random_models(2)
        before = self.folder_state()
        out, err = self.merge("--linear", "-n", "a.safetensors", "b.safetensors")
        self.assertEqual((self.folder_state(), err), (before, ""))
        self.assertRegex(out, r"linear of 2 models into out.safetensors\n")
        self.assertRegex(out, r"3 tensors: 3 merged, 0 copied\nreads 14.4 kB, writes 7.20 kB")
        document = self.json_of("merge", "-o", "out.safetensors", "--linear", "--dry-run", "a.safetensors", "b.safetensors")
        self.assertEqual(document["verdict"], "planned")
        self.assertEqual((document["plan"]["read_bytes"], document["plan"]["written_bytes"]), (14400, 7200))
        self.assertEqual([row["action"] for row in document["plan"]["rows"]], ["merge"] * 3)
        self.assertEqual(document["recipe"]["method"], "linear")
        self.assertEqual(self.folder_state(), before)

    def test_the_plan_shows_weights_and_widths(self):
        self.random_models(2)
        out, _ = self.merge("--linear", "-n", "-w", "1,3", "-wl2*:3,1", "a.safetensors", "b.safetensors")
        self.assertRegex(out, r"(?m)^ +2 .*0\.25.*0\.75")
        self.assertRegex(out, r"(?m)^ +1 .*b.safetensors, a.safetensors +0\.25, 0\.75")
        self.uneven_models()
        for width in ("60", "80", "120"):
            out, _ = self.merge("--linear", "-n", "a.safetensors", "b.safetensors", code=1, COLUMNS=width)
            self.assertFalse([line for line in out.splitlines() if len(line) > int(width)], out)

    def test_what_is_there_stays(self):
        self.random_models(2)
        (self.folder / "out.safetensors").write_text("precious")
        out, err = self.merge("--linear", "a.safetensors", "b.safetensors", code=1)
        self.assertIn("replaces out.safetensors", out)
        self.assertIn("out.safetensors is there; --force replaces it", err)
        self.assertEqual((self.folder / "out.safetensors").read_text(), "precious")
        self.merge("--linear", "--force", "a.safetensors", "b.safetensors")
        self.assertEqual(len(self.values()), 3)

    # ---- what is told

    def test_what_differs_is_said_to(self):
        self.model("a.safetensors", b=[0, 0], w=[1, 2], h=("F16", (2,), [6e4, 1]))
        self.model("b.safetensors", b=[5, 5], w=[1, 2.5], h=("F16", (2,), [6e4, 1]))
        out, _ = self.merge("--linear", "a.safetensors", "b.safetensors")
        self.assertRegex(out, r"largest changes \(all there are\):\n.*\n +b .*2\.5 +-\n +w ")
        out, _ = self.merge("-f", "--linear", "-w", "0.5", "-wb:0,1", "-ww:1,0", "-wh:1,0", "a.safetensors", "b.safetensors")
        self.assertIn("no other tensor differs from that of the base or first model\n", out)
        self.assertIn("1 tensor is copied from b.safetensors; how much it differs from the base or first model is not measured\n", out)
        out, _ = self.merge("-f", "--slerp", "--t", "1", "a.safetensors", "b.safetensors")
        self.assertNotIn("differs from that", out)
        self.assertIn("3 tensors are copied from b.safetensors; how much they differ from the base or first model is not", out)
        self.model("c.safetensors", b=[1, 2], w=[2, 3], h=[5, 5])
        out, _ = self.merge("-f", "--linear", "-w", "0,1,1", "-wb:0,0,1", "a.safetensors", "b.safetensors", "c.safetensors")
        self.assertIn("2 tensors are made of c.safetensors, b.safetensors; how much", out)
        self.assertIn("1 tensor is copied from c.safetensors; how much", out)
        document = self.json_of("merge", "-f", "-o", "out.safetensors", "--linear", "-w", "1", "--no-normalize", "-wb:0,1",
                                "-ww:1,0", "a.safetensors", "b.safetensors")
        rows = {row["name"]: (row["change_max"], row["change_rel"], row["nonfinite"]) for row in document["rows"]}
        self.assertEqual((rows["b"], rows["w"], rows["h"][2]), ((None, None, None), (0, 0, 0), 1))
        self.assertEqual(self.values()["h"], [math.inf, 2])
        out, _ = self.merge("-f", "--linear", "--no-normalize", "-wb:1,0", "-ww:1,0", "a.safetensors", "b.safetensors")
        self.assertRegex(out, r"nonfinite\n +h .* 1\n\n")
        self.assertIn("note: 1 of these elements is finite in the checkpoint that leads", out)
        out, _ = self.merge("-f", "--linear", "a.safetensors", "a.safetensors")
        self.assertIn("\nno tensor differs from that of the base or first model\n", out)

    def test_what_no_distance_tells_of_differs_too(self):
        inf, nan = math.inf, math.nan
        for first, second, result in (([1, 2, 3, inf], [1, 2, 3, nan], [1, 2, 3, nan]), ([1, inf], [1, -inf], [1, nan]),
                                      ([1, -0.0], [1, 0.0], [1, 0.0])):
            self.model("a.safetensors", w=first, v=[1.5])
            self.model("b.safetensors", w=second, v=[1.5])
            out, _ = self.merge("-f", "--linear", "a.safetensors", "b.safetensors")
            self.assertEqual(str(self.values()["w"]), str(list(map(float, result))))
            self.assertRegex(out, r"largest changes \(all there are\):\n.* unequal\n +w .* 1\n\n")
            self.assertNotIn("no tensor differs", out)
            document = self.json_of("merge", "-f", "-o", "out.safetensors", "--linear", "a.safetensors", "b.safetensors")
            rows = {row["name"]: (row["change_max"], row["nonfinite"], row["unequal"]) for row in document["rows"]}
            self.assertEqual(rows, {"v": (0, 0, 0), "w": (0, 0, 1)})
            self.assertIn("different: 1 changed", self.run_command("diff", "a.safetensors", "out.safetensors", code=1)[0])
        self.model("a.safetensors", w=[1, nan], v=[1.5])        # the one that is written for all: equal bits
        self.model("b.safetensors", w=[1, -nan], v=[1.5])
        for device in (["--no-device", "cpu"], ["--no-device", "reference"]):
            out, _ = self.merge("-f", "--linear", "a.safetensors", "b.safetensors", *device)
            self.assertIn("\nno tensor differs from that of the base or first model\n", out)
            self.assertIn("same weights: 2 identical", self.run_command("diff", "a.safetensors", "out.safetensors")[0])

    def test_trouble_is_a_document(self):
        self.random_models(1)
        for words in (["a.safetensors", "none.safetensors"], ["--recipe", "none.yaml"]):
            document = self.json_of("merge", "-o", "out.safetensors", "--linear", *words, code=3)
            self.assertEqual((document["verdict"], document["output"], document["complete"]), ("trouble", "out.safetensors", False))
            self.assertIn("none.", document["error"])

    def test_the_plan_shows_all_settings(self):
        self.random_models(2)
        words = ["--dare", "-n", "--base", "a.safetensors", "--density", "0.5", "b.safetensors"]
        out, _ = self.merge("--seed", "7", "--no-rescale", "--scale", "l1*:0.25", *words)
        self.assertIn("into out.safetensors; seed 7, not rescaled\n", out)
        self.assertRegex(out, r"\n +2 .*, 1 at 0.5\n +1 .*, 1 at 0.5; scale 0.25\n")
        out, _ = self.merge("--linear", "-n", "--no-normalize", "a.safetensors", "b.safetensors")
        self.assertIn("into out.safetensors; not normalized\n", out)

    def test_a_type_for_integers_is_told(self):
        self.model("a.safetensors", x=[1, 2], i=("I64", (2,), [3, 2**60 + 1]), u=("U8", (1,), [1]))
        for words in (["--dtype", "f16"], ["--dtype", "[iu]:f16"], ["--dtype", "i:lead", "--dtype", "u:bf16"]):
            out, _ = self.merge("-f", "--linear", "a.safetensors", "a.safetensors", *words)
            self.assertRegex(out, r"what else is told of tensors:\n.*\n +copy +.: .* stays what it is; a type for results is for")
            self.assertEqual("i: i64 stays" in out, words[1] != "i:lead")
            self.assertEqual(self.values()["i"], [3, 2**60 + 1])
        self.model("b.safetensors", x=[1, 2])
        document = self.json_of("merge", "-n", "-o", "new.safetensors", "--linear", "--dtype", "i:f16", "--missing", "copy", "a.safetensors",
                                "b.safetensors")
        row = [row for row in document["plan"]["rows"] if row["name"] == "i"][0]
        self.assertEqual((row["action"], row["mismatch"], row["dtype"]), ("copy", "missing", "i64"))
        self.assertIn("not in b.safetensors; copied from a.safetensors; i64 stays what it is", row["message"])

    def test_no_weight_at_all(self):
        self.random_models(2)
        for words in (["-w", "0"], ["-wl1*:0,0"]):
            _, err = self.merge("--linear", *words, "a.safetensors", "b.safetensors", code=2)
            self.assertIn("all models have a weight of 0, which leaves them out, and nothing to merge", err)
        out, _ = self.merge("--linear", "-w", "0,0", "--no-normalize", "a.safetensors", "b.safetensors")
        self.assertEqual(self.tensor_bytes(), {f"l{i}.w": hashlib.sha256(bytes(2400)).hexdigest() for i in range(3)})
        self.model("c.safetensors", x=[math.nan, math.inf, -1, -0.0], k=("I64", (1,), [7]), c=[1])
        self.model("d.safetensors", x=[1, -math.inf, -1, 3], k=("I64", (1,), [7]))
        for words in (["c.safetensors", "d.safetensors"], ["d.safetensors", "c.safetensors"], ["c.safetensors"] * 2):
            self.merge("-f", "--linear", "-wx:0", "--no-normalize", "--missing", "available", *words)
            self.assertEqual(self.values()["x"], [0] * 4)
            self.assertEqual(math.copysign(1, self.values()["x"][3]), 1)
            self.assertEqual(self.values()["k"], [7])
        self.merge("-f", "--linear", "-w", "0", "--no-normalize", "c.safetensors", "d.safetensors", code=1)
        self.merge("-f", "--linear", "-w", "0", "--no-normalize", "--dtype", "f16", "c.safetensors")
        self.assertEqual((self.values()["x"], self.values()["k"]), ([0] * 4, [7]))

    def test_models_without_tensors(self):
        self.model("a.safetensors")
        self.model("b.safetensors")
        self.gguf("c.gguf", {})
        for words in (["--linear", "a.safetensors", "b.safetensors"], ["--slerp", "a.safetensors", "c.gguf"],
                      ["--dare", "--base", "a.safetensors", "c.gguf", "b.safetensors"]):
            out, _ = self.merge("-f", *words)
            self.assertIn("0 tensors: 0 merged, 0 copied\n", out)
            self.assertEqual(self.values(), {})
        self.model("x.safetensors", x=[1])
        for words in (["a.safetensors", "x.safetensors"], ["x.safetensors", "a.safetensors"]):
            _, err = self.merge("-f", "--linear", "--missing", "copy", *words, code=2)
            self.assertIn("have no tensor of the same name", err)

    def test_rows_are_of_names_and_numbers(self):
        self.random_models(3)
        models = ["a.safetensors", "b.safetensors"]
        document = self.json_of("merge", "-o", "out.safetensors", "--linear", "-w", "1,3", "-wl0*:1,0", *models)
        for rows in (document["plan"]["rows"], document["rows"]):
            self.assertEqual([(row["models"], row["weights"]) for row in rows],
                             [(["a.safetensors"], [1]), (models, [0.25, 0.75]), (models, [0.25, 0.75])])
            self.assertNotIn("densities", rows[1])
        document = self.json_of("merge", "-f", "-o", "out.safetensors", "--ties", "--density", "0.5,1", "--scale", "0.1", "--base",
                                "c.safetensors", *models, "-wl0*:0,1")
        for rows in (document["plan"]["rows"], document["rows"]):
            self.assertEqual([(row["models"], row["weights"], row["densities"], row["scale"]) for row in rows[:2]],
                             [(["base", "b.safetensors"], [None, 1], [None, 1], 0.1), (["base", *models], [None, 1, 1], [None, 0.5, 1], 0.1)])
        document = self.json_of("merge", "-n", "-f", "-o", "out.safetensors", "--slerp", "--t", "0.25", *models)
        row = document["plan"]["rows"][0]
        self.assertEqual((row["weights"], "angle" in row), ([0.75, 0.25], False))
        row = self.json_of("merge", "-f", "-o", "out.safetensors", "--slerp", "--t", "0.25", *models)["rows"][0]
        for t, weight in zip((0.75, 0.25), row["weights"]):
            self.assertAlmostEqual(weight, math.sin(t * row["angle"]) / math.sin(row["angle"]), delta=1e-15)
        self.model("x.safetensors", l0__w=[1])
        document = self.json_of("merge", "-f", "-o", "out.safetensors", "--linear", "a.safetensors", "x.safetensors", code=1)
        self.assertEqual([(row["action"], row["models"], row["weights"]) for row in document["plan"]["rows"]], [("refuse", [], [])] * 3)

    def test_names_and_notes_are_readable(self):
        self.safetensors("a.safetensors", {"": ("F32", (1,), packed("F32", [1])), "x": ("F32", (1,), packed("F32", [1]))})
        self.model("b.safetensors", x=[2])
        out, _ = self.merge("--linear", "a.safetensors", "b.safetensors", code=1)
        self.assertIn("missing   '': not in b.safetensors", out)
        self.gguf("a.gguf", {"n": (0, (2,), packed("F32", [1, 2]))}, key_count=2)
        for words in ([], ["--force", "--slerp"]):
            out, _ = self.merge(*(words or ["--linear", "-w", "0.5,0.5"]), "a.gguf", "a.gguf")
            self.assertEqual(out.count("occurs twice"), 1, out)
        document = self.json_of("merge", "-f", "-o", "out.safetensors", "--linear", "a.gguf", "a.gguf")
        self.assertEqual((len(document["plan"]["notes"]), document["notes"]), (1, []))
        self.random_models(2)
        out, _ = self.merge("-f", "--linear", "a.safetensors", "b.safetensors", COLUMNS="24")
        self.assertIn("; --json shows all)", " ".join(out.split()))

    def test_why_not_on_the_device_that_was_asked_for(self):
        plugin = pathlib.Path(os.environ.get("TM_ZOO", "/nonexistent")) / "honest.so"
        if not plugin.is_file():
            self.skipTest("the zoo is not built")
        self.random_models(2)
        for method in (["--linear"], ["--ties", "--base", "a.safetensors"], ["--dare", "--base", "a.safetensors"]):
            out, _ = self.merge("-f", *method, "a.safetensors", "b.safetensors", "--plugin", plugin, "--device", "zoo_honest")
            self.assertIn("note: f32 tensors went to reference:0: zoo_honest:0 refuses them", out)

    # ---- formats

    def test_types_of_the_result(self):
        self.model("a.safetensors", x=("BF16", (4,), [1, 2, 3, 4]), y=("F16", (2,), [1, 2]))
        self.model("b.safetensors", x=[3, 4, 5, 6], y=("F64", (2,), [3, 4]))
        self.merge("--linear", "a.safetensors", "b.safetensors")
        tensors, _ = read_safetensors(self.folder / "out.safetensors")
        self.assertEqual({name: value[0] for name, value in tensors.items()}, {"x": "BF16", "y": "F16"})
        self.assertEqual(self.values(), {"x": [2, 3, 4, 5], "y": [2, 3]})
        self.merge("-f", "--linear", "--dtype", "f32", "--dtype", "y:f64", "a.safetensors", "b.safetensors")
        tensors, _ = read_safetensors(self.folder / "out.safetensors")
        self.assertEqual({name: value[0] for name, value in tensors.items()}, {"x": "F32", "y": "F64"})

    def test_gguf_in_and_out(self):
        block = struct.pack("<e", 0.5) + bytes(range(32))
        other = struct.pack("<e", 0.25) + bytes(range(32))
        self.gguf("a.gguf", {"x": (8, (2, 32), block * 2), "n": (0, (2,), packed("F32", [1, 2]))})
        self.gguf("b.gguf", {"x": (8, (2, 32), other * 2), "n": (0, (2,), packed("F32", [3, 4]))})
        _, err = self.merge("--linear", "a.gguf", "b.gguf", code=1)
        self.assertIn("safetensors has no such type", err)
        self.merge("--linear", "--dtype", "f32", "a.gguf", "b.gguf")
        self.assertEqual(self.values(), {"x": [i * 0.375 for i in range(32)] * 2, "n": [2, 3]})
        document = self.json_of("merge", "--linear", "-o", "out.gguf", "a.gguf", "b.gguf")
        row = [row for row in document["rows"] if row["name"] == "x"][0]
        self.assertEqual(row["dtype"], "q8_0")
        self.assertTrue(0 < row["error_rel"] < 0.01, row)
        listed = self.json_of("inspect", "out.gguf")
        self.assertEqual([tensor["dtype"] for tensor in listed["tensors"]], ["q8_0", "f32"])
        self.assertIn("tensormorph.merge", json.dumps(listed["metadata"]))
        out, _ = self.run_command("merge", "--linear", "-f", "-o", "out.gguf", "a.gguf", "b.gguf")
        self.assertIn("error_rel", out)
        self.merge("-f", "--linear", "out.gguf", "b.gguf", "--dtype", "f32", "-w", "0,1")
        self.assertEqual(self.values(), {"x": [i * 0.25 for i in range(32)] * 2, "n": [3, 4]})

    def test_shards(self):
        self.random_models(2, size=2000)
        self.merge("--linear", "a.safetensors", "b.safetensors")
        whole = self.tensor_bytes()
        self.run_command("merge", "-o", "set.safetensors", "--linear", "--shard-size", "12kB", "a.safetensors", "b.safetensors")
        names = sorted(path.name for path in self.folder.glob("set*"))
        self.assertEqual(names, [f"set-0000{i}-of-00003.safetensors" for i in (1, 2, 3)] + ["set.safetensors.index.json"])
        parts = {}
        for name in names[:3]:
            parts.update(self.tensor_bytes(name))
        self.assertEqual(parts, whole)
        self.merge("-f", "--linear", "set.safetensors.index.json", "a.safetensors", "-w", "1,0")
        self.assertEqual(self.tensor_bytes(), whole)
        (self.folder / names[1]).unlink()
        _, err = self.merge("-f", "--linear", "set.safetensors.index.json", "a.safetensors", code=3)
        self.assertIn(names[1], err)

    # ---- wrong words and bad inputs

    def test_wrong_command_lines(self):
        self.random_models(3)
        a, b = "a.safetensors", "b.safetensors"
        before = self.folder_state()
        for words, said in (
            (["--linear"], "which models?"),
            ([a, b], "which method?"),
            (["--linear", "--slerp", a, b], "--linear and --slerp: a merge has one method"),
            (["--slerp", a, b, "c.safetensors"], "slerp wants two models, not 3"),
            (["--ties", a, b], "ties wants --base FILE"),
            (["--linear", "--base", a, b], "linear has no base; --base is for task, ties and dare"),
            (["--linear", "--density", "0.5", a, b], "linear has no density; that is for ties and dare"),
            (["--slerp", "-w", "1", a, b], "slerp has no weight"),
            (["--linear", "--seed", "1", a, b], "--seed is for dare"),
            (["--slerp", "--no-normalize", a, b], "slerp normalizes nothing; --[no-]normalize is for linear and ties"),
            (["--linear", "--no-rescale", a, b], "linear rescales nothing; --[no-]rescale is for dare"),
            (["--linear", "-w", "nan", a, b], '--weight: "nan" is no finite number'),
            (["--linear", "-w", "0.5,1e400", a, b], '--weight: "1e400" is no finite number'),
            (["--linear", "-w", "1,-1", a, b], "sum to 0"),
            (["--linear", "-w", "1,2,3", a, b], "--weight has 3 numbers for 2 models; give one for each, or one for all"),
            (["--linear", "-w", "c=1", a, b], '--weight: no model is called "c"'),
            (["--linear", "-w", "a=1,b=1,a.safetensors=2", a, b], "--weight: a.safetensors is there twice"),
            (["--linear", "-w", "0.3", "-w", "0.7", a, b], "both for everything; for one number each put commas between them"),
            (["--slerp", "--t", "0.3", "--t", "0.7", a, b], "both for everything; put GLOB: before"),
            (["--linear", "-w", ":1", a, b], 'no pattern before ":"'),
            (["--linear", "-w", "l9*:1", a, b], "l9*"),
            (["--linear", "-w", "l0.v:1", a, b], "l0.w"),
            (["--linear", "--dtype", "f31", a, b], 'unknown format "f31"'),
            (["--linear", "-o", "other.safetensors", a, b], "--output out.safetensors and --output other.safetensors: a merge has one"),
            (["--recipe", "r.yaml", "--recipe", "s.yaml"], "--recipe r.yaml and --recipe s.yaml: a merge has one"),
            (["--slerp", "--normalize", a, b], "slerp normalizes nothing"),
            (["--dare", "--base", a, "--normalize", b], "dare normalizes nothing"),
            (["--linear", "--rescale", a, b], "linear rescales nothing"),
            (["--linear", "--missing", "ignore", a, b], "--missing wants fail, available, copy or skip"),
            (["--linear", "--rows", "all", a, b], "--rows wants fail, common, lead or longest"),
            (["--linear", "--other", "x", a, b], "--other wants fail, copy or skip"),
            (["--dare", "--base", a, "--density", "0", b], "wants a density above 0 and up to 1"),
            (["--dare", "--base", a, "--density", "1.01", b], "wants a density above 0 and up to 1"),
            (["--slerp", "--t", "1.5", a, b], "wants a number from 0 to 1"),
            (["--dare", "--base", a, "--seed", "-3", b], "--seed wants a whole number"),
        ):
            with self.subTest(words):
                out, err = self.merge(*words, code=2)
                self.assertIn(said, err)
                self.assert_one_line(err)
                self.assertEqual(out, "")
        self.assertIn("where to?", self.run_command("merge", "--linear", a, b, code=2)[1])
        self.assertEqual(self.folder_state(), before)

    def test_a_pattern_that_matches_nothing_has_a_suggestion(self):
        self.model("a.safetensors", layer__0__w=[1], norm=[1])
        for pattern, said in (("lyaer.*", "did you mean 'layer.0.w'?"), ("layr.?.w", "did you mean 'layer.0.w'?"),
                              ("*.0.v", "did you mean 'layer.0.w'?"), ("qqqq*", "patterns use")):
            _, err = self.merge("--linear", "-w", f"{pattern}:1", "a.safetensors", "a.safetensors", code=2)
            self.assertIn(said, err)

    def test_inputs_that_are_not_there_or_not_whole(self):
        self.random_models(2)
        _, err = self.merge("--linear", "a.safetensors", "none.safetensors", "nope.safetensors", code=3)
        self.assertEqual(len(err.splitlines()), 2)
        self.assertIn("base.safetensors", self.merge("--task", "--base", "base.safetensors", "a.safetensors", code=3)[1])
        whole = (self.folder / "b.safetensors").read_bytes()
        (self.folder / "b.safetensors").write_bytes(whole[:-100])
        self.assertIn("the file ends", self.merge("--linear", "a.safetensors", "b.safetensors", code=3)[1])
        self.model("other.safetensors", q=[1])
        _, err = self.merge("--linear", "a.safetensors", "other.safetensors", code=2)
        self.assertIn("no tensor of the same name", err)
        self.assertFalse((self.folder / "out.safetensors").exists())

    def test_an_output_that_is_an_input(self):
        self.random_models(2)
        before = self.folder_state()
        os.link(self.folder / "a.safetensors", self.folder / "hard.safetensors")
        (self.folder / "soft.safetensors").symlink_to("b.safetensors")
        for output in ("a.safetensors", "./b.safetensors", "hard.safetensors", "soft.safetensors"):
            _, err = self.run_command("merge", "-f", "--linear", "-o", output, "a.safetensors", "b.safetensors", code=2)
            self.assert_one_line(err)
            self.assertIn("input", err)
        self.assertEqual({name: self.folder_state()[name] for name in before}, before)

    def test_an_output_that_is_the_recipe(self):
        self.random_models(2)
        (self.folder / "r.yaml").write_text("method: linear\nmodels: [a.safetensors, b.safetensors]\n")
        (self.folder / "soft.safetensors").symlink_to("r.yaml")
        self.merge("--recipe", "r.yaml")
        (self.folder / "set").mkdir()
        for name in "ab":
            (self.folder / "set" / f"{name}.safetensors").symlink_to(f"../{name}.safetensors")
        self.run_command("merge", "--recipe", "r.yaml", "-o", "set/m.safetensors", "--shard-size", "4kB")
        before = self.folder_state()
        for recipe, output in (("r.yaml", "soft.safetensors"), ("out.safetensors", "./out.safetensors"),
                               ("set/m.safetensors.index.json", "set/m.safetensors")):
            sizes = ["--shard-size", "4kB"] if "index" in recipe else []
            _, err = self.run_command("merge", "-f", "--recipe", recipe, "-o", output, *sizes, "a.safetensors", "b.safetensors",
                                      code=2)
            self.assert_one_line(err)
            self.assertIn("is the recipe", err)
        self.assertEqual(self.folder_state(), before)

    def test_outputs_that_cannot_be(self):
        self.random_models(2)
        models = ["--linear", "a.safetensors", "b.safetensors"]
        (self.folder / "folder").mkdir()
        (self.folder / "d.safetensors").mkdir()
        names = "FILE.safetensors or FILE.gguf"
        for output, code, said in (("none/out.safetensors", 3, "none"), ("folder", 2, names), ("d.safetensors", 2, "folder"),
                                   ("out.onnx", 2, names), ("folder/", 2, names), ("/dev/null", 2, names),
                                   ("out.safetensors/x.gguf", 3, "out.safetensors")):
            _, err = self.run_command("merge", "-o", output, *models, code=code)
            self.assert_one_line(err)
            self.assertIn(said, err)
        self.assertEqual(list((self.folder / "folder").iterdir()), [])

    def test_another_file_system(self):
        self.random_models(2)
        shared = pathlib.Path("/dev/shm")
        if not os.access(shared, os.W_OK) or shared.stat().st_dev == self.folder.stat().st_dev:
            self.skipTest("no second file system")
        target = shared / f"tm-merge-{os.getpid()}.safetensors"
        self.addCleanup(target.unlink)
        self.run_command("merge", "--linear", "-o", target, "a.safetensors", "b.safetensors")
        (self.folder / "out.safetensors").symlink_to(target)
        self.merge("-f", "--linear", "-w", "1,0", "a.safetensors", "b.safetensors")
        self.assertTrue((self.folder / "out.safetensors").is_symlink())
        self.assertEqual(self.tensor_bytes(), self.tensor_bytes("a.safetensors"))

    def test_no_room(self):
        self.large_models(1)
        before = self.folder_state()
        done = subprocess.run([harness.COMMAND, "merge", "--linear", "-o", "out.safetensors", "a.safetensors", "b.safetensors"],
                              cwd=self.folder, env=self.environment(), stdin=subprocess.DEVNULL, capture_output=True, text=True,
                              timeout=120, preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (100000, 100000)))
        self.assertEqual(done.returncode, 3, done.stderr)
        self.assert_one_line(done.stderr)
        self.assertEqual(self.folder_state(), before)

    def test_memory(self):
        self.large_models(4)
        self.merge("--linear", "a.safetensors", "b.safetensors", "--max-memory", "64M")
        whole = self.tensor_bytes()
        _, err = self.merge("-f", "--linear", "a.safetensors", "b.safetensors", "--max-memory", "1M", code=1)
        self.assertIn("memory", err)
        self.assertEqual(self.tensor_bytes(), whole)

    def test_memory_of_many_tensors(self):
        one = ("F32", [], struct.pack("<f", 1))
        tensors = {f"model.layers.{i}.weight": one for i in range(8000)}
        names = [self.safetensors(f"{name}.safetensors", tensors).name for name in "ab"]
        told = json.loads(self.merge("--linear", *names, "--dry-run", "--json")[0])["plan"]["memory_bytes"]
        self.assertGreater(told, 5_000_000 + 8000 * 700)
        self.assertLess(told, 5_500_000 + 8000 * 1500)
        self.merge("--linear", *names, "--max-memory", str(told))
        for allowed, expected in ((told // 3, r"no memory to plan a merge, which takes about [\d.]+ MB"),
                                  (1 << 20, r"a.safetensors: no memory for its header of \d+ bytes, which")):
            _, err = self.merge("-f", "--linear", *names, "--max-memory", str(allowed), code=3)
            self.assertRegex(err, expected)
            self.assertRegex(err, r"; [\d.]+ MB are allowed in all \(--max-memory\)")

    # ---- stopped

    def large_models(self, megabytes):
        for name, byte in (("a", 0x3C), ("b", 0x3D)):
            tensors = {f"l{i}": ("F32", (1 << 18,), bytes([i, i, byte, byte]) * (1 << 18)) for i in range(megabytes)}
            self.safetensors(f"{name}.safetensors", tensors)

    def start(self, *arguments):
        words = [harness.COMMAND, "merge", "-o", "out.safetensors", "--linear", *arguments, "a.safetensors", "b.safetensors"]
        return subprocess.Popen(words, cwd=self.folder, env=self.environment(), stdin=subprocess.DEVNULL,
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE)

    def parts(self):
        return [path.name for path in self.folder.iterdir() if path.name.endswith((".part", ".whole"))]

    def start_writing(self, *arguments):
        """Returns when a file of the result has begun to be."""
        for name in self.parts():
            (self.folder / name).unlink()
        process = self.start(*arguments)
        while process.poll() is None and not self.parts():
            time.sleep(0.001)
        return process

    def stop_at_random(self, number, rounds, megabytes):
        """Whatever the moment, the old result is there whole, or the new one."""
        self.large_models(megabytes)
        begun = time.monotonic()
        self.merge("--linear", "a.safetensors", "b.safetensors")
        seconds = time.monotonic() - begun
        new = hashlib.sha256((self.folder / "out.safetensors").read_bytes()).hexdigest()
        old = hashlib.sha256(b"old").hexdigest()
        draw = random.Random(3)
        moment = amid_count = 0
        while moment < rounds or (amid_count == 0 and moment < 100):        # under load one may come too late for the files
            (self.folder / "out.safetensors").write_bytes(b"old")
            waits = moment % 2 == 0
            process = self.start_writing("--force") if waits else self.start("--force")
            if not waits:
                time.sleep(draw.random() * 1.1 * seconds)
            process.send_signal(number)
            _, err = process.communicate(timeout=120)
            found = hashlib.sha256((self.folder / "out.safetensors").read_bytes()).hexdigest()
            self.assertIn(found, (old, new))
            amid_count += waits and found == old
            moment += 1
            if number == signal.SIGINT:
                self.assertEqual(self.parts(), [])
                # Before the job and behind it a signal ends the process as it ends any.
                possible = ((0, new), (130, old), (-signal.SIGINT, old), (-signal.SIGINT, new))
                self.assertIn((process.returncode, found), possible, err)
        self.assertNotEqual(amid_count, 0, "no signal fell while files were being written")
        self.merge("--linear", "--force", "a.safetensors", "b.safetensors")
        self.assertEqual(self.parts(), [])

    def test_interrupted(self):
        self.stop_at_random(signal.SIGINT, 200 if NIGHTLY else 4, 8)

    def test_killed(self):
        self.stop_at_random(signal.SIGKILL, 200 if NIGHTLY else 4, 8)

    def test_interrupted_in_the_middle(self):
        self.large_models(24)
        process = self.start_writing()
        process.send_signal(signal.SIGSTOP)
        process.send_signal(signal.SIGINT)
        process.send_signal(signal.SIGCONT)
        _, err = process.communicate(timeout=120)
        if process.returncode == 0:
            self.skipTest("the merge was faster than the signal")
        self.assertEqual(process.returncode, 130)
        self.assertIn(b"interrupted; nothing was written", err)
        self.assertEqual(sorted(path.name for path in self.folder.iterdir() if path.is_file()), ["a.safetensors", "b.safetensors"])

    def test_an_input_that_changes_meanwhile(self):
        self.large_models(24)
        self.merge("--linear", "a.safetensors", "b.safetensors")
        unchanged = self.tensor_bytes()
        (self.folder / "out.safetensors").unlink()
        process = self.start_writing()
        process.send_signal(signal.SIGSTOP)
        with open(self.folder / "b.safetensors", "r+b") as file:
            file.seek(-4, os.SEEK_END)
            file.write(b"\1\2\3\4")
        process.send_signal(signal.SIGCONT)
        _, err = process.communicate(timeout=120)
        if process.returncode == 0:
            self.assertEqual(self.tensor_bytes(), unchanged)
            self.skipTest("all was read before the change")
        self.assertEqual(process.returncode, 3, err)
        self.assertIn(b"changed", err)
        self.assertFalse((self.folder / "out.safetensors").exists())
        self.assertEqual(self.parts(), [])


if __name__ == "__main__":
    harness.main()
