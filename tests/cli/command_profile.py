# SPDX-License-Identifier: Apache-2.0
"""tensormorph profile and calibrate: what is learned is shown, kept, moved and forgotten; odd files and words."""

import json
import os
import signal
import subprocess
import time

import harness

BENCH = ("bench", "add", "--device", "reference", "--dtype", "f32", "--shape", "1000x10", "--repeat", "40")


class Profile(harness.CommandTest):
    def entries(self, **variables):
        document = self.json_of("profile", "show", **variables)
        self.assertEqual(document["schema"], "tensormorph.profile/1")
        return document["entries"]

    def learn(self):
        self.run_command(*BENCH)
        entries = self.entries()
        self.assertTrue(entries)
        return entries

    def test_nothing_is_known_at_first(self):
        self.assertIn("calibrate", self.run_command("profile", "show")[0])
        self.assertEqual(self.entries(), [])

    def test_what_ran_is_known_to_the_next_process(self):
        entries = self.learn()
        operations = [entry for entry in entries if entry["kind"] == "operation" and entry["device"] == "reference:0"]
        self.assertIn("add f32,f32,f32 2^16", {entry["of"] for entry in operations})
        for entry in entries:
            self.assertEqual(set(entry), {"device", "kind", "of", "factor", "spread", "samples", "time_ns"})
            self.assertGreater(entry["samples"], 0)
        self.assertRegex(self.run_command("profile", "show")[0], r"reference:0 +operation +add f32,f32,f32 2\^16 +x")
        device = [one for one in self.json_of("backends")["devices"] if one["name"] == "reference:0"][0]
        self.assertGreater(device["cost_samples"], 0)
        self.assertGreaterEqual(device["cost_spread"], 1)
        self.assertEqual(device["broken_promises"], 0)
        self.assertRegex(self.run_command("backends")[0], r"reference:0 .* x[0-9.e+-]+ within x[0-9.e+-]+ \([0-9]+\)")

    def test_explain_uses_it(self):
        request = ("explain", "add", "--device", "reference", "--dtype", "f32", "--shape", "1000x10")
        before = self.json_of(*request)["candidates"][0]
        self.learn()
        after = [one for one in self.json_of(*request)["candidates"] if one["device"] == "reference:0"][0]
        self.assertEqual(before["correction"], 1)
        self.assertNotEqual(after["correction"], 1)

    def test_export_and_import(self):
        known = {(entry["device"], entry["kind"], entry["of"]) for entry in self.learn()}
        out, _ = self.run_command("profile", "export", "learned.txt")
        self.assertEqual(out, "wrote learned.txt\n")
        elsewhere = {"XDG_STATE_HOME": str(self.folder / "elsewhere")}
        self.assertEqual(self.entries(**elsewhere), [])
        out, _ = self.run_command("profile", "import", "learned.txt", **elsewhere)
        self.assertRegex(out, r"\A[0-9]+ entries read from learned.txt\n\Z")
        self.assertEqual({(entry["device"], entry["kind"], entry["of"]) for entry in self.entries(**elsewhere)}, known)
        done = self.json_of("profile", "import", "learned.txt", **elsewhere)
        self.assertEqual((done["schema"], done["action"]), ("tensormorph.profile-change/1", "import"))

    def test_what_is_read_twice_does_not_count_twice(self):
        self.learn()
        samples = sum(entry["samples"] for entry in self.entries())
        self.run_command("profile", "export", "learned.txt")
        for _ in range(2):
            self.run_command("profile", "import", "learned.txt")
            self.assertEqual(sum(entry["samples"] for entry in self.entries()), samples)

    def test_a_calibration_that_is_killed_keeps_what_it_measured(self):
        journal = self.folder / ".local/state/tensormorph/profile.journal"
        command = [harness.COMMAND, "calibrate", "--seconds", "600", "--threads", "1"]
        with subprocess.Popen(command, env=self.environment(), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
            end = time.monotonic() + 60
            while not journal.exists() and process.poll() is None and time.monotonic() < end:
                time.sleep(0.02)
            self.assertIsNone(process.poll())
            self.assertTrue(journal.exists())
            time.sleep(0.2)
            process.kill()
        self.assertTrue(self.entries())

    def interrupted(self, sign, *arguments, **variables):
        """What calibrate says of a Ctrl-C that comes when `sign` is there; what it printed is kept as self.printed."""
        command = [harness.COMMAND, "calibrate", "--seconds", "600", "--threads", "1", *arguments]
        with subprocess.Popen(command, env=self.environment(**variables), stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                              preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL)) as process:
            end = time.monotonic() + 60
            while not sign(process) and process.poll() is None and time.monotonic() < end:
                time.sleep(0.02)
            time.sleep(0.2)
            process.send_signal(signal.SIGINT)
            self.printed, err = (text.decode() for text in process.communicate(timeout=60))
        self.assertEqual(process.returncode, -signal.SIGINT)
        return err

    def test_an_interrupted_calibration_prints_a_whole_document(self):
        journal = self.folder / ".local/state/tensormorph/profile.journal"
        for arguments in (("--json",), ("--json", "--quiet")):
            journal.unlink(missing_ok=True)
            err = self.interrupted(lambda _: journal.exists(), *arguments)
            document = json.loads(self.printed)
            self.assertIs(document["complete"], False)
            self.assertTrue(document["measurements"])
            self.assertTrue(all(row["operation"] and row["device"] for row in document["measurements"]))
            self.assertEqual("interrupted" in err, "--quiet" not in arguments, err)

    def test_an_interrupted_calibration_says_what_is_kept(self):
        journal = self.folder / ".local/state/tensormorph/profile.journal"
        err = self.interrupted(lambda _: journal.exists())
        self.assert_one_line(err)
        self.assertRegex(err, r"interrupted: [1-9][0-9]* measurements? (is|are) kept, and the one under way is dropped; tensormorph profile show")
        self.assertTrue(self.entries())

    def test_an_interrupted_calibration_without_a_place_says_that(self):
        def has_worked(process):
            """For longer than it takes to begin."""
            with open(f"/proc/{process.pid}/stat", encoding="utf-8") as file:
                return int(file.read().rsplit(")", 1)[1].split()[11]) > 2 * os.sysconf("SC_CLK_TCK")

        err = self.interrupted(has_worked, HOME=None)
        self.assertIn("nothing that is measured is kept: neither XDG_STATE_HOME nor HOME says where", err)
        out, err = self.run_command("calibrate", "--seconds", "1", "--device", "reference", HOME=None)
        self.assertIn("note: nothing that is measured is kept", err)
        self.assertTrue(out)

    def test_where_nothing_can_be_kept_that_is_said_once(self):
        (self.folder / "file").write_text("")
        err = self.run_command("calibrate", "--seconds", "1", XDG_STATE_HOME=str(self.folder / "file"), code=3)[1]
        notes = [line for line in err.splitlines() if "note: " in line]
        self.assertEqual(len(notes), 1, err)
        self.assertIn("nothing is kept", notes[0])
        self.assertEqual(self.run_command("profile", "show", XDG_STATE_HOME=str(self.folder / "file"))[1].count("note: "), 1)

    def test_a_calibration_that_is_lost_is_trouble(self):
        """Also where what stood there was no good already, which was said."""
        for name in ("profile.journal", "profile.lock"):
            with self.subTest(name=name):
                state = self.folder / f"state-of-{name}"
                (state / "tensormorph" / name).mkdir(parents=True)
                words = ("calibrate", "--seconds", "1", "--device", "reference")
                out, err = self.run_command(*words, XDG_STATE_HOME=str(state), code=3)
                self.assertIn("reference:0", out)
                self.assertEqual(err.count("not kept for the next start"), 1, err)
                self.assertIn(name, err.splitlines()[-1])

    def test_export_follows_links_and_replaces_files_only(self):
        self.learn()
        pipe, target, link = self.folder / "pipe", self.folder / "target", self.folder / "link"
        os.mkfifo(pipe)
        target.write_text("keep")
        link.symlink_to(target)
        self.run_command("profile", "export", "pipe", code=3)
        self.assertTrue(pipe.is_fifo())
        self.run_command("profile", "export", "--force", "pipe", code=3)
        self.assertTrue(pipe.is_fifo())
        self.run_command("profile", "export", "link", "--force")
        self.assertTrue(link.is_symlink())
        self.assertNotEqual(target.read_text(), "keep")

    def test_export_replaces_nothing_unasked(self):
        self.learn()
        model, link = self.small_model(), self.folder / "link"
        link.symlink_to(model)
        before = model.read_bytes()
        for path in (model, model.name, link):
            for form in ((), ("--quiet",), ("--json",)):
                out, err = self.run_command("profile", "export", path, *form, code=1)
                self.assertEqual((out, err), ("", f"tensormorph: {path} is there; --force replaces it\n"))
        self.assertEqual(model.read_bytes(), before)
        self.run_command("profile", "export", "learned.txt")
        self.run_command("profile", "export", "learned.txt", code=1)            # an earlier one, too: it may be another machine's
        self.run_command("profile", "export", "-f", "learned.txt")
        self.run_command("profile", "export", "--force", model)
        self.assertIn("entries read from", self.run_command("profile", "import", model)[0])
        for action in (["show"], ["reset"], ["import", model]):
            self.assertIn("--force is for profile export", self.run_command("profile", *action, "--force", code=2)[1])

    def test_damaged_lines_of_an_import_are_counted(self):
        self.learn()
        self.run_command("profile", "export", "learned.txt")
        lines = (self.folder / "learned.txt").read_bytes().splitlines(keepends=True)
        entries = [i for i, line in enumerate(lines) if b"\tentry\t" in line]
        self.assertGreater(len(entries), 2)
        for count, said in ((1, "1 damaged line is ignored"), (2, "2 damaged lines are ignored")):
            spoiled = list(lines)
            for i in entries[:count]:
                spoiled[i] = (b"1" if spoiled[i][:1] == b"0" else b"0") + spoiled[i][1:]
            (self.folder / "spoiled.txt").write_bytes(b"".join(spoiled))
            elsewhere = {"XDG_STATE_HOME": str(self.folder / f"elsewhere{count}")}
            err = self.run_command("profile", "import", "spoiled.txt", **elsewhere)[1]
            self.assertEqual(err, f"tensormorph: note: spoiled.txt: {said}\n")
            self.assertEqual(self.run_command("profile", "import", "spoiled.txt", "--quiet", **elsewhere)[1], "")

    def test_reset(self):
        self.learn()
        self.run_command("profile", "reset", "reference:0")
        self.assertEqual([entry for entry in self.entries() if entry["device"] == "reference:0"], [])
        self.learn()
        out, _ = self.run_command("profile", "reset")
        self.assertEqual(out, "what was learned of all devices and copies is forgotten\n")
        self.assertEqual(self.entries(), [])
        self.assertEqual(self.run_command("profile", "reset", "--quiet")[0], "")

    def test_damage_is_no_trouble(self):
        self.learn()
        state = self.folder / ".local/state/tensormorph"
        journal = state / "profile.journal"
        whole = journal.read_bytes()
        for damaged in (b"", b"hello", whole[:200], whole[:-5], b"\0" * 5000, whole.replace(b"reference", b"refer\x1b[2J")):
            journal.write_bytes(damaged)
            self.assertNotIn("\x1b", self.run_command("profile", "show")[0])
            self.run_command(*BENCH)
            self.assertTrue(self.entries())

    def test_damage_is_told_once(self):
        self.learn()
        journal = self.folder / ".local/state/tensormorph/profile.journal"
        lines = journal.read_bytes().splitlines(keepends=True)
        entry = next(i for i, line in enumerate(lines) if b"\tentry\t" in line)
        lines[entry] = (b"1" if lines[entry][:1] == b"0" else b"0") + lines[entry][1:]
        options = [option for backend in self.json_of("backends")["backends"] for option in backend["options"]
                   if option["type"] == "text"]
        for variables in [{}] + [{option["variable"]: option["default"]} for option in options[:1]]:
            journal.write_bytes(b"".join(lines))
            self.assert_one_line(self.run_command("profile", "show", **variables)[1])

    def test_damage_is_told_by_all_who_use_it(self):
        self.learn()
        journal = self.folder / ".local/state/tensormorph/profile.journal"
        damaged, model = journal.read_bytes()[:-5], self.small_model()
        operation = ("--dtype", "f32", "--shape", "9")
        for arguments in (
            ("explain", "neg", *operation),
            ("bench", "neg", *operation, "--repeat", "2"),
            ("backends",),
            ("stats", model),
            ("check", model),
            ("diff", model, model),
            ("merge", "--linear", model, model, "-o", "out.safetensors", "--dry-run"),
        ):
            with self.subTest(arguments=arguments):
                journal.write_bytes(damaged)
                err = self.run_command(*arguments)[1]
                self.assert_one_line(err)
                self.assertRegex(err, "note: what was learned of devices is not all there: .*profile.journal: 1 damaged line is ignored")
                journal.write_bytes(damaged)
                self.assertEqual(self.run_command(*arguments, "--quiet")[1], "")
        journal.write_bytes(damaged)
        self.assertEqual(self.run_command("inspect", model)[1], "")

    def test_the_output_is_no_file(self):
        """What the command says would lie in the midst of it, and where it leads changes as the output is kept for a document."""
        model = self.small_model()
        (self.folder / "link.safetensors").symlink_to("/dev/stdout")
        for path in ("/dev/stdout", "/dev/fd/1", "link.safetensors", "-"):
            for more in ((), ("--json",)):
                with self.subTest(path=path, more=more):
                    out, err = self.run_command("profile", "export", path, *more, code=2)
                    self.assertEqual(out, "")
                    said = "that is the standard output, where this command speaks; name a file"
                    self.assertEqual(err, f"tensormorph: profile export {path}: {said}\n")
                    merge = ("merge", "--linear", model, model, "--force", "-o", path)
                    self.assertIn("standard output", self.run_command(*merge, *more, code=2)[1])
                    self.assertFalse((self.folder / "-").exists())

    def test_the_output_is_known_by_any_name(self):
        """Whoever else has it: here the one that started the command."""
        read, write = os.pipe()
        for path in (f"/proc/{os.getpid()}/fd/{write}", f"/proc/{os.getpid()}/task/{os.getpid()}/fd/{write}"):
            for more in ((), ("--json",)):
                with self.subTest(path=path, more=more):
                    done = subprocess.run([harness.COMMAND, "profile", "export", path, *more], env=self.environment(), stdout=write,
                                          stderr=subprocess.PIPE, cwd=self.folder, timeout=60, check=False)
                    self.assertEqual(done.returncode, 2, done.stderr)
                    self.assertIn(b"that is the standard output", done.stderr)
        os.close(write)
        self.assertEqual(os.read(read, 1), b"")
        os.close(read)

    def test_damage_names_what_mends_it(self):
        self.learn()
        journal = self.folder / ".local/state/tensormorph/profile.journal"
        for content in (journal.read_bytes()[:-5], b"hello"):
            journal.write_bytes(content)
            self.assertIn("is ignored; what is measured and kept next mends that, or tensormorph profile reset",
                          self.run_command("profile", "show")[1])
            self.run_command("profile", "reset")
            self.assertEqual(self.run_command("profile", "show")[1], "")

    def test_wrong_usage(self):
        (self.folder / "nonsense.txt").write_text("nothing of the kind\n")
        for arguments, code, said in (
            (["profile"], 2, "something is missing"),
            (["profile", "shwo"], 2, 'did you mean "show"?'),
            (["profile", "sing"], 2, "show, reset, export and import"),
            (["profile", "show", "x"], 2, "one operand too many"),
            (["profile", "export"], 2, "usage: tensormorph profile export FILE"),
            (["profile", "import"], 2, "usage: tensormorph profile import FILE"),
            (["profile", "reset", "referense"], 3, 'did you mean "reference"?'),
            (["profile", "import", "missing.txt"], 3, "there is no such file"),
            (["profile", "import", "nonsense.txt"], 3, "it is no profile"),
            (["profile", "import", "."], 3, "no regular file"),
            (["profile", "export", "missing/x"], 3, "cannot be written"),
            (["calibrate", "x"], 2, "operand"),
            (["calibrate", "--seconds", "0"], 2, "--seconds wants 1 to 86400"),
            (["calibrate", "--seconds", "x"], 2, "--seconds wants a whole number"),
            (["calibrat"], 2, 'did you mean "calibrate"?'),
        ):
            with self.subTest(arguments=arguments):
                out, err = self.run_command(*arguments, code=code)
                self.assertEqual(out, "")
                self.assertIn(said, err)
                self.assert_one_line(err)

    def test_each_action_has_its_own_help(self):
        for name in ("show", "reset", "export", "import"):
            page = self.run_command("profile", name, "--help")[0]
            self.assertTrue(page.startswith(f"usage: tensormorph profile {name}"), page)


class Calibrate(harness.CommandTest):
    def test_it_measures_and_remembers(self):
        document = self.json_of("calibrate", "--seconds", "2", "--device", "reference")
        self.assertEqual(document["schema"], "tensormorph.calibration/1")
        measured = [one for one in document["measurements"] if one["runs"] > 0]
        self.assertTrue(measured)
        self.assertEqual({one["device"] for one in measured}, {"reference:0"})
        for one in measured:
            self.assertTrue(one["can_run"])
            self.assertGreater(one["declared_ns"], 0)
        self.assertGreater(max(one["samples"] for one in measured), 0)
        known = self.json_of("profile", "show")["entries"]
        self.assertIn("copy f32,f32 2^13", {entry["of"] for entry in known})

    def test_the_table(self):
        out, err = self.run_command("calibrate", "--seconds", "1", "--device", "reference")
        self.assertRegex(out, r"\Adevice +operation +declared +copies +measured +factor +runs\n")
        self.assertRegex(out, r"reference:0 +copy f32 1024 ")
        self.assertNotIn("\x1b", err)


if __name__ == "__main__":
    harness.main()
