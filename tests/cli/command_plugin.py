# SPDX-License-Identifier: Apache-2.0
"""tensormorph plugin: what check prints and understands; new, list, forgive; the trace of calls."""

import json
import os
import re
import shlex
import shutil

import harness
import zoo
from zoo import ZOO


class Check(zoo.ZooTest):
    def test_built_in_backends_by_name(self):
        names = [backend["name"] for backend in self.json_of("backends")["backends"] if backend["state"] == "ready"]
        self.assertIn("reference", names)
        for name in names:
            code, out, _ = self.check(name, "--budget", 5)
            self.assertEqual(code, 0, out)

    def test_the_printed_command_repeats_the_failure(self):
        folder = self.folder / "it's a folder"
        folder.mkdir()
        shutil.copy(self.animal("wrong"), folder)
        _, out, _ = self.check(folder / "wrong.so", "--seed", 5, "--budget", 4)
        commands = re.findall(r"^    tensormorph (plugin check .*)$", out, re.MULTILINE)
        self.assertGreater(len(commands), 2)
        for command in commands:
            code, again, err = self.check(*shlex.split(command)[2:])
            self.assertEqual(code, 1, again + err)
            self.assertIn(command, again)

    def test_without_isolation_it_says_the_same(self):
        words = (self.animal("wrong"), "--only", "neg", "--formats", "f32,f32", "--case", 3)
        isolated, direct = self.check(*words), self.check(*words, "--no-isolate")
        self.assertEqual(isolated, direct)
        self.assertEqual(isolated[0], 1)

    def test_json(self):
        code, out, _ = self.check(self.animal("two_queues"), "--json", "--budget", 5)
        report = json.loads(out)
        self.assertEqual((code, report["schema"]), (0, "tensormorph.conformance/2"))
        (device,) = report["devices"]
        self.assertEqual((device["backend"], device["device"], device["failures"]), ("zoo_two_queues", 0, 0))
        self.assertEqual({claim["operation"] for claim in device["claims"]}, {"copy", "add", "neg"})
        self.assertTrue({"order", "transfers", "threads"} <= {check["name"] for check in device["checks"]})
        code, out, _ = self.check(self.animal("wrong"), "--json", "--budget", 4)
        self.assertEqual(code, 1)
        failed = [claim for claim in json.loads(out)["devices"][0]["claims"] if claim["failures"]]
        self.assertTrue(all(claim["failure"] and claim["failed_case"] is not None for claim in failed) and failed)

    def test_the_manifest_is_read_first(self):
        """What the host refuses a plugin for, the check does, in the same words."""
        plugin, manifest = self.folder / "beside.so", self.folder / "beside.json"
        shutil.copy(self.animal("honest"), plugin)
        good = {"schema": 1, "name": "zoo_honest"}
        lies = [
            {"name": "another"}, {"version": "2"}, {"file": "other.so"}, {"architecture": "pdp11"}, {"abi": "9.1"}, {"sha256": "0" * 64},
            {"sha256": "12"}, {"watches": ["here"]}, {"processor_features": ["warp_drive"]}, {"schema": 2}, {"more": " " * 70000},
        ]
        for text in ["{", "[]", *(json.dumps({**good, **lie}) for lie in lies)]:
            with self.subTest(text=text[:80]):
                manifest.write_text(text)
                self.expect_the_same_refusal(plugin)
        manifest.unlink()
        for make in (lambda: os.mkfifo(manifest), lambda: manifest.symlink_to("/dev/zero"), lambda: manifest.symlink_to("nowhere")):
            make()
            self.expect_the_same_refusal(plugin)
            manifest.unlink()
        manifest.write_text(json.dumps({**good, "version": "1", "file": "beside.so"}))
        self.assertEqual(self.check(plugin, "--only", "neg", "--cases", 2)[0], 0)
        # Nor does anything of it run: its constructor aborts.
        shutil.copy(self.animal("constructor_aborts"), plugin)
        manifest.write_text(json.dumps({**good, "architecture": "pdp11"}))
        self.assertIn("another architecture", self.expect_the_same_refusal(plugin))

    def expect_the_same_refusal(self, plugin):
        (found,) = [b for b in self.json_of("backends", "--plugin", plugin)["backends"] if b["origin"] == str(plugin)]
        self.assertEqual(found["state"], "refused", found)
        code, out, err = self.check(plugin)
        self.assertEqual((code, out, err), (3, "", f"tensormorph: {found['reason']}\n"))
        return err

    def test_one_device_of_several(self):
        code, out, _ = self.check(self.animal("eager"), "--device", "2", "--budget", 3)
        self.assertEqual((code, out.count("claims checked, ")), (0, 1), out)
        self.assertIn("zoo_eager:2", out)

    def test_options_of_the_backend(self):
        code, _, err = self.check("reference", "--set", "reference.nonsense=1")
        self.assertEqual(code, 2)
        self.assertIn("reference has no option nonsense", err)
        code, _, err = self.check("reference", "--set", "nobody.nonsense=1", "--only", "neg")
        self.assertEqual((code, err), (0, ""))

    def test_wrong_usage(self):
        for arguments, code, said in (
            (["plugin"], 2, "something is missing"),
            (["plugin", "chek", "x"], 2, 'did you mean "check"?'),
            (["plugin", "check"], 2, "usage: tensormorph plugin check FILE|NAME"),
            (["plugin", "list", "x"], 2, "one operand too many"),
            (["plugin", "list", "--full"], 2, "plugin list has no option --full"),
            (["plugin", "check", "reference", "--folder", "x"], 2, "plugin check has no option --folder"),
            (["plugin", "check", "reference", "--quick", "--full"], 2, "exclude each other"),
            (["plugin", "check", "reference", "--device", "a:b"], 2, "--device wants NAME:INDEX"),
            (["plugin", "check", "reference", "--seed", "x"], 2, "--seed wants a whole number"),
            (["plugin", "check", "reference", "--only", "nonsense"], 2, "does not understand --only nonsense: it wants an operation (see tensormorph ops) or one of the checks process, "),
            (["plugin", "check", "reference", "--only", "neg", "--formats", "f32"], 2, "does not understand --formats f32"),
            (["plugin", "check", "reference", "--formats", "f32,f32"], 2, "does not understand --formats f32,f32: it wants the formats of all operands"),
            (["plugin", "check", "reference", "--cases", "1"], 2, "does not understand --cases 1: it wants a whole number from 2 to 1000000"),
            (["plugin", "check", "reference", "--budget", "0"], 2, "does not understand --budget 0: it wants a whole number from 1 to "),
            (["plugin", "check", "nobody_has_this"], 3, "there is no backend nobody_has_this"),
            (["plugin", "check", "missing.so"], 3, "missing.so: No such file"),
            (["plugin", "check", "/etc/passwd"], 3, "not a shared object"),
        ):
            with self.subTest(arguments=arguments):
                out, err = self.run_command(*arguments, code=code)
                self.assertEqual(out, "")
                self.assertIn(said, err)
                self.assert_one_line(err)


class New(harness.CommandTest):
    def test_a_name_of_a_library_is_no_clash(self):
        """What pthread.h declares must not be declared otherwise."""
        self.run_command("plugin", "new", "pthread", "--queue")
        source = (self.folder / "pthread" / "pthread.c").read_text()
        self.assertIn("pthread_backend_cancel(", source)
        self.assertNotIn(" pthread_cancel(", source)

    def test_names_that_are_taken(self):
        built_in = [backend["name"] for backend in self.json_of("backends")["backends"] if backend["origin"] == "built-in"]
        for name in (*built_in, "tm"):
            out, err = self.run_command("plugin", "new", name, code=2)
            self.assert_one_line(err)
            self.assertIn("taken by the library itself", err)
            self.assertFalse((self.folder / name).exists())


class Help(harness.CommandTest):
    def test_each_action_has_its_own(self):
        pages = {name: self.run_command("plugin", name, "--help")[0] for name in ("check", "new", "list", "forgive")}
        self.assertEqual(len(set(pages.values())), 4)
        for name, page in pages.items():
            self.assertTrue(page.startswith(f"usage: tensormorph plugin {name} "), page)
            self.assertEqual("--seed" in page, name == "check")
            self.assertEqual("--queue" in page, name == "new")
        whole = self.run_command("plugin", "--help")[0]
        self.assertTrue("--seed" in whole and "--queue" in whole, whole)


class Others(harness.CommandTest):
    def test_list(self):
        self.assertIn("no plugins found", self.run_command("plugin", "list")[0])
        folder = self.folder / "plugins"
        folder.mkdir()
        shutil.copy(ZOO / "honest.so", folder)
        shutil.copy(ZOO / "no_launch.so", folder)
        out, _ = self.run_command("plugin", "list", TENSORMORPH_PLUGIN_PATH=folder)
        self.assertRegex(out, r"zoo_honest .*ready")
        self.assertIn("'launch' is missing", out)
        rows = self.json_of("plugin", "list", TENSORMORPH_PLUGIN_PATH=folder)["plugins"]
        self.assertEqual({row["state"] for row in rows}, {"ready", "refused"})
        self.assertEqual([row["devices"] for row in rows if row["state"] == "ready"], ["zoo_honest:0"])
        self.run_command("plugin", "check", "zoo_honest", "--only", "neg", TENSORMORPH_PLUGIN_PATH=folder)

    def test_forgive(self):
        err = self.run_command("plugin", "forgive", "nobody_has_this", code=3)[1]
        self.assertIn("nobody_has_this", err)
        # A broken promise is remembered, and forgotten.
        hanger = ZOO / "hangers" / "hangs_in_launch.so"
        name = next(backend["name"] for backend in self.json_of("backends", "--plugin", hanger)["backends"] if backend["origin"] == str(hanger))
        self.run_command("bench", "neg", "--plugin", hanger, "--dtype", "f32", "--shape", "64", "--repeat", "3", "--patience", "300ms")
        out = self.run_command("plugin", "forgive", name, "--plugin", hanger)[0]
        self.assertEqual(out, f"1 broken promise of {name} forgotten\n")
        out = self.run_command("plugin", "forgive", name, "--plugin", hanger)[0]
        self.assertEqual(out, f"nothing is held against {name}\n")
        # So is a refusal.
        refused = ("backends", "--plugin", ZOO / "constructor_aborts.so")
        kept = lambda: {path.name for path in self.folder.rglob("backends/*")}
        before = kept()
        self.run_command(*refused)
        self.assertNotEqual(kept(), before)
        out = self.run_command("plugin", "forgive", "constructor_aborts", "--plugin", ZOO / "constructor_aborts.so")[0]
        self.assertEqual(out, "the refusal of constructor_aborts is forgotten: it is tried anew at the next start\n")
        self.assertEqual(kept(), before)

    def test_new(self):
        out, _ = self.run_command("plugin", "new", "shiny_2")
        self.assertIn("wrote shiny_2", out)
        written = sorted(path.name for path in (self.folder / "shiny_2").iterdir())
        self.assertEqual(written, ["CMakeLists.txt", "Makefile", "README.md", "shiny_2.c"])
        text = "".join(path.read_text() for path in (self.folder / "shiny_2").iterdir())
        self.assertNotIn("@NAME@", text)
        self.assertIn('TM_DEFINE_PLUGIN("shiny_2"', text)
        self.assertIn("exists already", self.run_command("plugin", "new", "shiny_2", code=2)[1])
        self.run_command("plugin", "new", "other", "--folder", "elsewhere", "--quiet")
        self.assertTrue((self.folder / "elsewhere" / "other.c").is_file())
        for name in ("", "9lives", "has-dash", "Upper", "a b", "x" * 49, "../up", "tm", "reference", "ümlaut"):
            err = self.run_command("plugin", "new", name, code=2)[1]
            self.assert_one_line(err)
        self.assertEqual(sorted(path.name for path in self.folder.iterdir() if not path.name.startswith(".")), ["elsewhere", "shiny_2"])
        self.assertIn("No such file", self.run_command("plugin", "new", "deep", "--folder", "no/such/place", code=3)[1])

    def test_bench_shows_what_was_foretold(self):
        run = ("bench", "add", "--plugin", ZOO / "two_queues.so", "--dtype", "f32", "--shape", "4096", "--repeat", "3")
        rows = {row["device"]: row for row in self.json_of(*run)["results"]}
        far, reference = rows["zoo_two_queues:0"], rows["reference:0"]
        self.assertEqual(far["declared_ns"], 1)
        self.assertGreater(far["copy_ns"], 0)
        self.assertEqual(reference["copy_ns"], 0)
        self.assertTrue(all(row["setup_ns"] is not None and row["declared_setup_ns"] is not None for row in rows.values()))
        self.assertRegex(self.run_command(*run, COLUMNS="200")[0], r"expected +declared +copies +set-up")

    def test_trace_of_calls(self):
        run = ("bench", "add", "--plugin", ZOO / "two_queues.so", "--device", "zoo_two_queues", "--dtype", "f32", "--shape", "64", "--repeat", "3")
        self.assertEqual(self.run_command(*run)[1], "")
        err = self.run_command(*run, TENSORMORPH_TRACE="calls")[1]
        line = r"^call \d+\.\d+ thread \d+ zoo_two_queues\.%s.* -> %s.* in \d+ ns$"
        for function, status in (
            ("init", "ok"), ("query device 0, 1 of add f32\\[64\\] f32\\[64\\] f32\\[64\\]", "ok, level 2 N0"), ("prepare add", "ok"),
            ("buffer_create space 0, 256 bytes", "ok"), ("upload queue", "ok, ticket"), ("launch queue", "ok, ticket"), ("wait", "ok"),
            ("download", "ok"), ("release", "done"), ("buffer_destroy", "done"),
        ):
            self.assertRegex(err, re.compile(line % (function, status), re.MULTILINE))
        # What it marks itself stands between its calls.
        begun = re.findall(r"^span (\d+\.\d+) thread \d+ zoo_two_queues begins enqueuing\\x1b$", err, re.MULTILINE)
        ended = re.findall(r"^span (\d+\.\d+) thread \d+ zoo_two_queues ended after \d+ ns$", err, re.MULTILINE)
        self.assertGreater(len(begun), 2)
        self.assertEqual(begun, ended)
        # No device is asked the same twice, though what another accepted class would change is asked, too.
        err = self.run_command("explain", *run[1:-2], TENSORMORPH_TRACE="calls")[1]
        asked = re.findall(r"two_queues\.query (device 0, 1 of add .*?) ->", err)
        self.assertEqual(len(asked), len(set(asked)), asked)
        self.assertGreater(len(asked), 1)
        self.assertIn("wants \"calls\"", self.run_command("backends", code=2, TENSORMORPH_TRACE="everything")[1])


if __name__ == "__main__":
    harness.main()
