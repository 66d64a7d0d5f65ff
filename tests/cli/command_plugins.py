#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Plugins that misbehave, as a user of the command meets them: what is said, what is remembered, what is strict."""

import json
import os
import pathlib
import shutil
import signal
import subprocess
import time

import harness

ZOO = pathlib.Path(os.environ.get("TM_ZOO", "/nonexistent"))

ENDINGS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def child_of_a_terminal():
    """Whoever runs the tests may ignore these, which a child inherits."""
    for number in ENDINGS:
        signal.signal(number, signal.SIG_DFL)


class Plugins(harness.CommandTest):
    def plugin(self, *parts):
        path = ZOO.joinpath(*parts)
        if not path.is_file():
            self.skipTest(f"{path.name} is not built")
        return path

    def device_of(self, plugin):
        """The name of its first device, which is another one in each build."""
        backends = self.json_of("backends", "--plugin", plugin)["backends"]
        return next(backend["name"] for backend in backends if backend["origin"] == str(plugin)) + ":0"

    def violations(self, plugin):
        return self.json_of("backends", "--plugin", plugin)["violations"]

    def test_a_hang_is_said_and_remembered(self):
        hanger = self.plugin("hangers", "hangs_in_launch.so")
        out, err = self.run_command(
            "bench", "neg", "--dtype", "f32", "--shape", "1000", "--plugin", hanger, "--patience", "500ms", "--repeat", "3"
        )
        self.assertIn("launch did not return within 500 ms", out + err)
        found = self.violations(hanger)
        self.assertEqual([(v["device"], v["op"], v["formats"], v["count"]) for v in found],
                         [(self.device_of(hanger), "neg", "f32,f32", 1)])
        self.assertTrue(found[0]["remembered"])
        out = self.run_command("backends", "--plugin", hanger)[0]
        self.assertIn(self.device_of(hanger) + " is not asked for neg (f32,f32)", out)
        document = self.json_of("explain", "neg", "--dtype", "f32", "--shape", "1000", "--plugin", hanger)
        verdicts = {c["device"]: c["verdict"] for c in document["candidates"]}
        self.assertEqual(verdicts[self.device_of(hanger)], "quarantined")

    def interrupt_in(self, plugin, model):
        """Exit code and output of stats that is interrupted once the plugin hangs, and is expected to wait for no patience."""
        process = subprocess.Popen(
            [harness.COMMAND, "stats", model, "--json", "--plugin", plugin, "--device", self.device_of(plugin), "--no-device", "reference",
             "--patience", "600s"],
            cwd=self.folder,
            env=self.environment(TENSORMORPH_TRACE="calls"),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            preexec_fn=child_of_a_terminal,
        )
        self.addCleanup(process.kill)
        for line in process.stderr:
            if "it hangs from now on" in line:
                break
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=60)
        return process.returncode, json.loads(out), err

    def test_an_interrupt_does_not_wait_for_a_plugin(self):
        model = self.small_model()
        for call in ("open", "prepare", "launch", "wait"):
            plugin = self.plugin("greedy", f"greedy_{call}.so")
            code, document, err = self.interrupt_in(plugin, model)
            self.assertEqual((code, document["complete"], document["tensors"]), (130, False, []), call)
            self.assertIn("interrupted", err)
            self.assertEqual(sorted(os.listdir(self.folder)), [".local", model.name])
            self.assertEqual(self.violations(plugin), [], call)
            states = [b["state"] for b in self.json_of("backends", "--plugin", plugin)["backends"] if b["origin"] == str(plugin)]
            self.assertEqual(states, ["ready"], call)

    def test_settings_of_one_that_does_harm_without_them(self):
        for deed in ("aborts", "hangs"):
            name, plugin = f"zoo_tamed_{deed}", self.plugin("culprits", f"tamed_{deed}.so")
            variable = {f"TENSORMORPH_ZOO_TAMED_{deed.upper()}_TAME": "1"}
            state = lambda *more, **variables: {
                b["name"]: b["state"] for b in self.json_of("backends", "--plugin", plugin, *more, **variables)["backends"]}[name]
            # The first trial is the one without: what it told by then is what its settings are resolved by.
            self.assertEqual(state(**variable), "ready")
            if deed == "hangs":
                continue        # each further trial would cost its time
            self.assertEqual(state(), "refused")
            self.assertEqual(state("--set", f"{name}.tame=1"), "ready")
            self.assertEqual(state("--set", f"{name}.tame=0"), "refused")
            err = self.run_command("backends", "--plugin", plugin, "--set", f"{name}.tme=1", code=2)[1]
            self.assertIn("did you mean 'tame'?", err)
            err = self.run_command("backends", "--plugin", plugin, code=2, **{f"TENSORMORPH_ZOO_TAMED_{deed.upper()}_TME": "1"})[1]
            self.assertIn(f"did you mean {list(variable)[0]}?", err)

    def test_settings_that_nobody_can_check_are_told_of(self):
        mute = self.plugin("constructor_aborts.so")
        run = ("backends", "--plugin", mute)
        err = self.run_command(*run, "--set", "somebody.speed=1")[1]
        self.assertRegex(err, r"note: somebody\.speed cannot be checked: no backend is called somebody, and \S+constructor_aborts\.so was refused")
        err = self.run_command(*run, TENSORMORPH_CONSTRUCTOR_ABORTS_SPEED="1")[1]
        self.assertRegex(err, r"note: TENSORMORPH_CONSTRUCTOR_ABORTS_SPEED cannot be checked: \S+constructor_aborts\.so was refused")
        self.assertIn("unknown backend", self.run_command("backends", "--set", "somebody.speed=1", code=2)[1])

    def test_several_that_do_harm_are_told_apart(self):
        folder = self.folder / "plugins"
        folder.mkdir()
        shutil.copy(self.plugin("culprits", "tamed_aborts.so"), folder / "a.so")
        shutil.copy(self.plugin("culprits", "tamed_aborts.so"), folder / "b.so")
        shutil.copy(self.plugin("culprits", "tamed_aborts.so"), folder / "c.so")
        paths = [word for file in "abc" for word in ("--plugin", folder / f"{file}.so")]
        origins = lambda *more: {b["name"]: (harness.pathlib.Path(b["origin"]).stem, b["state"])
                                 for b in self.json_of("backends", *paths, *more)["backends"]}
        for _ in range(2):      # tried, and from what was kept
            found = origins()
            self.assertEqual([found[name] for name in ("zoo_tamed_aborts", "zoo_tamed_aborts~2", "zoo_tamed_aborts~3")],
                             [("a", "refused"), ("b", "refused"), ("c", "refused")])

    def test_a_name_without_a_folder_is_a_file_of_this_one(self):
        """And of nowhere else: the system's folders and those of the variables are for libraries."""
        elsewhere = self.folder / "elsewhere"
        elsewhere.mkdir()
        shutil.copy(self.plugin("honest.so"), elsewhere / "honest.so")
        places = {"LD_LIBRARY_PATH": str(elsewhere), "PATH": str(elsewhere)}
        out, err = self.run_command("backends", "--plugin", "honest.so", **places)
        self.assertRegex(out, r"(?m)^honest +refused")
        self.assertIn("honest.so: No such file", out)
        self.assertIn("plugin honest.so is not used", err)
        err = self.run_command("plugin", "check", "honest.so", code=3, **places)[1]
        self.assertIn("honest.so: No such file", err)
        shutil.copy(self.plugin("two_queues.so"), self.folder / "honest.so")
        names = [b["name"] for b in self.json_of("backends", "--plugin", "honest.so", **places)["backends"] if b["origin"] == "honest.so"]
        self.assertEqual(names, ["zoo_two_queues"])
        run = ("bench", "add", "--dtype", "f32", "--shape", "16", "--repeat", "3", "--plugin", "honest.so", "--device", "zoo_two_queues")
        self.assertIn("zoo_two_queues:0", self.run_command(*run, **places)[0])
        out = self.run_command("plugin", "check", "honest.so", "--only", "neg", **places)[0]
        self.assertIn("zoo_two_queues:0: ", out)

    def test_why_work_did_not_go_where_it_was_asked_to(self):
        honest, model = self.plugin("honest.so"), self.small_model()
        run = ("stats", model, "--plugin", honest, "--device", "zoo_honest")
        notes = self.json_of(*run)["notes"]
        self.assertEqual(sorted(notes), [f"{dtype} tensors went to reference:0: zoo_honest:0 refuses them" for dtype in ("f32", "i64")])
        out, err = self.run_command(*run)
        self.assertIn("note: f32 tensors went to reference:0: zoo_honest:0 refuses them", out)
        self.assertEqual(err, "")
        self.assertIn("note: f32 tensors went to reference:0", self.run_command(*run, "--csv")[1])
        self.assertNotIn("note:", "".join(self.run_command(*run, "--quiet")))
        self.assertNotIn("note:", "".join(self.run_command("stats", model, "--device", "reference")))
        self.assertNotIn("went to", "".join(self.run_command("stats", model, "--plugin", honest)))
        # Nor does a backend without a device take anything.
        absent = ("stats", model, "--plugin", self.plugin("null.so"), "--device", "zoo_null")
        notes = self.json_of(*absent)["notes"]
        self.assertEqual(len(notes), 1, notes)
        self.assertRegex(notes[0], r"^nothing went to zoo_null: it has no device here: .")
        self.assertIn("note: nothing went to zoo_null: it has no device here", self.run_command(*absent)[0])
        # Broken promises are a reason, too, and one that it can do but takes long for.
        liar, large = self.plugin("liar.so"), self.safetensors("large.safetensors", {"x": ("F32", (32 << 20,), None)})
        name = self.device_of(liar)
        self.run_command("stats", large, "--plugin", liar)
        note = self.json_of("stats", large, "--plugin", liar, "--device", name)["notes"][-1]
        self.assertRegex(note, rf"f32 tensors went to reference:0: {name} is not used for them: .+")

    def test_every_device_is_tried(self):
        """And where there is no time for that, it is said."""
        for habit, state, words in (
            ("crashes_in_query", "refused", r"query of \w+ on device 199 ends the process with signal 6 \(tried in a process of its own\)\Z"),
            ("crashes_in_launch", "refused", r"launch of \w+ f32 on device 199 ends the process with signal 6 \(tried in a process of its own\)\Z"),
            ("answers_slowly", "ready", r"\Ain its trial it was not asked about every kind of operation on devices 0 to 2 \(all devices have 5 s together\)\Z"),
            ("sets_up_long", "ready", r"\Ain its trial it did not run every kind that it claims on devices 0 to 2 \(all devices have 20 s together\)\Z"),
            ("is_well", "ready", r"\A\Z"),
        ):
            with self.subTest(habit=habit):
                crowd = self.plugin("crowd", f"{habit}.so")
                (found,) = [b for b in self.json_of("backends", "--plugin", crowd)["backends"] if b["origin"] == str(crowd)]
                self.assertEqual(found["state"], state, found)
                self.assertRegex(found["reason"] if state == "refused" else found["note"], words)

    def test_who_is_loaded_untried_is_said(self):
        honest = self.plugin("honest.so")
        nowhere = {"TENSORMORPH_PROBE": "/nonexistent/probe"}
        for arguments in (["backends"], ["ops", "neg"], ["explain", "neg", "--dtype", "f32", "--shape", "9"], ["plugin", "list"]):
            out, err = self.run_command(*arguments, "--plugin", honest, **nowhere)
            self.assertRegex(err, r"\Atensormorph: note: plugin \S+honest\.so is loaded without a trial: [^\n]+\n\Z")
        out, err = self.run_command("backends", "--plugin", honest, "--quiet", **nowhere)
        self.assertEqual(err, "")
        self.assertRegex(out, r"(?m)^zoo_honest: loaded without a trial: .*/nonexistent/probe")
        found = {b["name"]: b["is_untried"] for b in self.json_of("backends", "--plugin", honest, **nowhere)["backends"]}
        self.assertEqual([name for name, untried in found.items() if untried], ["zoo_honest"])
        self.assertEqual(self.run_command("backends", "--plugin", honest)[1], "")

    def test_a_second_crash_is_known_at_the_next_start(self):
        crasher = self.plugin("crashers", "crashes_at_1.so")
        arguments = ["bench", "neg", "--dtype", "f32", "--shape", "1000", "--plugin", crasher, "--repeat", "3"]
        self.run_command(*arguments, code=-signal.SIGABRT)
        self.assertEqual(self.violations(crasher), [])
        self.run_command(*arguments, code=-signal.SIGABRT)
        found = self.violations(crasher)
        self.assertEqual([(v["device"], v["op"]) for v in found], [(self.device_of(crasher), "neg")])
        self.assertIn("ended while they were in launch", found[0]["reason"])
        self.run_command(*arguments)

    def test_a_second_late_crash_is_known_at_the_next_start(self):
        crasher = self.plugin("crashers", "crashes_at_5.so")
        arguments = ["bench", "neg", "--dtype", "f32", "--shape", "1000", "--plugin", crasher, "--repeat", "9"]
        self.run_command(*arguments, code=-signal.SIGABRT)
        self.assertEqual(self.violations(crasher), [])
        self.run_command(*arguments, code=-signal.SIGABRT)
        found = self.violations(crasher)
        self.assertEqual([(v["device"], v["op"], v["formats"]) for v in found], [(self.device_of(crasher), "neg", "f32,f32")])
        self.assertIn("ended while they were in a run after its trial", found[0]["reason"])
        self.run_command(*arguments)

    def end_while_it_hangs(self, number):
        """Runs a command that hangs in a watched launch, and sends it a signal there."""
        hanger = self.plugin("hangers", "hangs_in_launch.so")
        marks = self.folder / ".local/state/tensormorph"
        process = subprocess.Popen(
            [harness.COMMAND, "bench", "neg", "--dtype", "f32", "--shape", "1000", "--plugin", hanger, "--patience", "60s"],
            env=self.environment(),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            preexec_fn=child_of_a_terminal,
        )
        for _ in range(600):
            if any(b"launch" in mark.read_bytes() for mark in marks.glob("running-*")):
                break
            time.sleep(0.05)
        else:
            self.fail("no launch was marked")
        process.send_signal(number)
        process.communicate(timeout=30)
        self.assertEqual(process.returncode, -number)
        return hanger, list(marks.glob("running-*"))

    def test_who_is_told_to_end_leaves_no_mark(self):
        for number in ENDINGS:
            _, left = self.end_while_it_hangs(number)
            self.assertEqual(left, [])

    def test_who_is_killed_makes_nobody_guilty_at_once(self):
        hanger, left = self.end_while_it_hangs(signal.SIGKILL)
        self.assertEqual(len(left), 1)
        self.assertEqual(self.violations(hanger), [])
        self.end_while_it_hangs(signal.SIGKILL)
        self.assertEqual(len(self.violations(hanger)), 1)

    def test_state_has_a_folder_of_its_own(self):
        crasher = self.plugin("crashers", "crashes_at_1.so")
        arguments = ["bench", "neg", "--dtype", "f32", "--shape", "9", "--plugin", crasher]
        elsewhere = self.folder / "elsewhere"
        self.run_command(*arguments, code=-signal.SIGABRT, XDG_STATE_HOME=str(elsewhere))
        self.assertEqual(len(list((elsewhere / "tensormorph").glob("running-*"))), 1)
        self.assertFalse((self.folder / ".local").exists())
        self.run_command(*arguments, code=-signal.SIGABRT, HOME=None)
        self.assertEqual(self.violations(crasher), [])

    def test_an_exit_by_a_plugin_is_no_success(self):
        """It calls exit(0) in its first launch behind the trial: no output, and no code that says that all is well."""
        leaver = self.plugin("careless", "leaves.so")
        out, err = self.run_command(
            "bench", "neg", "--dtype", "f32", "--shape", "1000", "--plugin", leaver, "--device", "zoo_leaves", "--repeat", "3", code=3
        )
        self.assertEqual(out, "")
        self.assert_one_line(err)
        self.assertIn("something that was loaded ended the process before the command was done; at work was zoo_leaves (launch)", err)
        self.assertIn("--no-device does without it, and tensormorph plugin check tries it", err)
        err = self.run_command(
            "bench", "neg", "--dtype", "f32", "--shape", "1000", "--plugin", leaver, "--device", "zoo_leaves", "--repeat", "3", code=3,
            TENSORMORPH_CONFORMANCE="/nowhere",
        )[1]
        self.assertTrue(err.endswith("--no-device does without it\n"), err)     # where there is no check, none is recommended

    def test_runs_that_cannot_be_measured(self):
        for count in 0, 100001:
            out, err = self.run_command("bench", "neg", "--dtype", "f32", "--shape", "10", "--repeat", count, code=2)
            self.assertEqual((out, err), ("", "tensormorph: bench: --repeat wants a whole number from 1 to 100000\n"))

    def test_strict(self):
        # Large enough to be worth waking a backend that is known by its record.
        liar, model = self.plugin("liar.so"), self.safetensors("large.safetensors", {"x": ("F32", (32 << 20,), None)})
        out = self.run_command("stats", model, "--plugin", liar)[0]
        self.assertIn(self.device_of(liar), out)
        (self.folder / ".local/state/tensormorph/health").unlink()
        err = self.run_command("stats", model, "--plugin", liar, "--strict", code=3)[1]
        self.assertIn(self.device_of(liar), err)
        self.assertIn("strict", err)


if __name__ == "__main__":
    harness.main()
