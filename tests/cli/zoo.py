# SPDX-License-Identifier: Apache-2.0
"""Plugins that misbehave, checked by the command."""

import pathlib
import subprocess

import harness

ZOO = pathlib.Path(harness.COMMAND).parent.parent / "tests" / "zoo"


class ZooTest(harness.CommandTest):
    def check(self, *arguments):
        """Exit code, stdout and stderr of a check, whatever they are."""
        done = subprocess.run(
            [harness.COMMAND, "plugin", "check", *map(str, arguments)],
            cwd=self.folder,
            env=self.environment(),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=200,
        )
        return done.returncode, done.stdout, done.stderr

    def animal(self, name):
        path = ZOO / f"{name}.so"
        self.assertTrue(path.is_file(), f"{path} is not built")
        return path
