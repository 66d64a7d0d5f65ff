# SPDX-License-Identifier: Apache-2.0
"""Exit codes, help, suggestions, and what happens when the output goes away."""

import subprocess

import harness

QUANTIZE = ("explain", "quantize", "--dtype", "f32", "--shape", "256", "--output-dtype")


class Basics(harness.CommandTest):
    def test_help_and_version_go_to_stdout(self):
        for arguments in (
            ["help"],
            ["--help"],
            ["-h"],
            ["help", "stats"],
            ["stats", "--help"],
            ["--version"],
            ["-V"],
        ):
            out, err = self.run_command(*arguments)
            self.assertTrue(out)
            self.assertEqual(err, "")
        self.assertRegex(self.run_command("--version")[0], r"\Atensormorph \d+\.\d+\.\d+\n\Z")

    def test_every_command_has_help(self):
        overview = self.run_command("help")[0]
        for name in ("backends", "ops", "inspect", "stats", "explain", "bench", "help"):
            self.assertIn(f"\n  {name}", overview)
            self.assertIn(f"usage: tensormorph {name}", self.run_command(name, "--help")[0])

    def test_wrong_usage_is_2_and_one_line(self):
        for arguments, said in (
            ([], "which command"),
            (["stast"], 'unknown command "stast"; did you mean "stats"?'),
            (["help", "insect"], 'did you mean "inspect"?'),
            (["stats"], "something is missing"),
            (["inspect"], "something is missing"),
            (["inspect", "a", "b"], "one operand too many"),
            (["backends", "x"], "one operand too many"),
            (["backends", "--jsn"], "did you mean --json?"),
            (["backends", "--threads", "x"], '--threads wants a whole number, not "x"'),
            (["backends", "--max-memory"], "--max-memory wants a value"),
            (["backends", "--accept", "N7"], "N0, N1, N2 or N3"),
            (["backends", "--device", "refrence"], "refrence"),
            (["backends", "--no-device", "nonsense-nobody-has"], "nonsense-nobody-has"),
            (["backends", "--set", "x"], "BACKEND.OPTION=VALUE"),
            (["backends", "--set", "nobody.option=1"], "nobody"),
            (["ops", "matmull"], 'did you mean "matmul"?'),
            (["explain", "ad", "--dtype", "f32", "--shape", "4"], 'did you mean "add"?'),
            (["explain", "add", "--dtype", "f23", "--shape", "4"], 'unknown format "f23"; did you mean "f32"?'),
            (["explain", "add", "--dtype", "q9z9q", "--shape", "4"], 'unknown format "q9z9q"; tensormorph ops lists all'),
            ([*QUANTIZE, "q8"], 'unknown format "q8"; did you mean "q8_0"?'),
            ([*QUANTIZE, "q4_o"], 'unknown format "q4_o"; did you mean "q4_0"?'),
            ([*QUANTIZE, "q4_k"], "quantize: y has format q4_k, expected block format (q4_0 or q8_0)"),
            (["explain", "add", "--dtype", "f32", "--shape", "4y4"], '"4y4"'),
            (["explain", "add"], "needs --dtype and --shape"),
            (["bench", "add", "--dtype", "f32", "--shape", "4", "--min-time", "soon"], "a time"),
        ):
            out, err = self.run_command(*arguments, code=2)
            self.assertEqual(out, "")
            self.assertIn(said, err)
            self.assert_one_line(err)

    def test_suggests_a_device(self):
        self.assertIn(
            "reference", self.run_command("backends", "--device", "refrence", code=2)[1].replace("refrence", "")
        )

    def test_common_options_may_come_first(self):
        self.assertIn('"tensormorph.backends/1"', self.run_command("--json", "backends")[0])
        self.assertIn('"tensormorph.backends/1"', self.run_command("backends", "--json")[0])

    def test_double_dash_ends_options(self):
        self.small_model("--top")
        self.assertIn("layers.0.weight", self.run_command("stats", "--", "--top")[0])

    def test_trouble_is_3(self):
        err = self.run_command("stats", "missing.safetensors", code=3)[1]
        self.assert_one_line(err)
        self.assertIn("missing.safetensors", err)
        self.run_command("inspect", "missing.safetensors", code=3)

    def test_closed_pipe_is_quiet(self):
        many = self.safetensors("many.safetensors", {f"tensor.{i}": ("U8", (1,), b"x") for i in range(20000)})
        for arguments in (["inspect", many], ["inspect", "--json", many], ["stats", "--csv", many], ["ops"]):
            process = subprocess.Popen(
                [harness.COMMAND, *map(str, arguments)],
                env=self.environment(),
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
            )
            process.stdout.close()
            err = process.stderr.read()
            process.stderr.close()
            self.assertEqual((process.wait(60), err), (141, b""), arguments)

    def test_full_disk_is_said(self):
        with open("/dev/full", "wb") as full:
            done = subprocess.run(
                [harness.COMMAND, "help"], env=self.environment(), stdout=full, stderr=subprocess.PIPE
            )
        self.assertEqual(done.returncode, 3)
        self.assertIn(b"No space left", done.stderr)

    def test_no_escapes_without_a_terminal(self):
        model = self.small_model()
        for arguments in (["stats", model], ["inspect", model], ["backends"], ["ops", "add"]):
            out, err = self.run_command(*arguments)
            self.assertNotIn("\x1b", out + err)
            self.assertIn(
                "\x1b[", self.run_command(*arguments, "--color")[0] if arguments != ["backends"] else "\x1b["
            )
        self.assertNotIn("\x1b", self.run_command("stats", model, TENSORMORPH_COLOR="no")[0])
        self.assertIn("\x1b", self.run_command("stats", model, TENSORMORPH_COLOR="yes", NO_COLOR="1")[0])
        self.assertNotIn("\x1b", self.run_command("stats", model, "--no-color", TENSORMORPH_COLOR="yes")[0])


if __name__ == "__main__":
    harness.main()
