# SPDX-License-Identifier: Apache-2.0
"""How the WebGPU backend finds an implementation, and what it says where it finds none."""
import json
import os
import pathlib
import shutil
import unittest

import harness

OLD, WGPU, VENV, LAVAPIPE = (os.environ.get(name, "") for name in ("TM_OLD", "TM_WGPU", "TM_VENV", "TM_LAVAPIPE"))


class Finding(harness.CommandTest):
    def state(self, **variables):
        """What `backends` lists of the backend and its devices, as text."""
        out, _ = self.run_command("backends", "--json", VK_ICD_FILENAMES=LAVAPIPE, **variables)
        rows = [row for row in self.rows(json.loads(out)) if row.get("backend", row.get("name")) == "webgpu"]
        self.assertTrue(rows, out)
        return json.dumps(rows)

    def rows(self, value):
        if isinstance(value, dict):
            yield value
            value = list(value.values())
        if isinstance(value, list):
            for item in value:
                yield from self.rows(item)

    def test_nothing_there(self):
        text = self.state()
        for what in ("libwgpu_native", "libwebgpu_dawn", "VIRTUAL_ENV", "CONDA_PREFIX", "pip install wgpu"):
            self.assertIn(what, text)

    def test_environment_without_one(self):
        (self.folder / "lib" / "python3.99").mkdir(parents=True)
        text = self.state(VIRTUAL_ENV=str(self.folder))
        self.assertIn(str(self.folder), text)
        self.assertIn("no $CONDA_PREFIX", text)

    def test_environment(self):
        text = self.state(VIRTUAL_ENV=VENV)
        self.assertIn("llvmpipe", text)

    def test_option(self):
        text = self.state(TENSORMORPH_WEBGPU_LIBRARY=WGPU)
        self.assertIn("llvmpipe", text)

    def test_option_is_the_only_place(self):
        text = self.state(TENSORMORPH_WEBGPU_LIBRARY="/nonexistent/libwgpu.so", VIRTUAL_ENV=VENV)
        self.assertNotIn("llvmpipe", text)
        self.assertIn("/nonexistent/libwgpu.so (there is no such file)", text)

    def test_older_than_the_standard(self):
        text = self.state(TENSORMORPH_WEBGPU_LIBRARY=OLD)
        self.assertIn("older than the standard", text)

    def test_no_library_at_all(self):
        junk = self.folder / "junk.so"
        junk.write_text("no library")
        other = shutil.copy(next(pathlib.Path("/lib").rglob("libm.so.6")), self.folder / "other.so")
        self.assertIn("junk.so (", self.state(TENSORMORPH_WEBGPU_LIBRARY=str(junk)))
        self.assertIn("(it is no implementation of WebGPU: it lacks wgpuHasInstanceFeature)", self.state(TENSORMORPH_WEBGPU_LIBRARY=str(other)))

    def test_an_option_that_names_no_file(self):
        """Not opened: a pipe would hold whoever does for ever."""
        os.mkfifo(self.folder / "pipe")
        self.assertIn("it is a pipe, not a file", self.state(TENSORMORPH_WEBGPU_LIBRARY=str(self.folder / "pipe")))
        self.assertIn("it is a device, not a file", self.state(TENSORMORPH_WEBGPU_LIBRARY="/dev/zero"))
        self.assertIn("it is a folder, not a file", self.state(TENSORMORPH_WEBGPU_LIBRARY=str(self.folder)))

    def test_no_adapter(self):
        text = self.state(TENSORMORPH_WEBGPU_LIBRARY=WGPU, TENSORMORPH_WEBGPU_ADAPTER="no such thing")
        self.assertIn("no adapter has the name", text)
        self.assertIn("llvmpipe", self.state(TENSORMORPH_WEBGPU_LIBRARY=WGPU, TENSORMORPH_WEBGPU_ADAPTER="LLVMpipe"))

    def test_binding_limit(self):
        for value in ("1", "-5", "65535", "much"):
            _, err = self.run_command("backends", code=2, VK_ICD_FILENAMES=LAVAPIPE, TENSORMORPH_WEBGPU_LIBRARY=WGPU,
                                      TENSORMORPH_WEBGPU_MAX_BINDING_BYTES=value)
            self.assertIn("max_binding_bytes", err)
        text = self.state(TENSORMORPH_WEBGPU_LIBRARY=WGPU, TENSORMORPH_WEBGPU_MAX_BINDING_BYTES="65536")
        self.assertIn('"largest_binding_bytes": 65536', text)


if __name__ == "__main__":
    unittest.main()
