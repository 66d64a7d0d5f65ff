# SPDX-License-Identifier: Apache-2.0
"""merge: whatever is left out is named with its owner, names and defaults are what they are said to be, records repeat a merge."""

import json
import os
import math
import random
import shutil
import struct

import harness

CODES = {"F32": "f", "F64": "d", "F16": "e", "I64": "q", "I32": "i", "U8": "B"}


def packed(dtype, values):
    if dtype == "BF16":
        return b"".join(struct.pack("<f", value)[2:] for value in values)       # of numbers that bf16 holds
    return struct.pack(f"<{len(values)}{CODES[dtype]}", *values)


class MergeTold(harness.CommandTest):
    def model(self, name, **tensors):
        """Writes a file from {name: values}, or {name: (dtype, values)}; the extent is their number."""
        content = {}
        for key, value in tensors.items():
            dtype, values = value if isinstance(value, tuple) else ("F32", value)
            content[key] = (dtype, (len(values),), packed(dtype, values))
        (self.folder / name).parent.mkdir(parents=True, exist_ok=True)
        return self.safetensors(name, content)

    def values(self, name="out.safetensors"):
        data = (self.folder / name).read_bytes()
        end = 8 + struct.unpack("<Q", data[:8])[0]
        header = json.loads(data[8:end])
        header.pop("__metadata__", None)
        found = {}
        for key, entry in header.items():
            begin, stop = (end + offset for offset in entry["data_offsets"])
            size = harness.SIZES[entry["dtype"]]
            found[key] = list(struct.unpack(f"<{(stop - begin) // size}{CODES[entry['dtype']]}", data[begin:stop]))
        return found

    def merge(self, *arguments, code=0, **variables):
        return self.run_command("merge", "-o", "out.safetensors", *arguments, code=code, **variables)

    def messages(self, *arguments):
        document = self.json_of("merge", "-n", "-o", "new.safetensors", *arguments)
        return {row["name"]: row["message"] for row in document["plan"]["rows"]}

    # ---- nothing is left out unsaid

    def test_whose_tensor_is_left_out_is_named(self):
        self.model("e.safetensors", e=[1, 2])
        for i, name in enumerate("abc"):
            self.model(f"{name}.safetensors", e=[i, 2], ao=[i, i])
        self.model("d.safetensors", e=[4, 4])
        files = [f"{name}.safetensors" for name in "abcd"]
        for method in ("--task", "--ties", "--dare"):
            for policy in ("available", "copy"):
                told = self.messages(method, "--missing", policy, "--base", "e.safetensors", *files)
                self.assertRegex(told["ao"], "copied from a.safetensors, and not from b.safetensors, c.safetensors")
        told = self.messages("--linear", "--missing", "copy", "d.safetensors", *files[1:3])
        self.assertEqual(told["ao"], "not in d.safetensors; copied from b.safetensors, and not from c.safetensors")
        told = self.messages("--task", "--missing", "copy", "--base", "a.safetensors", *files[1:])
        self.assertEqual(told["ao"], "not in d.safetensors; copied from the base, and not from b.safetensors, c.safetensors")
        told = self.messages("--linear", "--missing", "copy", "a.safetensors", "d.safetensors", "a.safetensors")
        self.assertEqual(told["ao"], "not in d.safetensors; copied from a.safetensors")

    def test_all_that_count_nothing_are_named(self):
        for name in "abc":
            self.model(f"{name}.safetensors", w=[1, 2], **({"only": [3]} if name != "a" else {}))
        files = [f"{name}.safetensors" for name in "abc"]
        self.assertEqual(self.messages("--linear", "-w", "1,0,0", *files)["only"],
                         "only in b.safetensors, c.safetensors, which take no part; left out")
        self.assertEqual(self.messages("--linear", "-w", "1,1e-12,1e-12", "--missing", "skip", *files)["w"],
                         "the weight of b.safetensors, c.safetensors is too small beside the others to count")
        told = self.messages("--linear", "-w", "1,1,1e-12", "--missing", "available", *files[1:2], files[0], files[2])
        self.assertRegex(told["only"], "not in a.safetensors; made of those that have it; the weight of c.safetensors is too small")

    def test_parts_of_a_model_are_joined(self):
        self.model("a.safetensors", x=[1, 2])
        self.model("b.safetensors", y=[3])
        self.model("e.safetensors", z=[4])
        for words in (["--linear"], ["--slerp"], ["--ties", "--base", "e.safetensors"]):
            for policy in ("copy", "available"):
                words = [*words, "--missing", policy, "a.safetensors", "b.safetensors"]
                self.merge("-f", *words)
                self.assertEqual(self.values(), {**({"z": [4]} if "--ties" in words else {}), "x": [1, 2], "y": [3]})
                words = words[:-4]
        for policy in ("fail", "skip"):
            _, err = self.merge("--linear", "-f", "--missing", policy, "a.safetensors", "b.safetensors", code=2)
            self.assertRegex(err, "no tensor of the same name: .*--missing copy")
        self.model("c.safetensors")
        _, err = self.merge("-f", "--linear", "--missing", "copy", "a.safetensors", "c.safetensors", code=2)
        self.assertIn("have no tensor of the same name; one of them has no tensors", err)

    def test_types_that_are_left_out_are_named(self):
        for i, name in enumerate("abc"):
            self.model(f"{name}.safetensors", w=[1, 2], k=("I64", [i, 1]))
        told = self.messages("--linear", "--other", "copy", *(f"{name}.safetensors" for name in "abc"))
        self.assertRegex(told["k"], "not equal in all; copied from a.safetensors, and not from b.safetensors, c.safetensors")

    # ---- records and names

    def test_a_record_of_shards_gives_the_same_files(self):
        for i, name in enumerate("ab"):
            self.model(f"{name}.safetensors", x=[i] * 100, y=[1, i], z=[2.0] * 90)
        words = ["--linear", "a.safetensors", "b.safetensors"]
        for size in ("400", "1G"):
            for folder in ("one", "two"):
                shutil.rmtree(self.folder / folder, ignore_errors=True)
            for folder in ("one", "two"):
                (self.folder / folder).mkdir()
                for name in "ab":
                    shutil.copy(self.folder / f"{name}.safetensors", self.folder / folder)
            self.run_command("merge", "-o", "one/out.safetensors", "--shard-size", size, *words)
            first = self.contents("one")
            self.assertEqual(len([name for name in first if name.startswith("out")]) > 2, size == "400")
            recipe = "one/out.safetensors.index.json" if (self.folder / "one/out.safetensors.index.json").is_file() else "one/out.safetensors"
            self.run_command("merge", "--recipe", recipe, "-o", "two/out.safetensors")
            self.assertEqual(self.contents("two"), first)
            self.run_command("merge", "-f", "--recipe", recipe, "-o", "one.gguf")
            self.run_command("merge", "-f", "--recipe", recipe, "--shard-size", "0", "-o", "plain.safetensors")
            self.assertEqual(len(list(self.folder.glob("plain*"))), 1)

    def contents(self, folder):
        return {path.name: path.read_bytes() for path in (self.folder / folder).iterdir()}

    def test_a_record_of_names_that_are_no_utf8_is_a_recipe(self):
        for name, values in (("x", [1, 2]), ("y", [3, 5]), ("z", [8, 4])):
            self.model(f"{name}.safetensors", x=values)
        odd = [os.fsencode(self.folder) + b"/" + name for name in (b"\xff\xc3.safetensors", b"b\x80.safetensors")]
        (self.folder / "x.safetensors").rename(os.fsdecode(odd[0]))
        (self.folder / "y.safetensors").rename(os.fsdecode(odd[1]))
        for words in (["--linear", os.fsdecode(os.path.basename(odd[0])), "z.safetensors"],
                      ["--task", "--base", os.fsdecode(os.path.basename(odd[1])), "z.safetensors"]):
            self.merge("-f", *words)
            first = (self.folder / "out.safetensors").read_bytes()
            self.run_command("merge", "-f", "--recipe", "out.safetensors", "-o", "again.safetensors")
            self.assertEqual((self.folder / "again.safetensors").read_bytes(), first)
        # a file of the written name is the one that is meant
        (self.folder / "z.safetensors").rename(self.folder / "b\\x80.safetensors")
        self.model("z.safetensors", x=[8, 4])
        _, err = self.run_command("merge", "-f", "--recipe", "out.safetensors", "-o", "again.safetensors", code=1)
        self.assertIn("is not what the recipe has the hash of", err)

    def test_a_number_that_is_a_name_tells_nothing(self):
        for name, value in (("1", 1), ("2", 3), ("sub/7", 5), ("3", 7)):
            self.model(f"{name}.safetensors", x=[value])
        files = ["2.safetensors", "1.safetensors"]
        for words in (["-w", "1=0.9,2=0.1"], ["-w", "x:2=0.5"], ["--density", "1=0.5"]):
            method = ["--linear"] if words[0] == "-w" else ["--ties", "--base", "sub/7.safetensors"]
            _, err = self.merge(*method, *words, *files, code=2)
            self.assert_one_line(err)
            self.assertRegex(err, 'is what model ., ..safetensors, is called, and the place of another, ..safetensors')
        (self.folder / "r.yaml").write_text("method: linear\nmodels: [2.safetensors, 1.safetensors]\nweight: {1: 0.9}\n")
        self.assertIn("the place of another", self.merge("--recipe", "r.yaml", code=2)[1])
        self.merge("--linear", "-w", "1.safetensors=3,2.safetensors=1", *files)
        self.assertEqual(self.values(), {"x": [1.5]})
        self.merge("--linear", "-f", "-w", "1=3,2=1", *reversed(files))       # its own place
        self.assertEqual(self.values(), {"x": [1.5]})
        self.merge("--linear", "-f", "-w", "7=3,1=1", "1.safetensors", "sub/7.safetensors")       # no place has that number
        self.assertEqual(self.values(), {"x": [4]})
        self.merge("--linear", "-f", "-w", "1=3,2=1", "3.safetensors", "sub/7.safetensors")
        self.assertEqual(self.values(), {"x": [6.5]})

    def test_shards_of_gguf_are_a_wrong_word(self):
        self.model("a.safetensors", x=[1])
        (self.folder / "r.yaml").write_text("method: linear\nmodels: [a.safetensors]\nshard_size: 5MB\noutput: o.gguf\n")
        for words in (["--linear", "--shard-size", "1", "-o", "o.gguf", "a.safetensors"], ["--recipe", "r.yaml"]):
            out, err = self.run_command("merge", *words, code=2)
            self.assertEqual(out, "")
            self.assert_one_line(err)
            self.assertIn("o.gguf is to be written in one file; --shard-size is for safetensors", err)

    def test_a_whole_is_not_named_as_a_part(self):
        self.model("a.safetensors", x=[1] * 100, y=[2] * 100)
        (self.folder / "l.safetensors").symlink_to("x-00001-of-00002.safetensors")
        for name in ("x-00001-of-00002.safetensors", "x-00002-of-00002.gguf", "l.safetensors", "x-00003-of-00002.safetensors",
                     "x-00003-of-00002.gguf"):
            out, err = self.run_command("merge", "-o", name, "--linear", "a.safetensors", code=2)
            self.assertEqual(out, "")
            self.assertRegex(err, "x-0000.-of-00002.*: by its name part . of 2, but it would be the whole checkpoint")
            self.assertFalse((self.folder / name).exists())
        for number in (1, 3):
            name = f"x-0000{number}-of-00002.safetensors"
            err = self.run_command("merge", "-o", name, "--linear", "--shard-size", "500", "a.safetensors", code=2)[1]
            self.assertIn(f"by its name part {number} of 2, but it would be a set, whose parts get such names", err)
        for name, words in (("y-00001-of-00001.safetensors", []), ("x.safetensors", ["--shard-size", "500"])):
            (self.folder / name[:1]).mkdir()
            self.run_command("merge", "-o", f"{name[:1]}/{name}", "--linear", *words, "a.safetensors")
            self.run_command("check", *(self.folder / name[:1]).iterdir())

    # ---- angles and figures

    def slerp(self, *words):
        return self.json_of("merge", "-f", "-o", "out.safetensors", "--slerp", *words, "a.safetensors", "b.safetensors")

    def test_an_arc_has_no_size(self):
        """Whatever power of two tensors are scaled by, so is what is between them, also where squares leave f64."""
        draw = random.Random(7)
        count = 40000           # more than one unit
        a, b = ([draw.gauss(0, 1) for _ in range(count)] for _ in range(2))
        for first, second in ((0, 0), (650, 650), (-650, -650), (1000, 1000), (-990, -990), (600, -600), (-700, 0), (0, 520)):
            self.model("a.safetensors", w=("F64", [math.ldexp(x, first) for x in a]))
            self.model("b.safetensors", w=("F64", [math.ldexp(x, second) for x in b]))
            row = self.slerp("--t", "0.25")["rows"][0]
            weights = row["weights"]
            self.assertRegex(self.slerp("--t", "0.25", "--max-memory", "8M")["rows"][0]["action"], "merge")
            if first == second == 0:
                expected, arc = self.values()["w"], row
            self.assertEqual((row["angle"], weights), (arc["angle"], arc["weights"]), (first, second))
            if first == second:
                self.assertEqual([math.ldexp(x, -first) for x in self.values()["w"]], expected)

    def test_the_midpoint_of_huge_and_tiny_arcs(self):
        for size in (1e200, 1e-200, 1e-310):
            self.model("a.safetensors", w=("F64", [size, size]), z=("F64", [0, 0]))
            self.model("b.safetensors", w=("F64", [size, -size]), z=("F64", [size, 0]))
            document = self.slerp()
            row = document["rows"][0]
            self.assertEqual(document["bytes"], document["plan"]["read_bytes"])
            self.assertAlmostEqual(row["angle"], math.pi / 2, delta=1e-15)
            self.assertAlmostEqual(self.values()["w"][0] / size, math.sqrt(2), delta=1e-12)
            self.assertEqual(self.values()["z"], [size / 2, 0])
            self.assertIsNone(row["change_rel"])
            self.assertGreater(row["change_max"], 0)

    def test_angles_are_found_in_f64(self):
        """Also of formats whose sums are short where only a difference is looked at."""
        count = 40000
        for left, right in (("F16", "F16"), ("BF16", "BF16"), ("F16", "F32"), ("F16", "F64")):
            draw = random.Random(3)
            a, b = ([draw.choice((-1, 1)) * draw.randrange(128, 256) << draw.randrange(4) for _ in range(count)] for _ in range(2))
            self.model("a.safetensors", w=(left, a))
            self.model("b.safetensors", w=(right, b))
            dot, squares = sum(x * y for x, y in zip(a, b)), [sum(x * x for x in side) for side in (a, b)]
            angle = math.acos(dot / (math.sqrt(squares[0]) * math.sqrt(squares[1])))
            written = set()
            for words in ([], ["--max-memory", "8M"], ["--device", "reference"], ["--threads", "1"]):
                self.assertAlmostEqual(self.slerp(*words)["rows"][0]["angle"], angle, delta=1e-15)
                written.add((self.folder / "out.safetensors").read_bytes())
            self.assertEqual(len(written), 1)

    def test_defaults_are_those_that_are_told(self):
        self.model("e.safetensors", x=[0] * 8)
        self.model("a.safetensors", x=[1] * 8)
        self.model("b.safetensors", x=[4] * 8)
        models = ["a.safetensors", "b.safetensors"]
        based = ["--base", "e.safetensors", *models]
        for words, said in ((["--linear", "-w", "a=2", *models], ["--linear", "-w", "2,1", *models]),
                            (["--linear", *models], ["--linear", "-w", "1", *models]),
                            (["--ties", *based], ["--ties", "--density", "1", "--scale", "1", *based]),
                            (["--dare", "--density", "a=0.5", *based], ["--dare", "--density", "0.5,1", "--seed", "0", *based]),
                            (["--slerp", *models], ["--slerp", "--t", "0.5", *models])):
            found = []
            for arguments in (words, said):
                self.merge("-f", *arguments)
                found.append(self.values())
            self.assertEqual(*found)
        self.assertIn("a model that is given none counts 1", " ".join(self.run_command("merge", "--help")[0].split()))

    # ---- messages

    def test_wrong_words_are_named(self):
        self.model("a.safetensors", x=[1])
        self.model("b.safetensors", x=[2])
        models = ["a.safetensors", "b.safetensors"]
        many = ",".join(["1"] * 14)
        (self.folder / "r.yaml").write_text("method: linear\nmodels: [a.safetensors, b.safetensors]\nweight: [1]\n")
        for words, said in (
            (["-w", many], "--weight has 14 numbers for 2 models; give one for each"),
            (["-w", many + ",x"], '--weight: "x" is no finite number'),
            (["--dtype", "i8"], "a dtype of i8; results can be of any float format, or of a block format that can be written: q4_0 or q8_0"),
            (["--dtype", "x:bool"], "a dtype of bool; .*for 'x'"),
            (["--threads", "99999999999"], "--threads wants a whole number up to 4294967295, not \"99999999999\""),
            (["--threads", "99999999999999999999999"], "--threads wants a whole number up to 4294967295"),
            (["--recipe", "r.yaml"], "weight has 1 number for 2 models"),
        ):
            method = [] if "--recipe" in words else ["--linear", *models]
            _, err = self.merge(*words, *method, code=2)
            self.assert_one_line(err)
            self.assertRegex(err, said)
        for name, meant in (("float16", "f16"), ("FP32", "f32"), ("torch.bfloat16", "bf16"), ("half", "f16"), ("double", "f64"), ("int8", "i8"),
                            ("float", "f32"), ("f166", "f16")):
            _, err = self.merge("--linear", "--dtype", name, *models, code=2)
            self.assertIn(f'unknown format "{name}"; did you mean "{meant}"?', err)
            _, err = self.run_command("explain", "add", "--dtype", name, "--shape", "4", code=2)
            self.assertIn(f'did you mean "{meant}"?', err)

    def test_what_to_do_is_in_flags(self):
        for name in "ab":
            self.model(f"{name}.safetensors", x=[1, 2])
        _, err = self.merge("--linear", "-w", "1,-1", "a.safetensors", "b.safetensors", code=2)
        self.assertIn("keep them as they are (--no-normalize), or give others", err)
        _, err = self.merge("--dare", "--base", "a.safetensors", "--seed", str(2 ** 64), "b.safetensors", code=2)
        self.assertIn(f"--seed wants a whole number up to {2 ** 64 - 1}, not", err)

    def test_sizes_are_in_units(self):
        self.model("a.safetensors", x=[1] * 100000)
        for limit, code, said in (("200k", 3, r"takes about [\d.]+ MB; 204 kB are allowed in all"),
                                  ("700k", 1, r"takes at least [\d.]+ MB in all, and 716 kB are allowed")):
            _, err = self.merge("--linear", "-n", "--max-memory", limit, "a.safetensors", "a.safetensors", code=code)
            self.assertRegex(err, said)
            self.assertNotRegex(err, r"\d{5}")

    def test_what_is_replaced_is_told_of_where_it_is(self):
        try:
            self.safetensors("a.safetensors", {"x": ("F32", (1 << 41,), None)})         # 8 TB of nothing
        except OSError as error:
            self.skipTest(f"no file of 8 TB here: {error}")
        for _ in range(2):
            _, err = self.merge("--linear", "-n", "a.safetensors", "a.safetensors", code=1)
            line = [line for line in err.splitlines() if "disk:" in line]
            if not line:
                self.skipTest("a disk of more than 8 TB")
            self.assertRegex(line[0], r"disk: 8\.80 TB are to be written, and [\d.]+ [kMGT]B are free")
            self.assertEqual("what is replaced goes last" in line[0], (self.folder / "out.safetensors").exists())
            self.model("out.safetensors", x=[1])

    def test_what_lies_beside_the_recipe_is_not_the_recipe(self):
        self.model("set/a.safetensors", x=[1] * 100, y=[2] * 100)
        words = ["--linear", "a.safetensors"]
        self.run_command("merge", "-o", "set/m.safetensors", "--linear", "--shard-size", "500", "set/a.safetensors")
        self.model("set/other.safetensors", x=[3])
        before = (self.folder / "set/m.safetensors.index.json").read_bytes()
        for recipe in ("set", "set/", "set/m.safetensors.index.json"):
            self.run_command("merge", "--recipe", recipe, "-f", "--shard-size", "0", "-o", "set/other.safetensors")
            _, err = self.run_command("merge", "--recipe", recipe, "-f", "-o", "set/m.safetensors", code=2)
            self.assertIn("is the recipe; write the result elsewhere", err)
        (self.folder / "set/l.safetensors").symlink_to("m-00001-of-00002.safetensors")
        _, err = self.run_command("merge", "--recipe", "set", "-f", "--shard-size", "0", "-o", "set/l.safetensors", code=2)
        self.assertEqual((self.folder / "set/m.safetensors.index.json").read_bytes(), before)


if __name__ == "__main__":
    harness.main()
