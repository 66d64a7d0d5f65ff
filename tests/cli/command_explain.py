# SPDX-License-Identifier: Apache-2.0
"""explain and bench: what is asked, what is answered, and what does not add up."""

import json
import re

import harness
from zoo import ZOO

READABLE = ("q4_0, q4_1, q5_0, q5_1, q8_0, q8_1, q2_k, q3_k, q4_k, q5_k, q6_k, q8_k, iq4_nl, iq4_xs, tq1_0, tq2_0, mxfp4, nvfp4, "
            "q1_0 or q2_0")
SLOW_TO_OPEN = ZOO / "culprits" / "slow_to_open_declared.so"


class Explain(harness.CommandTest):
    def test_a_refused_format_says_what_would_do(self):
        for operation, formats, shape, said in (
            ("quantize", "f32", "4x32", "quantize: --output-dtype must be given: block format (q4_0 or q8_0)"),
            ("cast", "f32", "4", "cast: --output-dtype must be given: float"),
            ("matmul", "iq2_xs,f32", "4x256,256x4", "a has format iq2_xs, expected float; and as the second operand: matmul: b has "
                                                    f"format iq2_xs, expected float or block format ({READABLE})"),
            ("quantize", "f32 --output-dtype q4_k", "4x256", "quantize: y has format q4_k, expected block format (q4_0 or q8_0)"),
            ("stats", "iq2_xs", "4x256", f"its values cannot be read; of the block formats those of {READABLE} can"),
            ("compare_tensors", "iq2_xs,iq2_xs", "4x256,4x256", f"of the block formats those of {READABLE} can"),
            ("add", "f8,f8", "4,4", 'unknown format "f8"; did you mean "f8_e4m3fn"?'),
            ("add", "f8_e5,f8_e5", "4,4", 'did you mean "f8_e5m2"?'),
        ):
            with self.subTest(operation=operation, formats=formats):
                err = self.run_command("explain", operation, "--dtype", *formats.split(), "--shape", shape, code=2)[1]
                self.assertIn(said, err)
                self.assert_one_line(err)

    def test_candidates_add_up(self):
        for repeats in (None, 1, 7, 1000000):
            with self.subTest(repeats=repeats):
                more = () if repeats is None else ("--repeats", repeats)
                document = self.json_of("explain", "add", "--dtype", "f32", "--shape", "256x256", "--plugin", SLOW_TO_OPEN, *more)
                self.assertEqual(document["repeats"], repeats)
                self.assert_adds_up(document)

    def assert_adds_up(self, document):
        self.assertEqual(document["flops"], 65536)
        self.assertEqual((document["read_bytes"], document["written_bytes"]), (2 * 262144, 262144))
        self.assertEqual([operand["shape"] for operand in document["inputs"]], [[256, 256]] * 2)
        repeats, chosen = document["repeats"], document["candidates"][document["chosen"]]
        self.assertEqual((chosen["verdict"], chosen["regret_ns"]), ("chosen", 0))
        self.assertEqual([row["verdict"] for row in document["candidates"]].count("chosen"), 1)
        for row in document["candidates"]:
            if row["total_ns"] is None:
                self.assertIsNone(row["regret_ns"])
                self.assertNotEqual(row["reason"], "", row)
                continue
            parts = row["declared_ns"] * row["correction"] + row["lowering_ns"] + row["copy_ns"]
            self.assertAlmostEqual(row["total_ns"], parts, delta=2 + parts * 1e-6)
            share = row["setup_ns"] - row["earned_ns"] if repeats is None else row["setup_ns"] // repeats
            self.assertEqual(row["setup_share_ns"], share)
            self.assertEqual(row["price_ns"], row["total_ns"] + share)
            self.assertEqual(row["regret_ns"], row["price_ns"] - chosen["price_ns"])

    def test_so_many_runs_pay(self):
        """One less does not; and so it is said, in the same words from either side."""
        run = ("explain", "neg", "--plugin", SLOW_TO_OPEN, "--dtype", "f32", "--shape", "1000x1000", "--threads", "1")
        chosen_of = lambda document: document["candidates"][document["chosen"]]
        document = self.json_of(*run)
        cheapest = chosen_of(document)
        slow = next(row for row in document["candidates"] if row["setup_ns"] == 2_500_000_000)
        runs = slow["repeats_from"]
        self.assertEqual((slow["setup_ns"], slow["repeats_to"], cheapest["repeats_from"]), (2_500_000_000, None, 1))
        self.assertEqual(runs, 2_500_000_000 // (cheapest["total_ns"] - slow["total_ns"]) + 1)
        self.assertEqual(cheapest["repeats_to"], runs - 1)
        self.assertEqual(chosen_of(self.json_of(*run, "--repeats", runs - 1))["device"], cheapest["device"])
        self.assertEqual(chosen_of(self.json_of(*run, "--repeats", runs))["device"], slow["device"])
        for more, device, amount, bears in (
            ((), slow["device"], f"{runs} or more", "2.50 s to be paid once, none of it earned"),
            (("--repeats", 100), slow["device"], f"{runs} or more", "2.50 s to be paid once, 25.0 ms a run"),
            (("--repeats", runs), cheapest["device"], f"{runs - 1} or fewer", "2.50 s to be paid once, "),
        ):
            out = self.run_command(*run, *more, COLUMNS="0")[0]
            self.assertRegex(out, rf"(?m)^what would change it: (.*; )?--repeats {amount} would choose {device}$")
            self.assertRegex(out, rf"(?m)^{device}: .*would get it with --repeats {amount}$")
            self.assertRegex(out, rf"(?m)^{slow['device']}: .*{bears}")
        out = self.run_command(*run, COLUMNS="0")[0]
        self.assertRegex(out, rf"why there: {slow['device']} would run it in 1 ns \(.* less\), but with 2.50 s of set-up it takes ")

    def test_a_set_up_that_never_pays(self):
        """With one element its one nanosecond is not less than that of nobody."""
        run = ("explain", "neg", "--plugin", SLOW_TO_OPEN, "--plugin", ZOO / "culprits" / "slow_to_prepare_declared.so")
        rows = [row for row in self.json_of(*run, "--dtype", "f32", "--shape", "1000")["candidates"] if row["setup_ns"] == 2_500_000_000]
        self.assertEqual(sorted(row["repeats_from"] is None for row in rows), [False, True])
        out = self.run_command(*run, "--dtype", "f32", "--shape", "1000", COLUMNS="0")[0]
        never = next(row["device"] for row in rows if row["repeats_from"] is None)
        self.assertRegex(out, rf"(?m)^{never}: .*and no number of runs makes up for it")

    def test_numbers_of_runs(self):
        run = ("explain", "add", "--dtype", "f32", "--shape", "64", "--repeats")
        for number in (0, 2**32, "x", "-1"):
            self.assert_one_line(self.run_command(*run, number, code=2)[1])
        self.assertIn("; for 1 run\n", self.run_command(*run, 1, COLUMNS="0")[0])
        self.assertIn("; for 4294967295 runs\n", self.run_command(*run, 2**32 - 1, COLUMNS="0")[0])

    def test_what_was_measured_is_told(self):
        """The factor, how much it varied, and in how many runs: as text, and the same in JSON."""
        state = {"XDG_STATE_HOME": str(self.folder / "state")}
        operation = ("add", "--dtype", "f32", "--shape", "1000", "--device", "reference")
        explain = ("explain", *operation)
        self.assertNotIn("of its formula", self.run_command(*explain, COLUMNS="0", **state)[0])
        self.run_command("bench", *operation, "--repeat", "20", **state)
        row = json.loads(self.run_command(*explain, "--json", **state)[0])["candidates"][0]
        self.assertGreater(row["samples"], 1)
        self.assertGreater(row["correction_spread"], 1)
        out = self.run_command(*explain, COLUMNS="0", **state)[0]
        said = f"x{row['correction']:.3g} within x{row['correction_spread']:.3g} of its formula in {row['samples']} runs"
        self.assertIn(f"reference:0: N0; {said}\n", out)

    def test_no_limit_of_memory(self):
        run = ("explain", "add", "--dtype", "f32", "--shape", "64")
        err = self.run_command(*run, "--max-memory", "1G", code=2)[1]
        self.assertIn("--max-memory goes with --graph only", err)
        self.assert_one_line(err)
        self.assertIn("it goes with --graph only", " ".join(self.run_command("explain", "--help")[0].split()))
        self.run_command(*run, TENSORMORPH_MAX_MEMORY="1G")

    def test_text_fits(self):
        for columns in (50, 80, 120):
            for more in ((), ("--accept", "N3"), ("--repeats", "1000000")):
                out = self.run_command("explain", "add", "--plugin", SLOW_TO_OPEN, "--plugin", ZOO / "two_queues.so", "--dtype",
                                       "f32", "--shape", "64x64", *more, COLUMNS=str(columns))[0]
                self.assertLessEqual(max(map(len, out.splitlines())), columns, out)
                self.assertRegex(out, r"(?m)^device +verdict +(level +)?regret ")

    def test_the_example_of_the_manual(self):
        document = self.json_of("explain", "matmul", "--dtype", "q4_0,f32", "--shape", "4096x4096,4096x64")
        self.assertEqual(document["flops"], 2 * 4096 * 4096 * 64)
        self.assertIn("second operand", document["notes"][0])
        self.assertEqual(document["outputs"][0]["shape"], [64, 4096])
        out = self.run_command(
            "explain", "matmul", "--dtype", "q4_0,f32", "--shape", "4096x4096,4096x64", COLUMNS="80"
        )[0]
        self.assertLessEqual(max(map(len, out.splitlines())), 80)
        for word in ("verdict", "chosen", "regret", "price", "total", "formula", "lower", "copies", "setup", "work:"):
            self.assertIn(word, out)

    def test_the_table_is_in_the_order_of_its_prices(self):
        run = ("explain", "add", "--plugin", ZOO / "two_queues.so", "--dtype", "f32", "--shape", "64")
        lines = self.run_command(*run, COLUMNS="200")[0].splitlines()
        heading = next(i for i, line in enumerate(lines) if line.startswith("device "))
        self.assertIn("price", lines[heading].split())
        priced = [row for row in self.json_of(*run)["candidates"] if row["price_ns"] is not None]
        self.assertEqual([row["price_ns"] for row in priced], sorted(row["price_ns"] for row in priced))
        self.assertEqual([line.split()[0] for line in lines[heading + 1 : heading + 1 + len(priced)]], [row["device"] for row in priced])

    def test_the_shape_of_the_output(self):
        document = self.json_of("explain", "fill", "--dtype", "f32", "--shape", "scalar,3x4")
        self.assertEqual([operand["shape"] for operand in document["inputs"]], [[]])
        self.assertEqual(document["written_bytes"], 48)
        document = self.json_of("explain", "add", "--dtype", "f32", "--shape", "3x1,4,3x4")
        self.assertEqual(document["written_bytes"], 48)
        err = self.run_command("explain", "add", "--dtype", "f32", "--shape", "3x4,3x4,4x3", code=2)[1]
        self.assertIn("has shape 3x4, not 4x3", err)

    def test_literal_block_weights(self):
        document = self.json_of(
            "explain",
            "matmul",
            "--dtype",
            "f32,q4_0",
            "--shape",
            "64x4096,4096x4096",
            "--transpose-b",
            "--constant",
            "1",
        )
        self.assertEqual(document["notes"], [])
        self.assertEqual(document["attributes"], {"transpose_a": False, "transpose_b": True})
        self.assertEqual([operand["constant"] for operand in document["inputs"]], [False, True])

    def test_attributes(self):
        document = self.json_of(
            "explain", "sum", "--dtype", "f32", "--shape", "4x5x6", "--axis", "0,-1", "--attr", "keep_dims=1"
        )
        self.assertEqual(document["attributes"], {"axes": [0, 2], "keep_dims": True})
        self.assertEqual(document["outputs"][0]["shape"], [1, 5, 1])
        document = self.json_of(
            "explain", "transpose", "--dtype", "f32", "--shape", "4x5", "--attr", "permutation=1,0"
        )
        self.assertEqual(document["outputs"][0]["shape"], [5, 4])
        document = self.json_of("explain", "cast", "--dtype", "f32", "--shape", "scalar", "--output-dtype", "bf16")
        self.assertEqual(document["outputs"][0], {"dtype": "bf16", "shape": [], "constant": False})
        document = self.json_of("explain", "compare", "--dtype", "f32", "--shape", "4", "--attr", "predicate=less")
        self.assertEqual(document["attributes"], {"predicate": "less"})

    def test_what_does_not_go(self):
        for arguments, said in (
            (["add", "--dtype", "f32", "--shape", "4,5"], ""),
            (["matmul", "--dtype", "f32", "--shape", "4x5,6x7"], ""),
            (["sum", "--dtype", "f32", "--shape", "4x5"], "--axis LIST"),
            (["sum", "--dtype", "f32", "--shape", "4x5", "--axis", "2"], "axes of the first operand"),
            (["add", "--dtype", "f32", "--shape", "4", "--attr", "x=1"], "this operation has none"),
            (["matmul", "--dtype", "f32", "--shape", "4x4", "--attr", "transpose=1"], "transpose_a, transpose_b"),
            (["add", "--dtype", "f32", "--shape", "4", "--attr", "x"], "KEY=VALUE"),
            (["add", "--dtype", "f32,f32,f32", "--shape", "4"], "takes 2 inputs, not 3"),
            (["add", "--dtype", "f32", "--shape", "4", "--constant", "2"], "there are 2 inputs"),
            (["add", "--dtype", "f32", "--shape", "1x1x1x1x1x1x1x1x1"], "8 axes"),
            (["add", "--dtype", "f32", "--shape", "99999999999x99999999999"], ""),
        ):
            err = self.run_command("explain", *arguments, code=2)[1]
            self.assertIn(said, err)
            self.assert_one_line(err)

    def test_acceptance_and_exclusion(self):
        arguments = ["explain", "add", "--dtype", "f32", "--shape", "64"]
        self.assertEqual(self.json_of(*arguments, "--accept", "N2")["accept"], "N2")
        document = self.json_of(*arguments, "--device", "reference")
        self.assertTrue(document["candidates"][document["chosen"]]["device"].startswith("reference"))

    def test_who_was_asked_for_and_is_not_here(self):
        arguments = ["explain", "add", "--dtype", "f32", "--shape", "64", "--plugin", ZOO / "null.so", "--device", "zoo_null"]
        said = r"nothing goes to zoo_null: it has no device here: ."
        self.assertRegex(self.run_command(*arguments, COLUMNS="0")[0], r"(?m)^note: " + said)
        self.assertRegex(self.json_of(*arguments)["notes"][0], "^" + said)
        self.assertEqual(self.json_of(*arguments[:-2])["notes"], [])

    def test_who_is_another_one_at_each_start_is_listed(self):
        """As it is listed by what was seen before, it turns out when it is needed, and is not to vanish then."""
        odd = ZOO / "sly" / "is_never_the_same.so"
        if not odd.is_file():
            self.skipTest("it is not built")
        request = ("explain", "neg", "--dtype", "f32", "--shape", "1000", "--plugin", odd)
        said = "it is not what it was when it was listed"
        for _ in range(2):
            row = [one for one in self.json_of(*request)["candidates"] if one["device"] == "zoo_is_never_the_same:0"]
            self.assertEqual([one["verdict"] for one in row], ["quarantined"])
            self.assertIn(said, row[0]["reason"])
        out, _ = self.run_command(*request, COLUMNS="200")
        self.assertRegex(out, r"(?m)^zoo_is_never_the_same:0 +quarantined")
        self.assertIn(f"zoo_is_never_the_same:0: {said}", out)

    def test_work_beyond_all_bounds(self):
        """Its price is large and nobody's fault: more work never costs less, and what is asked next is as it was."""
        small = ("matmul", "--dtype", "f32", "--shape", "64x64")
        before = [candidate["device"] for candidate in self.json_of("explain", *small)["candidates"]]
        for dtype, most in (("f32", 10), ("bf16", 10), ("f64", 9)):
            prices = {}
            for power in range(2, most):
                size = 10**power
                asked = self.json_of("explain", "matmul", "--dtype", dtype, "--shape", f"{size}x{size}")
                for candidate in asked["candidates"]:
                    self.assertIn(candidate["verdict"], ("chosen", "slower"), (size, candidate))
                    self.assertGreaterEqual(candidate["price_ns"], prices.get(candidate["device"], 0), (size, candidate))
                    prices[candidate["device"]] = candidate["price_ns"]
        after = self.json_of("explain", *small)["candidates"]
        self.assertEqual([candidate["device"] for candidate in after], before)
        self.assertEqual({candidate["verdict"] for candidate in after}, {"chosen", "slower"})

    def test_who_was_left_out(self):
        """Nobody else can run it only because others were not asked, and that is said."""
        asked = ("explain", "add", "--dtype", "f32", "--shape", "64x64")
        self.assertEqual(self.json_of(*asked)["notes"], [])
        for more in (("--device", "reference"), ("--no-device", "cpu")):
            notes = self.json_of(*asked, *more)["notes"]
            self.assertEqual(len(notes), 1, notes)
            self.assertRegex(notes[0], r"\Aleft out by request, and not asked: (.*, )?cpu\b")
            self.assertIn("note: left out by request, and not asked:", self.run_command(*asked, *more, COLUMNS="0")[0])

    def test_nobody_can(self):
        """The explanation is whole, and the exit code is that of a graph that nobody can run."""
        arguments = ["explain", "silu", "--dtype", "f32", "--shape", "64", "--plugin", ZOO / "two_queues.so"]
        arguments += ["--device", "zoo_two_queues", "--no-device", "reference"]
        out, err = self.run_command(*arguments, code=3)
        self.assertRegex(out, r"(?m)^zoo_two_queues:0 +refused ")
        self.assert_one_line(err)
        self.assertRegex(err, r"no device can run silu as asked; no --accept would change that; left out by request, and not asked: .*\bcpu\b")
        self.assertRegex(err, r"not asked: .*\breference\b")
        document = self.json_of(*arguments, code=3)
        self.assertIsNone(document["chosen"])

    def test_only_another_class_would_do(self):
        """What would change it is said where nobody can."""
        arguments = ["explain", "exp", "--dtype", "f32", "--shape", "64", "--device", "cpu", "--no-device", "reference", "--accept", "N0"]
        flip = self.json_of(*arguments, code=3)["flip"]
        self.assertRegex(flip, r"accepting N\d as well would choose cpu:0")
        self.assertIn(f"no device can run exp as asked; {flip}", self.run_command(*arguments, code=3)[1])

    def test_what_another_class_saves(self):
        arguments = ["explain", "exp", "--dtype", "f32", "--shape", "65536", "--device", "cpu", "--accept"]
        strict, free = self.json_of(*arguments, "N0"), self.json_of(*arguments, "N1")
        saved = strict["candidates"][strict["chosen"]]["total_ns"] - free["candidates"][free["chosen"]]["total_ns"]
        number, unit = re.search(r"accepting N1 as well would choose cpu:0, saving ([\d.]+) (ns|us|ms|s)$", strict["flip"]).groups()
        self.assertAlmostEqual(float(number) * {"ns": 1, "us": 1e3, "ms": 1e6, "s": 1e9}[unit] / saved, 1, delta=0.01)
        self.assertRegex(free["flip"], r"\A\Z|accepting N0 only would choose reference:0, for [\d.]+ (ns|us|ms|s) more")

    def test_who_would_get_it_with_another_class(self):
        """Of each candidate that another class would choose: which, and what that costs, as it is with that class."""
        run = ("explain", "exp", "--dtype", "f32", "--shape", "65536", "--accept")
        told = 0
        for accept in ("N0", "N1", "N3"):
            document = self.json_of(*run, accept)
            out = self.run_command(*run, accept, COLUMNS="0")[0]
            chosen = document["candidates"][document["chosen"]]
            for row in document["candidates"]:
                if row["flip_accept"] is None:
                    continue
                then = self.json_of(*run, row["flip_accept"])
                winner = then["candidates"][then["chosen"]]
                self.assertEqual((winner["device"], winner["price_ns"]), (row["device"], row["flip_price_ns"]))
                self.assertNotEqual(row["verdict"], "chosen")
                word = r"saving \S+ \S+" if row["flip_price_ns"] < chosen["price_ns"] else r"for \S+ \S+ more"
                self.assertRegex(out, rf"(?m)^{row['device']}: .*would get it with --accept {row['flip_accept']} \({word}\)")
                told += 1
        self.assertGreaterEqual(told, 2)

    def test_nobody_is_left(self):
        arguments = ["explain", "add", "--dtype", "f32", "--shape", "64"]
        names = [backend["name"] for backend in self.json_of("backends")["backends"]]
        for name in names:
            arguments += ["--no-device", name]
        out, err = self.run_command(*arguments, code=3)
        self.assertEqual(out, "")
        self.assert_one_line(err)
        for name in names:
            self.assertIn(f"{name}: excluded by request", err)

    def test_a_long_reason_ends_at_a_word(self):
        words = " ".join(f"word{i}" for i in range(38))
        settings = ("--set", f"webgpu.library=/nonexistent/{words}", "--device", "webgpu", "--no-device", "reference")
        backends = {one["name"]: one for one in self.json_of("backends", *settings)["backends"]}
        if backends.get("webgpu", {}).get("state") != "unavailable":
            self.skipTest("there is no WebGPU in this build")
        reason = backends["webgpu"]["reason"]
        self.assertGreater(len(reason), 250)
        err = self.run_command("explain", "add", "--dtype", "f32", "--shape", "64", *settings, code=3)[1]
        told = err[err.index("webgpu: ") + len("webgpu: "):].rsplit("; ", 1)[0]
        if told != reason:
            self.assertTrue(told.endswith("..."), err)
            self.assertTrue(reason.startswith(told[:-3]) and reason[len(told) - 3] in " ,;", err)

    def test_one_operation(self):
        """What is counted is one, or it is several."""
        for command in ("explain", "bench"):
            more = ("--repeat", "1") if command == "bench" else ()
            for shape, said in (("1", "work: 1 operation, "), ("2", "work: 2 operations, ")):
                self.assertIn(said, self.run_command(command, "add", "--dtype", "f32", "--shape", shape, *more, COLUMNS="0")[0])


class Bench(harness.CommandTest):
    def test_figures(self):
        document = self.json_of(
            "bench", "add", "--device", "reference", "--dtype", "f32", "--shape", "64x64", "--repeat", "5"
        )
        row = next(row for row in document["results"] if row["device"].startswith("reference"))
        self.assertEqual((row["samples"], row["reason"], row["speedup"]), (5, None, 1))
        self.assertLessEqual(row["min_ns"], row["median_ns"])
        self.assertLessEqual(row["median_ns"], row["p90_ns"])
        self.assertGreaterEqual(row["call_ns"], row["min_ns"])
        self.assertAlmostEqual(row["gflop_per_s"], 4096 / row["median_ns"], delta=1e-6)

    def test_formats_and_table(self):
        for arguments in (["--dtype", "bf16", "--shape", "100"], ["--dtype", "i32", "--shape", "7x3"]):
            out = self.run_command("bench", "add", *arguments, "--repeat", "3", COLUMNS="80")[0]
            self.assertRegex(out, r"device +(level +)?(numerics +)?median")
            self.assertLessEqual(max(map(len, out.splitlines())), 80)
        self.run_command(
            "bench", "matmul", "--dtype", "f32,q4_0", "--shape", "4x64,32x64", "--transpose-b", "--repeat", "3"
        )
        self.run_command("bench", "stats", "--dtype", "f32", "--shape", "1000", "--repeat", "3")

    def test_a_device_that_is_not_there(self):
        self.run_command("bench", "add", "--device", "refrence", "--dtype", "f32", "--shape", "4", code=2)

    def test_a_backend_without_devices_says_why(self):
        """It is the user's choice, so the reference's figures alone are no answer."""
        null = ZOO / "null.so"
        arguments = ("add", "--plugin", null, "--dtype", "f32", "--shape", "4", "--repeat", "3")
        _, err = self.run_command("bench", *arguments, "--device", "zoo_null", code=3)
        self.assertRegex(err, r"\Atensormorph: zoo_null is not here: .+\n\Z")
        _, err = self.run_command("bench", *arguments, "--device", "zoo_null,reference", code=3)
        self.assertIn("zoo_null is not here: ", err)
        self.run_command("bench", *arguments, "--device", "reference")


if __name__ == "__main__":
    harness.main()
