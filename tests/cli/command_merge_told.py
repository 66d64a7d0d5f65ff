# SPDX-License-Identifier: Apache-2.0
"""merge: whatever is left out is named with its owner, names and defaults are what they are said to be, records repeat a merge."""

import json
import struct

import harness

CODES = {"F32": "f", "F64": "d", "F16": "e", "I64": "q", "I32": "i", "U8": "B"}


class MergeTold(harness.CommandTest):
    def model(self, name, **tensors):
        """Writes a file from {name: values}, or {name: (dtype, values)}; the extent is their number."""
        content = {}
        for key, value in tensors.items():
            dtype, values = value if isinstance(value, tuple) else ("F32", value)
            content[key] = (dtype, (len(values),), struct.pack(f"<{len(values)}{CODES[dtype]}", *values))
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
                self.assertRegex(told["ao"], "copied from a.safetensors, and left out of b.safetensors, c.safetensors")
        told = self.messages("--linear", "--missing", "copy", "d.safetensors", *files[1:3])
        self.assertEqual(told["ao"], "not in d.safetensors; copied from b.safetensors, and left out of c.safetensors")
        told = self.messages("--task", "--missing", "copy", "--base", "a.safetensors", *files[1:])
        self.assertEqual(told["ao"], "not in d.safetensors; copied from the base, and left out of b.safetensors, c.safetensors")
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
        self.assertRegex(told["only"], "not in a.safetensors; made of the others; the weight of c.safetensors is too small")

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
        self.merge("-f", "--linear", "--missing", "copy", "a.safetensors", "c.safetensors")
        self.assertEqual(self.values(), {"x": [1, 2]})

    def test_types_that_are_left_out_are_named(self):
        for i, name in enumerate("abc"):
            self.model(f"{name}.safetensors", w=[1, 2], k=("I64", [i, 1]))
        told = self.messages("--linear", "--other", "copy", *(f"{name}.safetensors" for name in "abc"))
        self.assertRegex(told["k"], "not equal in all; copied from a.safetensors, and left out of b.safetensors, c.safetensors")


if __name__ == "__main__":
    harness.main()
