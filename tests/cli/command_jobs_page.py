# SPDX-License-Identifier: Apache-2.0
"""docs/jobs.md: each command on the page prints what the page says, but for times, rates and who computed."""

import pathlib
import re
import shutil
import subprocess

import harness

PAGE = pathlib.Path(__file__).resolve().parents[2] / "docs" / "jobs.md"
MODELS = (("silero-vad", "silero_vad_16k.safetensors"), ("silero-vad", "silero_vad_16k_op15.onnx"),
          ("silero-vad", "silero_vad_op18_ifless.onnx"), ("magika", "standard_v3_0.onnx"), ("magika", "standard_v3_1.onnx"))


def lasting(text):
    """The lines without those about devices; times, rates, and what of memory and disk there is as ..."""
    text = re.sub(r"(?: \([\d.]+ .?B of disk free\))?, takes about [\d.]+ .?B of memory", " ...", text)
    text = re.sub(r"^  \S+:\d+: [\d,]+ operations?, .*\n", "", text, flags=re.MULTILINE)
    return re.sub(r" in [\d.:]+ (ns|us|ms|s|min|h): [\d.]+ .?B/s$", " in ...", text, flags=re.MULTILINE)


class JobsPage(harness.CommandTest):
    def test_what_is_printed(self):
        for folder, name in MODELS:
            shutil.copy(self.data_file(folder, name), self.folder / name)
            (self.folder / name).chmod(0o644)
        blocks = re.findall(r"```sh\n(.*?)```\n\n```text\n(.*?)```", PAGE.read_text(), re.DOTALL)
        self.assertGreaterEqual(len(blocks), 7)
        (self.folder / "bin").mkdir()
        (self.folder / "bin" / "tensormorph").symlink_to(harness.COMMAND)
        environment = self.environment(COLUMNS="100")
        environment["PATH"] = f"{self.folder}/bin:{environment['PATH']}"
        for commands, expected in blocks:
            with self.subTest(commands.splitlines()[-1]):
                done = subprocess.run(["bash", "-euo", "pipefail", "-c", commands], cwd=self.folder, env=environment,
                                      stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, timeout=120, text=True)
                self.assertEqual(lasting(done.stdout), lasting(expected))
                self.assertEqual(done.returncode, 0)

    def test_the_recipe_is_one(self):
        """All that is wrong with it is that its models are not there."""
        (self.folder / "recipe.yaml").write_text(re.search(r"```yaml\n(.*?)```", PAGE.read_text(), re.DOTALL)[1])
        _, err = self.run_command("merge", "--recipe", "recipe.yaml", code=3)
        for line, name in zip(err.splitlines(), ("code.safetensors", "chat.gguf", "base.safetensors"), strict=True):
            self.assertIn(f"{name}: ", line)


if __name__ == "__main__":
    harness.main()
