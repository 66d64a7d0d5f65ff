# SPDX-License-Identifier: Apache-2.0
"""stats: the figures, the checks that were asked for, and Ctrl-C."""

import json
import math
import os
import re
import signal
import struct
import subprocess
import time

import harness


def child_of_a_terminal():
    """Ctrl-C counts also where the caller ignores it, as background jobs of a shell do."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


PROGRESS = r"\r( +\d+%[^\x1b\r]*)\x1b\[K"


class Stats(harness.CommandTest):
    def test_figures(self):
        values = [math.sin(i) * 10 ** (i % 7 - 3) for i in range(1000)]
        rounded = struct.unpack("<1000f", struct.pack("<1000f", *values))
        path = self.safetensors("values.safetensors", {"x": ("F32", (10, 100), struct.pack("<1000f", *values))})
        row = self.json_of("stats", path)["tensors"][0]
        mean = math.fsum(rounded) / 1000
        self.assertEqual(
            (row["count"], row["min"], row["max"], row["abs_max"]),
            (1000, min(rounded), max(rounded), max(map(abs, rounded))),
        )
        self.assertAlmostEqual(row["mean"], mean, delta=1e-12)
        self.assertAlmostEqual(row["std"], math.sqrt(math.fsum((v - mean) ** 2 for v in rounded) / 1000), delta=1e-9)
        self.assertAlmostEqual(row["l2"], math.sqrt(math.fsum(v * v for v in rounded)), delta=1e-9)

    def test_counts_what_is_not_finite(self):
        data = struct.pack("<8f", math.nan, math.nan, math.inf, -math.inf, 0, -0.0, 1e-40, 2)
        path = self.safetensors(
            "odd.safetensors", {"clean": ("F32", (1,), struct.pack("<f", 1)), "odd": ("F32", (8,), data)}
        )
        odd = next(row for row in self.json_of("stats", path)["tensors"] if row["name"] == "odd")
        self.assertEqual([odd[name] for name in ("nan", "pos_inf", "neg_inf", "zero", "subnormal")], [2, 1, 1, 2, 1])
        out = self.run_command("stats", path)[0]
        self.assertRegex(out, r"nan +\+inf +-inf")
        self.assertIn("\x1b[31m2\x1b[0m", self.run_command("stats", path, "--color")[0])
        err = self.run_command("stats", path, "--fail-on-nonfinite", code=1)[1]
        self.assertIn("the first is odd: 2 NaN, 1 +Inf, 1 -Inf", err)
        clean = self.small_model()
        self.run_command("stats", clean, "--fail-on-nonfinite")
        self.assertNotIn("nan", self.run_command("stats", clean)[0])

    def test_one_form_at_a_time(self):
        for command in ("stats", "inspect"):
            self.assertIn("give one of them", self.run_command(command, self.small_model(), "--csv", "--json", code=2)[1])

    def test_what_was_not_examined_is_not_vouched_for(self):
        clean = ("F32", (1,), struct.pack("<f", 1))
        unknown = {f"c{i}": ("C64", (2,), bytes(16)) for i in range(3)}
        for tensors, counts in (({"x": clean, **unknown}, "3 of 4"), (unknown, "3 of 3")):
            path = self.safetensors("unknown.safetensors", tensors)
            out = self.run_command("stats", path)[0]
            self.assertNotIn("no NaN", out)
            self.assertIn(f"{counts} tensors not examined", out)
            for form in ([], ["--json"], ["--csv"], ["--top", "1"], ["--quiet"]):
                err = self.run_command("stats", path, "--fail-on-nonfinite", *form, code=1)[1]
                self.assertIn(f"{counts} tensors could not be examined (type c64)", err)
        path = self.safetensors("both.safetensors", {"bad": ("F32", (1,), struct.pack("<f", math.nan)), **unknown})
        err = self.run_command("stats", path, "--fail-on-nonfinite", code=1)[1]
        self.assertIn("the first is bad: 1 NaN", err)
        self.assertIn("3 of 4 tensors could not be examined", err)
        path = self.safetensors("known.safetensors", {"x": clean, "empty": ("F32", (0,), b""), "i": ("I8", (1,), b"a")})
        self.assertIn("no NaN, no infinities", self.run_command("stats", path, "--fail-on-nonfinite")[0])

    def test_block_types_without_a_decoder_are_not_vouched_for(self):
        name = b"blk.0"
        tensor = struct.pack("<Q", len(name)) + name + struct.pack("<IQIQ", 1, 256, 16, 0)
        head = struct.pack("<4sIQQ", b"GGUF", 3, 1, 0) + tensor
        path = self.folder / "iq2_xxs.gguf"
        path.write_bytes(head + bytes(-len(head) % 32) + bytes(96))
        self.assertNotIn("no NaN", self.run_command("stats", path)[0])
        err = self.run_command("stats", path, "--fail-on-nonfinite", code=1)[1]
        self.assertIn("1 of 1 tensor could not be examined (type iq2_xxs)", err)

    def test_selection(self):
        model = self.small_model()

        def names(*arguments):
            return [row["name"] for row in self.json_of("stats", model, *arguments)["tensors"]]

        self.assertEqual(names(), ["layers.0.weight", "layers.0.bias", "step"])
        self.assertEqual(names("--sort", "name"), ["layers.0.bias", "layers.0.weight", "step"])
        self.assertEqual(names("--sort", "-name"), ["step", "layers.0.weight", "layers.0.bias"])
        self.assertEqual(names("--sort", "count"), ["layers.0.weight", "layers.0.bias", "step"])
        self.assertEqual(names("--sort", "-count", "--top", "1"), ["step"])
        self.assertEqual(names("--top", "2"), ["layers.0.weight", "layers.0.bias"])
        self.assertEqual(names("--tensor", "*.bias", "--tensor", "step"), ["layers.0.bias", "step"])
        self.assertEqual(names("--exclude", "layers.*"), ["step"])
        out = self.run_command("stats", model, "--columns", "mean,name", "--top", "1", "--quiet")[0]
        self.assertEqual(out.split(), ["mean", "name", "0.125", "layers.0.weight"])
        self.assertIn("abs_max", self.run_command("stats", model, "--wide")[0])

    def test_what_matches_nothing(self):
        model = self.small_model()
        for arguments in (["--exclude", "*"], ["--tensor", "nothing.*"], ["--tensor", "layers.*", "--tensor", "layers.0.wieght"]):
            for form in ([], ["--json"], ["--csv"], ["--fail-on-nonfinite"]):
                out, err = self.run_command("stats", model, *arguments, *form, code=2)
                self.assert_one_line(err)
                self.assertIn(arguments[-1], err)
                self.assertEqual(out, "")
        err = self.run_command("stats", model, "--sort", "meen", code=2)[1]
        self.assertIn('did you mean "mean"?', err)
        self.run_command("stats", model, "--columns", "name,nothing", code=2)

    def test_no_device_is_left(self):
        model = self.small_model()
        for device in ("reference", "reference:0"):
            out, err = self.run_command("stats", model, "--device", "reference", "--no-device", device, code=3)
            self.assertEqual(out, "")
            self.assert_one_line(err)
            self.assertRegex(err, r"no device is left.*reference[^;]*: excluded by request")

    def test_several_files(self):
        paths = [self.small_model("a.safetensors"), self.small_model("b.safetensors", 2)]
        rows = self.json_of("stats", *paths)["tensors"]
        self.assertEqual([row["file"].split("/")[-1] for row in rows], ["a.safetensors"] * 3 + ["b.safetensors"] * 3)
        self.assertIn("file", self.run_command("stats", *paths)[0].splitlines()[0])
        self.assertNotIn("file", self.run_command("stats", paths[0])[0].splitlines()[0])

    def test_a_bad_file_costs_the_others_nothing(self):
        good, bad = self.small_model("good.safetensors"), self.folder / "bad.safetensors"
        bad.write_bytes(b"<html>")
        for files in ([good, bad], [bad, good], [good, "missing.safetensors"], [bad, good, "missing.safetensors"]):
            out, err = self.run_command("stats", *files, code=3)
            self.assertIn("layers.0.weight", out)
            for file in files:
                self.assertEqual(str(file) in err, file != good, err)
            document = self.json_of("stats", *files, code=3)
            self.assertEqual([row["file"] for row in document["tensors"]], [str(good)] * 3)
            self.assertFalse(document["complete"])
            self.assertTrue(document["error"])
            self.assertEqual(len(self.run_command("stats", *files, "--csv", code=3)[0].splitlines()), 4)
        out, err = self.run_command("stats", bad, "missing.safetensors", code=3)
        self.assertEqual((out, len(err.splitlines())), ("", 2))

    def test_below_the_table(self):
        out = self.run_command("stats", self.small_model(), "--device", "reference")[0]
        self.assertRegex(out, r"3 tensors, 72 B in .*: .*/s\n  reference:0: \d+ operations?, 72 B, busy ")
        self.assertNotIn("busy", self.run_command("stats", self.small_model(), "--quiet")[0])

    def test_required_backend(self):
        model = self.small_model()
        self.run_command("stats", model, "--device", "reference", "--require-backend", "reference")
        self.assertIn(
            'did you mean "reference"?', self.run_command("stats", model, "--require-backend", "refrence", code=2)[1]
        )
        others = [
            backend["name"] for backend in self.json_of("backends")["backends"] if backend["name"] != "reference"
        ]
        if not others:
            self.skipTest("only the reference is built in")
        err = self.run_command("stats", model, "--device", "reference", "--require-backend", others[0], code=1)[1]
        self.assertIn("reference:0", err)

    def test_reproducible(self):
        model = self.small_model()
        first = self.json_of("stats", model, "--reproducible", "--threads", "1")["tensors"]
        self.assertEqual(self.json_of("stats", model, "--reproducible", "--threads", "3")["tensors"], first)

    def test_unknown_types_get_a_note(self):
        document = self.json_of("stats", self.data_file("fixtures", "gguf", "multiple.gguf"))
        self.assertTrue(document["complete"])

    def interrupt(self, signals, *arguments):
        """Once the job runs: before that a signal ends it as it ends any process, and it gets more time the next time."""
        path = self.safetensors("sparse.safetensors", {f"t{i}": ("F32", (1 << 28,), None) for i in range(64)})
        for seconds in 0.4, 1, 3, 9, 27:
            process = subprocess.Popen(
                [harness.COMMAND, "stats", path, *arguments],
                env=self.environment(),
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                preexec_fn=child_of_a_terminal,
            )
            time.sleep(seconds)
            self.assertIsNone(process.poll(), "it ended before it could be interrupted")
            for number in signals:
                process.send_signal(number)
            out, err = process.communicate()
            if process.returncode != -signals[0]:
                break
        return process.returncode, out.decode(), err.decode()

    def test_interrupt(self):
        """At once: going through all of the file would take far longer than this test may."""
        code, out, err = self.interrupt([signal.SIGINT])
        self.assertEqual(code, 130)
        self.assertIn("cancelled", out)
        self.assertIn("interrupted", err)

    def test_interrupted_json_is_whole(self):
        code, out, _ = self.interrupt([signal.SIGINT], "--json")
        document = json.loads(out)
        self.assertEqual((code, document["complete"]), (130, False))
        self.assertLess(len(document["tensors"]), 64)

    def test_terminate(self):
        self.assertEqual(self.interrupt([signal.SIGTERM])[0], 143)

    def test_progress_on_a_terminal(self):
        path = self.safetensors("sparse.safetensors", {f"t{i}": ("F32", (1 << 28,), None) for i in range(64)})
        code, text = self.read_terminal(["stats", path], lambda text: len(re.findall(PROGRESS, text)) >= 4 and "ETA" in text)
        self.assertEqual(code, 130)
        self.assertRegex(text, r"\r +\d+%  [\d.]+ .?B of 68\.7 GB")
        self.assertRegex(text, r"[\d.]+ .?B/s  ETA \d")
        lines = re.findall(PROGRESS, text)
        self.assertGreaterEqual(len(lines), 3)
        self.assertLess(max(map(len, lines)), 80)
        # the last thing that happens to the line is that it is cleared
        self.assertRegex(text[text.rindex("%") :], r"\A[^\n]*\r\x1b\[K")
        end = time.monotonic() + 1
        code, text = self.read_terminal(["stats", "--quiet", path], lambda text: time.monotonic() > end)
        self.assertNotIn("%", text)

    def test_colour_on_a_terminal(self):
        model = self.small_model()
        self.assertIn("\x1b[1m", self.read_terminal(["stats", model])[1])
        self.assertNotIn("\x1b", self.read_terminal(["stats", model], NO_COLOR="1")[1])
        self.assertNotIn("\x1b", self.read_terminal(["stats", model], TERM="dumb")[1])

    def test_file_that_shrinks_meanwhile(self):
        path = self.safetensors("shrinks.safetensors", {f"t{i}": ("F32", (1 << 28,), None) for i in range(64)})
        process = subprocess.Popen(
            [harness.COMMAND, "stats", path, "--json"],
            env=self.environment(),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        self.wait_until_at_work(process, path)
        os.truncate(path, 1 << 20)
        out, err = process.communicate()
        self.assertEqual(process.returncode, 3, err)
        self.assertIn("changed", err.decode())
        self.assertEqual(json.loads(out)["complete"], False)


if __name__ == "__main__":
    harness.main()
