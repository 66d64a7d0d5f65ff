# SPDX-License-Identifier: Apache-2.0
"""What holds of every subcommand, by the list that the command itself prints: no output is lost without a word, --json
gives one document or is refused, and nothing that a terminal would obey comes from a name."""

import json
import os
import re
import shutil
import subprocess

import harness

ZOO = harness.pathlib.Path(harness.COMMAND).parent.parent / "tests" / "zoo"
GRAPH = """{"tensormorph_graph": 1, "items": [
  {"kind": "input", "value": 0, "name": "x", "format": "f32", "dims": [4]},
  {"kind": "node", "values": [1], "op": "neg", "version": 1, "inputs": [0], "results": [{"format": "f32", "dims": [4]}]}]}"""
OPERATION = ("add", "--dtype", "f32", "--shape", "16")


class Every(harness.CommandTest):
    def names(self):
        """The subcommands; of those that do several things, what each is called with."""
        overview = self.run_command("help", COLUMNS="200")[0]
        section = overview.split("commands:\n")[1].split("\n\n")[0]
        names = re.findall(r"^  (\w+)", section, re.MULTILINE)
        self.assertGreater(len(names), 5)
        return [called for name in names for called in self.called_with(name)]

    def called_with(self, name):
        usage = re.match(rf"usage: tensormorph {name} (.*)\n", self.run_command(name, "--help", COLUMNS="200")[0])[1]
        actions = re.findall(r"(?:^|\| )([a-z]+)\b", usage.split(" [OPTION")[0]) if " | " in usage else []
        return [f"{name} {action}" for action in actions] or [name]

    def calls(self):
        """A call of each that prints something; one that is missing here is an error."""
        model = self.small_model()
        graph = self.folder / "graph.json"
        graph.write_text(GRAPH)
        forms = {
            "backends": [["backends"], ["backends", "--options"]],
            "ops": [["ops"], ["ops", "add"]],
            "inspect": [["inspect", model]],
            "stats": [["stats", model]],
            "check": [["check", model]],
            "diff": [["diff", model, model], ["diff", model, model, "--all", "--by", "layer"]],
            "merge": [["merge", "--linear", "-f", "-o", "merged.safetensors", model, model],
                      ["merge", "--linear", "-n", "-o", "new.gguf", model]],
            "explain": [["explain", *OPERATION], ["explain", "--graph", graph], ["explain", "--graph", graph, "--node", "0"]],
            "bench": [["bench", *OPERATION, "--repeat", "3"]],
            "calibrate": [["calibrate", "--seconds", "1"]],
            "profile show": [["profile", "show"]],
            "profile reset": [["profile", "reset"], ["profile", "reset", "reference"]],
            "profile export": [["profile", "export", "learned", "-f"]],
            "profile import": [["profile", "import", self.learned()]],
            "help": [["help"], ["help", "stats"]],
            "plugin check": [["plugin", "check", "reference", "--only", "neg", "--formats", "f32,f32", "--case", "3"]],
            "plugin new": [["plugin", "new", "shiny"]],
            "plugin list": [["plugin", "list"]],
            "plugin forgive": [["plugin", "forgive", "reference"]],
        }
        self.assertEqual(sorted(forms), sorted(self.names()))
        return forms

    def learned(self, name="learned before"):
        """A file of what was measured."""
        self.run_command("profile", "export", self.folder / name)
        return self.folder / name

    def odd_model(self):
        """One that does not go together with the others, in a tensor whose name a terminal would obey."""
        tensors = {"layers.0.weight": ("F32", (3, 4), bytes(48)), "w\x1b[2J\u202e": ("F32", (1,), bytes(4))}
        return self.safetensors("odd\x1b.safetensors", tensors)

    def run_into(self, arguments, shell_redirection):
        shutil.rmtree(self.folder / "shiny", ignore_errors=True)
        done = subprocess.run(
            ["sh", "-c", f'exec "$0" "$@" {shell_redirection}', harness.COMMAND, *map(str, arguments)],
            cwd=self.folder,
            env=self.environment(),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            timeout=120,
        )
        return done.returncode, done.stdout.decode(), done.stderr.decode()

    def test_output_that_cannot_be_written_is_trouble(self):
        everything = [call for calls in self.calls().values() for call in calls]
        everything += [[*call, "--json"] for call in everything if call[0] != "help"]
        everything += [[*name.split(), "--help"] for name in self.names()]
        everything += [["--help"], ["--version"], ["--version", "--json"], ["stats", "--csv", self.small_model()]]
        for call in everything:
            for redirection, reason in ((">/dev/full", "No space left"), (">&-", "Bad file descriptor"), (">&- <&-", "Bad file")):
                with self.subTest(call=call, redirection=redirection):
                    code, out, err = self.run_into(call, redirection)
                    self.assertEqual((code, out), (3, ""), err)
                    self.assertRegex(err, r"tensormorph: cannot write the output.*\n\Z")
                    if call[:2] != ["plugin", "check"]:
                        self.assertIn(reason, err)

    def test_nothing_lands_in_a_file_that_takes_the_place_of_a_closed_stream(self):
        for redirection in (">&-", "2>&-", ">&- 2>&-", "<&- >&- 2>&-"):
            for call in (["bench", *OPERATION, "--repeat", "3", "--plugin", ZOO / "two_queues.so"], ["stats", self.small_model()], ["stats", "missing"]):
                with self.subTest(call=call, redirection=redirection):
                    self.run_into(call, redirection)
        kept = [path for path in (self.folder / ".local").rglob("*") if path.is_file()]
        self.assertTrue(kept)
        for path in kept:
            self.assertNotRegex(path.read_bytes(), rb"work: |cannot write|cannot open|No such file")

    def test_json_is_one_document_or_refused(self):
        for name, calls in self.calls().items():
            for call in calls:
                with self.subTest(call=call):
                    code, out, err = self.run_into([*call, "--json"], "")
                    if name == "help":
                        self.assertEqual((code, out), (2, ""))
                        self.assert_one_line(err)
                        continue
                    self.assertEqual(code, 0, err)
                    self.assertRegex(json.loads(out)["schema"], r"\Atensormorph\.[a-z-]+/\d+\Z")
        self.assertEqual(self.json_of("--version")["schema"], "tensormorph.version/1")
        self.assertEqual(self.json_of("plugin", "new", "bright", "--folder", "here")["source"], "here/bright.c")
        self.assertTrue((self.folder / "here" / "bright.c").is_file())
        # Where the user wants documents everywhere, help is help all the same, and quiet leaves results alone.
        self.assertIn("usage", self.run_command("help", TENSORMORPH_JSON="1")[0])
        self.assertEqual(self.json_of("plugin", "forgive", "reference", "--quiet")["forgotten"], 0)

    def test_forgive_as_a_document(self):
        plugin = ("--plugin", ZOO / "constructor_aborts.so")
        self.run_command("backends", *plugin)
        forgiven = self.json_of("plugin", "forgive", "constructor_aborts", *plugin)
        self.assertEqual((forgiven["name"], forgiven["was_refused"]), ("constructor_aborts", True))
        self.assertGreater(forgiven["forgotten"], 0)

    def test_names_reach_the_terminal_escaped(self):
        """A refused plugin is called by its file, which may be called anything."""
        evil = "e\x1b[31mvil\u009b2J\u202e"
        folder = self.folder / "plug\x1bins"
        folder.mkdir()
        (folder / f"{evil}.so").write_text("no library")
        shutil.copy(ZOO / "honest.so", folder / "h\x07onest.so")
        model = self.small_model("mod\x1bel.safetensors")
        calls = {
            "backends": [["backends"], ["backends", "--options"]],
            "ops": [["ops", "add"]],
            "inspect": [["inspect", model]],
            "stats": [["stats", model], ["stats", "no\x1bne"]],
            "check": [["check", model], ["check", "no\x1bne"]],
            "diff": [["diff", model, model, "--all"], ["diff", model, "no\x1bne"]],
            "merge": [["merge", "--linear", "-f", "-o", f"{evil}.safetensors", model, self.odd_model()],
                      ["merge", "--linear", "-o", evil, model],
                      ["merge", "--linear", "-o", "x.safetensors", model, "-w", f"{evil}=1"], ["merge", "--recipe", f"no{evil}"]],
            "explain": [["explain", *OPERATION]],
            "bench": [["bench", *OPERATION, "--repeat", "3"]],
            "calibrate": [["calibrate", "--seconds", "1"]],
            "profile show": [["profile", "show"]],
            "profile reset": [["profile", "reset"], ["profile", "reset", evil], ["profile", "reset", f"no{evil}"]],
            "profile export": [["profile", "export", evil], ["profile", "export", "-f", evil], ["profile", "export", f"no{evil}/file"]],
            "profile import": [["profile", "import", self.learned(evil)], ["profile", "import", f"no{evil}"], ["profile", "import", model]],
            "help": [["help", evil]],
            "plugin check": [["plugin", "check", folder / f"{evil}.so"], ["plugin", "check", folder / "h\x07onest.so", "--only", "neg"]],
            "plugin new": [["plugin", "new", "bright", "--folder", f"to{evil}"], ["plugin", "new", "bright", "--folder", f"to{evil}"]],
            "plugin list": [["plugin", "list"]],
            "plugin forgive": [["plugin", "forgive", evil], ["plugin", "forgive", f"no{evil}"]],
        }
        self.assertEqual(sorted(calls), sorted(self.names()))
        said = ""
        for call in [call for several in calls.values() for call in several]:
            for more in ([], ["--json"], ["--plugin", folder / f"{evil}.so", "--device", evil]):
                with self.subTest(call=call, more=more):
                    done = subprocess.run(
                        [harness.COMMAND, *map(str, call), *map(str, more)],
                        cwd=self.folder,
                        env=self.environment(TENSORMORPH_PLUGIN_PATH=str(folder), TENSORMORPH_TRACE="calls"),
                        stdin=subprocess.DEVNULL,
                        capture_output=True,
                        timeout=120,
                    )
                    text = (done.stdout + done.stderr).decode()
                    self.assertFalse([c for c in text if (ord(c) < 32 and c != "\n") or 127 <= ord(c) < 160 or c == "\u202e"], text)
                    said += text
        self.assertIn(r"e\x1b[31mvil\u009b2J\u202e", said)


if __name__ == "__main__":
    if not os.access("/dev/full", os.W_OK):
        print("skipped: there is no /dev/full here")
        raise SystemExit(77)
    harness.main()
