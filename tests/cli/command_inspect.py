# SPDX-License-Identifier: Apache-2.0
"""inspect: real files, filters, widths, truncated and hostile ones."""

import json
import re
import struct

import harness


class Inspect(harness.CommandTest):
    def test_real_files(self):
        for parts in (
            ("fixtures", "gguf", "multiple.gguf"),
            ("fixtures", "gguf", "single_v2.gguf"),
            ("fixtures", "gguf", "empty.gguf"),
            ("fixtures", "safetensors", "multiple.safetensors"),
            ("fixtures", "safetensors", "empty.safetensors"),
            ("gguf-vocab", "ggml-vocab-bert-bge.gguf"),
            ("silero-vad", "silero_vad_16k.safetensors"),
        ):
            path = self.data_file(*parts)
            document = self.json_of("inspect", path)
            self.assertEqual(len(document["tensors"]), document["tensor_count"])
            out = self.run_command("inspect", path)[0]
            for tensor in document["tensors"]:
                self.assertIn(tensor["name"], out)
                self.assertLessEqual(tensor["offset"] + tensor["bytes"], document["file_bytes"])

    def test_a_type_of_unknown_size(self):
        name = b"future.weight"
        tensor = struct.pack("<Q", len(name)) + name + struct.pack("<IQIQ", 1, 64, 777, 0)
        head = b"GGUF" + struct.pack("<IQQ", 3, 1, 0) + tensor
        path = self.folder / "future.gguf"
        path.write_bytes(head.ljust(-(-len(head) // 32) * 32, b"\0") + bytes(64))
        document = self.json_of("inspect", path)
        self.assertEqual((document["tensors"][0]["count"], document["tensors"][0]["bytes"]), (64, None))
        self.assertNotIn(" 0 B", self.run_command("inspect", path)[0])

    def test_filters(self):
        model = self.small_model()
        names = [
            tensor["name"]
            for tensor in self.json_of("inspect", model, "--tensor", "layers.*", "--exclude", "*bias")["tensors"]
        ]
        self.assertEqual(names, ["layers.0.weight"])
        names = [
            tensor["name"] for tensor in self.json_of("inspect", model, "--sort", "bytes", "--top", "2")["tensors"]
        ]
        self.assertEqual(names, ["layers.0.weight", "layers.0.bias"])
        err = self.run_command("inspect", model, "--tensor", "layers.0.wieght", code=2)[1]
        self.assertIn('did you mean "layers.0.weight"?', err)
        self.assertIn(
            'unknown column "byte"; did you mean "bytes"?',
            self.run_command("inspect", model, "--sort", "byte", code=2)[1],
        )
        self.assertNotIn("layers", self.run_command("inspect", model, "--metadata-only")[0])

    def test_width(self):
        model = self.safetensors(
            "wide.safetensors",
            {
                f"model.layers.{i}.a_rather_long_name_of_a_block.self_attention.projection.weight": (
                    "F32",
                    (3, 4),
                    None,
                )
                for i in range(3)
            },
            {"format": "x" * 300},
        )
        for width in (40, 80, 200):
            for arguments in (["inspect", model], ["stats", model]):
                out = self.run_command(*arguments, COLUMNS=str(width))[0]
                table = [
                    line
                    for line in out.splitlines()
                    if re.search(r"f32|dtype|format", line) and str(self.folder) not in line
                ]
                self.assertTrue(table)
                self.assertLessEqual(max(map(len, table)), width)
        self.assertIn("...", self.run_command("inspect", model, COLUMNS="60")[0])
        self.assertIn(
            "a_rather_long_name_of_a_block.self_attention.projection", self.run_command("inspect", model)[0]
        )
        self.assertIn(
            "a_rather_long_name_of_a_block.self_attention.projection",
            self.run_command("inspect", model, "--wide", COLUMNS="40")[0],
        )

    def test_control_characters_are_escaped(self):
        name = "evil\x1b]0;owned\x07\n\r\u202etxt\\\u009b"
        path = self.safetensors("evil.safetensors", {name: ("U8", (1,), b"x")}, {"key\x1b[2J": "value\x1b[31m"})
        for arguments in (["inspect", path], ["stats", path], ["stats", path, "--tensor", "\x1b[31mnothing"]):
            out, err = self.run_command(*arguments, code=2 if "--tensor" in arguments else 0)
            self.assertFalse(re.search(r"[\x00-\x09\x0b-\x1f\x7f-\x9f\u202e]", out + err), (out, err))
        self.assertIn(r"evil\x1b]0;owned\x07\n\r\u202etxt\\", self.run_command("inspect", path, "--wide")[0])

    def test_truncated_files_are_listed(self):
        path = self.safetensors("cut.safetensors", {f"t{i}": ("F32", (10,), bytes(40)) for i in range(4)})
        whole = path.read_bytes()
        path.write_bytes(whole[:-60])
        out, err = self.run_command("inspect", path, "--json", code=3)
        document = json.loads(out)
        self.assertEqual(
            [tensor["state"] for tensor in document["tensors"]], ["whole", "whole", "incomplete", "incomplete"]
        )
        self.assertEqual(document["incomplete_count"], 2)
        self.assert_one_line(err)
        for word in ("truncated", "2 of 4", "t2"):
            self.assertIn(word, err)
        self.assertIn("incomplete", self.run_command("inspect", path, code=3)[0])
        self.run_command("stats", path, code=3)

    def test_hostile_files(self):
        def header(text, size=None, data=b""):
            text = text.encode() if isinstance(text, str) else text
            return struct.pack("<Q", len(text) if size is None else size) + text + data

        one = '{"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}}'
        files = {
            "empty": b"",
            "zero_header": header("", 0),
            "short": b"\x01\x02",
            "huge_header": header("{}", 1 << 40),
            "no_json": header("{]"),
            "beyond": header(one, data=b"12"),
            "lfs": b"version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 1\n",
            "html": b"<!DOCTYPE html><html></html>",
            "zip": b"PK\x03\x04" + bytes(40),
            "pickle": b"\x80\x02}q\x00.",
            "bad_shape": header(one.replace("[1]", "[2]"), data=b"1234"),
            "overlap": header(
                '{"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},"b":{"dtype":"F32","shape":[1],"data_offsets":[2,6]}}',
                data=bytes(6),
            ),
            "duplicate": header(
                '{"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},"a":{"dtype":"F32","shape":[1],"data_offsets":[4,8]}}',
                data=bytes(8),
            ),
            "overflow": header(
                '{"a":{"dtype":"F32","shape":[4294967296,4294967296],"data_offsets":[0,4]}}', data=bytes(4)
            ),
            "gguf_counts": b"GGUF" + struct.pack("<IQQ", 3, 1 << 60, 1 << 60),
            "gguf_short": b"GGUF" + struct.pack("<I", 3),
        }
        for name, data in files.items():
            path = self.folder / (name + ".safetensors")
            path.write_bytes(data)
            for command in ("stats", "inspect"):
                if (command, name) == ("inspect", "beyond"):
                    continue
                err = self.run_command(command, path, code=3)[1]
                self.assert_one_line(err)
                self.assertIn(path.name, err)

    def test_truncation_at_every_byte(self):
        whole = self.small_model().read_bytes()
        for length in range(0, len(whole), 7):
            path = self.folder / "cut.safetensors"
            path.write_bytes(whole[:length])
            self.assert_one_line(self.run_command("inspect", path, code=3)[1])

    def test_what_is_no_file(self):
        (self.folder / "folder").mkdir()
        for path in (self.folder / "folder", "/dev/null"):
            self.assert_one_line(self.run_command("inspect", path, code=3)[1])

    def test_many_tensors(self):
        count = 100000
        path = self.safetensors("many.safetensors", {f"layers.{i}.w": ("U8", (1,), b"x") for i in range(count)})
        self.assertEqual(self.run_command("inspect", path)[0].count("layers."), count)
        self.assertEqual(len(self.json_of("inspect", path)["tensors"]), count)


if __name__ == "__main__":
    harness.main()
