# SPDX-License-Identifier: Apache-2.0
"""The plugins by way of the command: listed, explained, measured, and refused when what they are told means nothing."""
import json
import os
import pathlib
import re
import signal
import subprocess
import time

import harness
import make_sim_corpus

PLUGINS = pathlib.Path(os.environ["TM_PLUGINS"])
PRODUCT = ("matmul", "--dtype", "f32", "--shape", "512x512,512x512")


class PluginTest(harness.CommandTest):
    def setUp(self):
        super().setUp()
        self.locks = self.folder / "locks"

    def with_plugin(self, name, *arguments, **options):
        settings = {"TENSORMORPH_SIMULATOR_LOCK_FOLDER": str(self.locks)} if name == "simulator" else {}
        return self.run_command("--plugin", PLUGINS / f"{name}.so", *arguments, **settings, **options)

    def plugin_json(self, name, *arguments):
        return harness.json.loads(self.with_plugin(name, *arguments, "--json")[0])

    def candidate(self, document, device):
        return next(row for row in document["candidates"] if row["device"] == device)


class Listed(PluginTest):
    def test_backends(self):
        for name in ("minimal", "simulator"):
            out = self.with_plugin(name, "backends")[0]
            self.assertRegex(out, rf"(?m)^{name} .* ready ")
            self.assertRegex(out, rf"(?m)^{name}:0 ")


class Minimal(PluginTest):
    def test_explain_and_bench(self):
        row = self.candidate(self.plugin_json("minimal", "explain", "mul", "--dtype", "f32", "--shape", "1000"), "minimal:0")
        self.assertEqual((row["declared_ns"], row["copy_ns"], row["lowering"]), (3000, 0, ""))
        row = self.candidate(
            self.plugin_json("minimal", "explain", "mul", "--dtype", "bf16", "--shape", "1000", "--accept", "N1"), "minimal:0"
        )
        self.assertEqual(row["lowering"], "cast(a, f32), cast(b, f32), cast(y, f32)")
        document = self.plugin_json(
            "minimal", "bench", "add", "--device", "minimal", "--dtype", "f32", "--shape", "1000", "--repeat", "3"
        )
        self.assertIn("minimal:0", str(document))

    def test_a_reason_is_true_of_what_is_asked(self):
        """It has no silu, in f32 or anything else."""
        row = self.candidate(self.plugin_json("minimal", "explain", "silu", "--dtype", "f32", "--shape", "10"), "minimal:0")
        self.assertEqual(row["verdict"], "refused")
        self.assertIn("add, sub and mul of dense f32", row["reason"])


class AtTheSameTime(PluginTest):
    """Of a plan whose devices work beside each other sums say nothing of when a run ends: what is told is what the model has."""

    NODES = (("silu", 0), ("mul", 1, 0), ("silu", 1), ("silu", 3), ("mul", 4, 0), ("mul", 3, 2), ("mul", 2, 1))

    def graph(self):
        whole = {"format": "f32", "dims": [256, 256]}
        items = [{"kind": "input", "value": 0, "name": "x", **whole}]
        for i, (op, *inputs) in enumerate(self.NODES):
            node = {"kind": "node", "values": [i + 1], "op": op, "version": 1, "inputs": inputs, "name": f"n{i}"}
            items.append({**node, "results": [whole]})
        items.append({"kind": "output", "value": len(self.NODES), "name": "y"})
        path = self.folder / "graph.json"
        path.write_text(json.dumps({"tensormorph_graph": 1, "items": items}))
        return path

    def test_what_a_move_takes(self):
        run = ("explain", "--graph", self.graph(), "--plugin", PLUGINS / "queued.so", "--no-device", "cpu", "--set")
        run += (f"simulator.device_file={PLUGINS}/devices/gpu_like.json",)
        document = self.plugin_json("simulator", *run)
        total_ns = document["total_ns"]
        self.assertTrue(document["overlaps"])
        kinds = set()
        for node in document["nodes"]:
            out = self.with_plugin("simulator", *run, "--node", node["name"], COLUMNS="0")[0]
            moves = {one["device"]: one["moved_ns"] for one in node["candidates"] if one["verdict"] in ("chosen", "slower")}
            for device, moved_ns in moves.items():
                regret = re.search(rf"(?m)^{device} +\S+ +(-?)(\S+)(?: \S+)?  ", out)
                kinds.add(regret[1] if moved_ns != total_ns else regret[2])
                self.assertEqual(regret[1] == "-", moved_ns < total_ns, out)
                self.assertEqual(regret[2] == "0", moved_ns == total_ns, out)
            least_ns = min(moves.values())
            first = [device for device, moved_ns in moves.items() if moved_ns == least_ns]
            said = re.search(r"the model would have a run end \S+ \S+ sooner, by \S+ %, with it alone on (\S+?)[;\n]", out)
            self.assertEqual(said is not None, least_ns < total_ns, out)
            if said is not None:
                self.assertIn(said[1], first)
        self.assertEqual(kinds, {"", "-", "0"})

    def test_the_table_of_all_nodes(self):
        run = ("explain", "--graph", self.graph(), "--plugin", PLUGINS / "queued.so", "--no-device", "cpu", "--set")
        run += (f"simulator.device_file={PLUGINS}/devices/gpu_like.json",)
        document = self.plugin_json("simulator", *run)
        out = self.with_plugin("simulator", *run, COLUMNS="0")[0]
        for node in document["nodes"]:
            if node["runner_up"] is None:
                continue
            moved_ns = node["candidates"][node["runner_up"]]["moved_ns"]
            cells = re.split(r" {2,}", re.search(rf"(?m)^{node['node']} +{node['name']} .*$", out)[0])
            self.assertEqual(cells[7].startswith("-"), moved_ns < document["total_ns"], out)
            self.assertEqual(cells[7] == "0", moved_ns == document["total_ns"], out)


class Blas(PluginTest):
    def setUp(self):
        super().setUp()
        self.listing = self.with_plugin("blas", "backends")[0]
        if " unavailable " in self.listing:
            self.skipTest(self.listing)

    def test_explain_says_by_how_much(self):
        document = self.plugin_json("blas", "explain", *PRODUCT)
        row, chosen = self.candidate(document, "blas:0"), document["candidates"][document["chosen"]]
        self.assertEqual((row["copy_ns"], row["lowering"]), (0, ""))
        self.assertGreaterEqual(row["total_ns"], chosen["total_ns"])
        totals = sorted(row["total_ns"] for row in document["candidates"] if row["total_ns"] is not None)
        self.assertAlmostEqual(document["margin"], totals[1] / totals[0], places=3)

    def test_the_declared_rate_decides(self):
        """What is declared is what is explained, as long as nothing was measured."""
        for gflops, verdict in (("1000000", "chosen"), ("1", "slower")):
            out = self.with_plugin("blas", "explain", *PRODUCT, "--json", "--set", f"blas.gflops={gflops}")[0]
            self.assertEqual(self.candidate(harness.json.loads(out), "blas:0")["verdict"], verdict)

    def test_bench(self):
        document = self.plugin_json("blas", "bench", *PRODUCT, "--device", "blas", "--repeat", "3")
        self.assertIn("blas:0", str(document))

    def test_options_that_mean_nothing(self):
        for setting, words in (
            ("library=/nonexistent", ("option library", "/nonexistent")),
            ("library=libm.so.6", ("option library", "cblas_sgemm")),
            ("threads=-1", ("option threads", "from 0 to 1024", "-1")),
            ("gflops=99999999999", ("option gflops", "99999999999")),
            ("threads=many", ("blas.threads", "many")),
        ):
            err = self.with_plugin("blas", "backends", "--set", f"blas.{setting}", code=2)[1]
            self.assert_one_line(err)
            for word in words:
                self.assertIn(word, err)


    def test_an_option_that_names_no_file(self):
        """Said for what it is, at once, and not laid at the plugin's door."""
        os.mkfifo(self.folder / "pipe")
        for path, word in ((self.folder / "pipe", "a pipe, not a file"), ("/dev/zero", "a device, not a file"), (self.folder, "a folder, not a file")):
            err = self.with_plugin("blas", "backends", "--set", f"blas.library={path}", code=2)[1]
            self.assert_one_line(err)
            self.assertIn(str(path), err)
            self.assertIn(word, err)
            self.assertNotIn("did not end", err)


class BlasMissing(PluginTest):
    def test_what_was_tried_is_listed(self):
        """In a file system of its own where no such library is."""
        script = 'for f in $(find /usr/lib /lib /usr/local/lib \\( -name "lib*blas*.so*" -o -name "libblis*.so*" ' \
            '-o -name "libmkl_rt*" \\) -not -type d 2>/dev/null); do ' \
            'mount --bind /dev/null "$(readlink -f "$f")" || exit 77; done; ' \
            f'exec "{harness.COMMAND}" --plugin "{PLUGINS}/blas.so" backends'
        done = subprocess.run(["unshare", "--user", "--map-root-user", "--mount", "sh", "-c", script], cwd=self.folder,
                              env=self.environment(), capture_output=True, text=True, timeout=120)
        if done.returncode == 77 or "unshare" in done.stderr:
            self.skipTest(f"no file system of its own: {done.stderr.strip()}")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertRegex(done.stdout, r"(?m)^blas .* unavailable ")
        for word in ("no CBLAS found", "libopenblas.so.0", "libblis.so.4", "libcblas.so.3", "libmkl_rt.so"):
            self.assertIn(word, " ".join(done.stdout.split()))


class Descriptions(PluginTest):
    def complaint(self, path, code=2):
        return self.with_plugin("simulator", "backends", "--set", f"simulator.device_file={path}", code=code)[1]

    def test_a_good_one(self):
        path = self.folder / "good.json"
        path.write_text(harness.json.dumps(make_sim_corpus.GOOD))
        self.assertIn("tiny", self.with_plugin("simulator", "backends", "--set", f"simulator.device_file={path}")[0])

    def test_each_kind_of_nonsense(self):
        path = self.folder / "device.json"
        for name, (document, words) in make_sim_corpus.BAD.items():
            with self.subTest(name):
                path.write_bytes(make_sim_corpus.bytes_of(document))
                err = self.complaint(path)
                self.assert_one_line(err)
                for word in ("backend simulator", "device.json", *words):
                    self.assertIn(word, err)

    def test_files_that_are_none(self):
        huge, pipe = self.folder / "huge.json", self.folder / "pipe"
        with open(huge, "wb") as file:
            file.truncate(100_000_000)
        os.mkfifo(pipe)
        for path, word in (
            (self.folder / "missing.json", "No such file"),
            (self.folder, "can be read"),
            (pipe, "can be read"),
            (huge, "1 MiB"),
            ("/dev/zero", "can be read"),
        ):
            err = self.complaint(path)
            self.assert_one_line(err)
            self.assertIn(word, err)
            self.assertIn(str(path), err)

    def test_the_default_one_is_missing(self):
        alone = self.folder / "simulator.so"
        alone.write_bytes((PLUGINS / "simulator.so").read_bytes())
        out = " ".join(self.run_command("--plugin", alone, "backends")[0].split())
        self.assertIn("unavailable", out)
        self.assertIn("devices/npu.json", out)


class Simulator(PluginTest):
    def test_what_if(self):
        """A device that is not there, with copies and set-up in the price."""
        document = self.plugin_json(
            "simulator", "explain", *PRODUCT, "--set", f"simulator.device_file={PLUGINS}/devices/gpu_like.json"
        )
        row = self.candidate(document, "simulator:0")
        self.assertEqual(row["declared_ns"], 6000 + 2 * 512**3 // 30000)
        self.assertGreater(row["copy_ns"], 0)
        self.assertGreaterEqual(row["setup_ns"], 120_000_000)

    def test_what_if_there_were_one(self):
        """A graph's products go to a described device when they run often enough to be worth its set-up."""
        dims = [64, 64]
        items = [{"kind": "input", "value": 0, "name": "x", "format": "f32", "dims": dims}]
        for value in range(1, 5):
            items.append({"kind": "node", "values": [value], "op": "matmul", "version": 1, "inputs": [value - 1, value - 1],
                          "results": [{"format": "f32", "dims": dims}], "name": f"product{value}"})
        items.append({"kind": "output", "value": 4, "name": "y"})
        path = self.folder / "graph.json"
        path.write_text(json.dumps({"tensormorph_graph": 1, "items": items}))
        described = ("--set", f"simulator.device_file={PLUGINS}/devices/gpu_like.json", "--device", "simulator", "--json")
        for repeats, device in ((100000, "simulator:0"), (1, "reference:0")):
            document = json.loads(self.with_plugin("simulator", "explain", "--graph", path, "--repeats", str(repeats), *described)[0])
            self.assertEqual({node["device"] for node in document["nodes"]}, {device})
        moved = [change for change in document["changes"] if change["kind"] == "repeats" and change["moved"] == 4]
        self.assertTrue(moved)
        self.assertLess(moved[0]["total_ns"], document["total_ns"])

    def test_what_if_there_were_one_that_was_measured_elsewhere(self):
        """Prices are those that follow from what `profile export` wrote of a real device."""
        folder = self.folder / "elsewhere"
        folder.mkdir()
        state = {"XDG_STATE_HOME": str(folder / "state")}
        self.run_command("calibrate", "--seconds", "1", "--device", "reference", "-q", **state)
        self.run_command("profile", "export", folder / "measured.profile", **state)
        means = {}
        for line in (folder / "measured.profile").read_text().splitlines():
            fields = line.split("\t")
            if fields[1] == "entry" and fields[3] == "9":
                means[int(fields[4], 16)] = int(fields[8], 16) / 2**32
        description = json.loads((PLUGINS / "devices" / "gpu_like.json").read_text())
        description["profile"] = {"file": "measured.profile", "device": "reference"}
        path = folder / "measured.json"
        path.write_text(json.dumps(description))
        described = ("--set", f"simulator.device_file={path}")
        arguments = ("explain", "add", "--dtype", "f32", "--shape", "100000", *described)
        row = self.candidate(self.plugin_json("simulator", *arguments), "simulator:0")
        self.assertAlmostEqual(row["declared_ns"], (1000 + 100000 // 2 + 1200000 // 4) * 2 ** means[2], delta=1)
        (folder / "other.profile").write_text("nothing\n")
        description["profile"]["file"] = "other.profile"
        other = folder / "other.json"
        other.write_text(json.dumps(description))
        err = self.with_plugin("simulator", "backends", "--set", f"simulator.device_file={other}", code=2)[1]
        self.assert_one_line(err)
        for word in ("backend simulator", "other.profile", "tensormorph profile export"):
            self.assertIn(word, err)

    def test_bench_by_way_of_integers(self):
        """Weights said to be constant are so when measured, too."""
        document = self.plugin_json(
            "simulator", "bench", "matmul", "--dtype", "f32", "--shape", "8x70,70x33", "--constant", "1", "--accept", "N3",
            "--device", "simulator", "--repeat", "2",
        )
        row = next(row for row in document["results"] if row["device"] == "simulator:0")
        self.assertEqual((row["numerics"], row["level"]), ("N3", "emulated"))

    def test_refusals_are_told(self):
        out = self.with_plugin("simulator", "explain", "exp", "--dtype", "f32", "--shape", "100")[0]
        self.assertIn("not among the operations of the description", out)

    def test_one_process_at_a_time(self):
        """The lock goes with the process, also with one that is killed."""
        arguments = ["--plugin", PLUGINS / "simulator.so", "bench", "add", "--dtype", "f16", "--shape", "64"]
        arguments += ["--device", "simulator"]
        lasting = subprocess.Popen(
            [harness.COMMAND, *map(str, arguments), "--min-time", "60s"], cwd=self.folder, stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL, env=self.environment(TENSORMORPH_SIMULATOR_LOCK_FOLDER=str(self.locks)),
        )
        self.addCleanup(lasting.wait)
        self.addCleanup(lasting.kill)
        self.wait_for_lock()
        done = subprocess.run(
            [harness.COMMAND, *map(str, arguments), "--repeat", "3"], cwd=self.folder, capture_output=True, text=True, timeout=120,
            env=self.environment(TENSORMORPH_SIMULATOR_LOCK_FOLDER=str(self.locks)),
        )
        self.assertIn("another process has it", " ".join((done.stdout + done.stderr).split()))
        lasting.send_signal(signal.SIGKILL)
        lasting.wait()
        out = self.with_plugin("simulator", *map(str, arguments[2:]), "--repeat", "3")[0]
        self.assertRegex(out, r"(?m)^simulator:0 +native")

    def wait_for_lock(self):
        for _ in range(600):
            for path in self.locks.glob("*.lock"):
                if str(path.stat().st_ino) in pathlib.Path("/proc/locks").read_text():
                    return
            time.sleep(0.1)
        self.fail("the device was not opened within a minute")


if __name__ == "__main__":
    harness.main()
