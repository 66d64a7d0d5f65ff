# SPDX-License-Identifier: Apache-2.0
"""Command line over environment over configuration file; what is wrong there is said with its place."""

import os
import unittest

import harness


class Settings(harness.CommandTest):
    def config(self, text, folder=".config"):
        path = self.folder / folder / "tensormorph" / "config"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        return path

    def excluded(self, *arguments, **variables):
        document = self.json_of("backends", *arguments, **variables)
        return {backend["name"] for backend in document["backends"] if backend["state"] == "excluded"}

    def others(self):
        """Built-in backends besides the reference, which every build has."""
        return [backend["name"] for backend in self.json_of("backends")["backends"] if backend["name"] != "reference"]

    def test_config_is_read(self):
        self.config("# comment\n\nno-device = reference\n")
        self.assertIn("reference", self.excluded())

    def test_xdg_folder_wins_over_home(self):
        self.config("no-device = reference\n")
        self.config("json = no\n", "elsewhere")
        self.assertEqual(self.excluded(XDG_CONFIG_HOME=str(self.folder / "elsewhere")), set())

    def test_precedence(self):
        names = self.others()
        if not names:
            self.skipTest("only the reference is built in")
        self.config("no_device = reference\n")
        self.assertEqual(self.excluded(), {"reference"})
        self.assertEqual(self.excluded(TENSORMORPH_NO_DEVICE=names[0]), {names[0]})
        self.assertEqual(self.excluded("--no-device", "reference", TENSORMORPH_NO_DEVICE=names[0]), {"reference"})
        self.assertEqual(self.excluded("--no-device", "reference", "--no-device", names[0]), {"reference", names[0]})
        self.assertEqual(self.excluded(TENSORMORPH_NO_DEVICE=f"reference,{names[0]}"), {"reference", names[0]})

    def test_switches(self):
        self.config("json = yes\n")
        self.assertTrue(self.run_command("backends")[0].startswith("{"))
        self.assertFalse(self.run_command("backends", TENSORMORPH_JSON="0")[0].startswith("{"))
        self.assertTrue(self.run_command("backends", "--json", TENSORMORPH_JSON="0")[0].startswith("{"))

    def test_switches_turned_off_for_one_run(self):
        path = self.small_model()
        for command in (("stats", path), ("inspect", path), ("diff", path, path, "--all")):
            self.assertTrue(self.run_command(*command, TENSORMORPH_JSON="yes")[0].startswith("{"))
            self.assertFalse(self.run_command(*command, "--no-json", TENSORMORPH_JSON="yes")[0].startswith("{"))
            csv = self.run_command(*command, "--csv")[0]
            self.assertEqual(self.run_command(*command, "--csv", TENSORMORPH_JSON="yes")[0].split("\n")[0], csv.split("\n")[0])
        self.assertEqual(self.run_command("stats", path, TENSORMORPH_QUIET="yes")[1], "")
        self.run_command("stats", path, "--csv", "--json", code=2)

    def test_empty_variable_is_none(self):
        self.run_command("backends", TENSORMORPH_THREADS="", TENSORMORPH_DEVICE="")

    def test_config_that_is_no_file(self):
        path = self.config("")
        path.unlink()
        os.mkfifo(path)
        self.assert_one_line(self.run_command("backends", code=3)[1])

    @unittest.skipIf(os.geteuid() == 0, "root may read everything")
    def test_config_of_somebody_else(self):
        path = self.config("json = yes\n")
        path.chmod(0)
        out, err = self.run_command("backends")
        self.assertIn("going on without it", err)
        self.assertNotIn("schema", out)

    def test_refused_plugin_is_said(self):
        out, err = self.run_command("ops", "add", "--plugin", "/nonexistent/plugin.so")
        self.assertIn("add", out)
        self.assertIn("/nonexistent/plugin.so is not used", err)
        self.assertEqual(self.run_command("ops", "add", "--plugin", "/nonexistent/plugin.so", "--quiet")[1], "")

    def test_no_suggestion_that_leads_nowhere(self):
        err = self.run_command("backends", code=2, TENSORMORPH_SET="cpu.isa=none")[1]
        self.assertNotIn("did you mean TENSORMORPH_SET", err)

    def test_bad_config_lines(self):
        for text, said in (
            ("threads = 2\nnonsense\n", ":2: expected"),
            ("threds = 2\n", ':1: unknown key "threds"; did you mean "threads"?'),
            ("\n\nthreads = x\n", ":3: threads wants a whole number"),
            ("nobody.option = 1\n", "nobody"),
        ):
            path = self.config(text)
            err = self.run_command("backends", code=2)[1]
            self.assertIn(said, err)
            if ":" in said:
                self.assertIn(str(path), err)
            self.assert_one_line(err)

    def test_bad_variables(self):
        for name, value, said in (
            ("TENSORMORPH_THREADS", "x", "TENSORMORPH_THREADS wants a whole number"),
            ("TENSORMORPH_THREDS", "1", "did you mean TENSORMORPH_THREADS?"),
            ("TENSORMORPH_QQQQQQQQ", "1", "unknown variable TENSORMORPH_QQQQQQQQ"),
            ("TENSORMORPH_DEVICE", "refrence", "refrence"),
        ):
            err = self.run_command("backends", code=2, **{name: value})[1]
            self.assertIn(said, err)
            self.assert_one_line(err)

    def test_options_of_backends(self):
        for backend in self.json_of("backends")["backends"]:
            for option in (option for option in backend["options"] if option["type"] == "text"):
                name, variable, value = f"{backend['name']}.{option['name']}", option["variable"], option["default"]

                def in_force(*arguments, **variables):
                    document = self.json_of("backends", *arguments, **variables)
                    found = next(item for item in document["backends"] if item["name"] == backend["name"])
                    return next(item["value"] for item in found["options"] if item["name"] == option["name"])

                self.assertEqual(in_force(**{variable: value}), value)
                self.assertEqual(in_force("--set", f"{name}={value}"), value)
                self.assertIn(variable, self.run_command("backends", "--options")[0])
                # a mistyped option gets a suggestion; an option of an excluded backend is none of our business
                self.assertIn(variable, self.run_command("backends", code=2, **{variable + "X": "1"})[1])
                self.run_command("backends", "--no-device", backend["name"], **{variable + "X": "1"})
                return
        self.skipTest("no built-in backend has a text option")

    def test_limits_reach_the_library(self):
        model = self.small_model()
        err = self.run_command("inspect", model, "--max-header", "16", code=3)[1]
        self.assert_one_line(err)
        self.assertIn("max", err)


if __name__ == "__main__":
    harness.main()
