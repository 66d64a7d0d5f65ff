#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Without a loader, a platform or a device that fits, the plugin has no device and says why; the rest works."""
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

COMMAND = os.environ["TM_COMMAND"]
PLUGIN = os.environ["TM_PLUGIN"]


class AbsentTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.home = tempfile.TemporaryDirectory(dir=os.environ.get("TM_SCRATCH"))
        cls.addClassCleanup(cls.home.cleanup)

    def backends(self, *options, code=0, **variables):
        """One home for all: the plugin's first trial, without settings, is the same for the same variables and takes long."""
        environment = {"HOME": self.home.name, "PATH": os.environ.get("PATH", "")}
        keep = {name: value for name, value in os.environ.items() if name.endswith("SAN_OPTIONS") or name == "POCL_CACHE_DIR"}
        done = subprocess.run([COMMAND, "--plugin", PLUGIN, *options, "backends"], env={**environment, **keep, **variables},
                              stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=120)
        self.assertEqual(done.returncode, code, done.stdout + done.stderr)
        return done.stdout + done.stderr

    def test_no_loader(self):
        text = self.backends(TENSORMORPH_OPENCL_LIBRARY="/nonexistent/libOpenCL.so")
        self.assertIn("/nonexistent/libOpenCL.so", text)
        self.assertIn("cpu:0", text)
        self.assertNotIn("opencl:0", text)

    def test_another_library(self):
        text = self.backends("--set", "opencl.library=libm.so.6")
        self.assertIn("clGetPlatformIDs", text)
        self.assertNotIn("opencl:0", text)

    def test_no_file(self):
        with tempfile.TemporaryDirectory(dir=os.environ.get("TM_SCRATCH")) as folder:
            os.mkfifo(folder + "/pipe")
            for path, word in ((folder + "/pipe", "a pipe"), (folder, "a folder"), ("/dev/zero", "a device")):
                text = " ".join(self.backends("--set", "opencl.library=" + path).split())
                self.assertIn(f"{path}: it is {word}, not a file", text)
                self.assertNotIn("opencl:0", text)

    def test_no_platform(self):
        with tempfile.TemporaryDirectory(dir=os.environ.get("TM_SCRATCH")) as folder:
            text = self.backends(OCL_ICD_VENDORS=folder + "/")
        if "no OpenCL loader" in text:
            self.skipTest("there is no OpenCL loader")
        self.assertIn("no platform", text)
        self.assertNotIn("opencl:0", text)

    def test_filters(self):
        text = self.backends(TENSORMORPH_OPENCL_DEVICE="no device has this name")
        self.assertNotIn("opencl:0", text)
        if "no OpenCL loader" not in text and "no platform" not in text:
            self.assertIn("is not what the option device asks for", text)

    def test_option_without_meaning(self):
        text = self.backends(code=2, TENSORMORPH_OPENCL_MAX_ALLOCATION_BYTES="-5")
        self.assertIn("max_allocation_bytes", text)


if __name__ == "__main__":
    if not pathlib.Path(PLUGIN).exists():
        print(f"skipped: {PLUGIN} was not built")
        sys.exit(77)
    unittest.main()
