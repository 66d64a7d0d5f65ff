# SPDX-License-Identifier: Apache-2.0
"""What the tests of the command share: running it in a clean environment, and files to run it on."""

import json
import os
import pathlib
import pty
import select
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import time
import unittest

COMMAND = os.environ.get("TM_COMMAND", "")
DATA = pathlib.Path(os.environ.get("TM_TEST_DATA", "/nonexistent"))
SCRATCH = os.environ.get("TM_SCRATCH") or None
SIZES = {"F64": 8, "F32": 4, "F16": 2, "BF16": 2, "I64": 8, "U64": 8, "I32": 4, "I8": 1, "U8": 1, "BOOL": 1, "C64": 8, "X9": 1}


class CommandTest(unittest.TestCase):
    """Each test gets a folder of its own, which is also HOME and working directory."""

    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(dir=SCRATCH))
        self.addCleanup(shutil.rmtree, self.folder)

    def environment(self, **variables):
        """Nothing of the caller's settings, whatever they are."""
        base = {"HOME": str(self.folder), "PATH": os.environ.get("PATH", ""), "TERM": "xterm"}
        base.update({name: value for name, value in os.environ.items() if name.endswith("SAN_OPTIONS")})
        return {name: value for name, value in {**base, **variables}.items() if value is not None}

    def run_command(self, *arguments, code=0, **variables):
        """Runs it, checks the exit code, and returns what it printed as (stdout, stderr)."""
        done = subprocess.run(
            [COMMAND, *map(str, arguments)],
            cwd=self.folder,
            env=self.environment(**variables),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            timeout=120,
        )
        out, err = done.stdout.decode("utf-8", "replace"), done.stderr.decode("utf-8", "replace")
        self.assertEqual(done.returncode, code, f"{arguments}\n--- stdout\n{out[-2000:]}\n--- stderr\n{err[-2000:]}")
        return out, err

    def read_terminal(self, arguments, is_enough=lambda text: False, **variables):
        """Runs it with both streams on a terminal of 80 columns, and interrupts it once it has said enough."""
        process_id, terminal = pty.fork()
        if process_id == 0:
            signal.signal(signal.SIGINT, signal.SIG_DFL)        # also where the caller ignores it, as background jobs do
            os.chdir(self.folder)
            os.execve(COMMAND, [COMMAND, *map(str, arguments)], self.environment(**variables))
        text = b""
        interrupted = False
        while True:
            ready = select.select([terminal], [], [], 0.05)[0]
            try:
                piece = os.read(terminal, 65536) if ready else None
            except OSError:
                break
            if piece == b"":
                break
            text += piece or b""
            if not interrupted and is_enough(text.decode("utf-8", "replace")):
                os.write(terminal, b"\x03")
                interrupted = True
        os.close(terminal)
        return os.waitstatus_to_exitcode(os.waitpid(process_id, 0)[1]), text.decode()

    def wait_until_at_work(self, process, path):
        """Until it has opened the file, which on a busy machine takes a while, and a little longer."""
        def has_open():
            folder = pathlib.Path("/proc") / str(process.pid)
            try:
                return pathlib.Path(path).name in (folder / "maps").read_text() or \
                       any(os.readlink(one) == str(path) for one in (folder / "fd").iterdir())
            except OSError:
                return False
        deadline = time.monotonic() + 60
        while process.poll() is None and not has_open() and time.monotonic() < deadline:
            time.sleep(0.01)
        time.sleep(0.3)
        self.assertIsNone(process.poll(), "it ended before anything could happen to it")

    def json_of(self, *arguments, code=0, **variables):
        return json.loads(self.run_command(*arguments, "--json", code=code, **variables)[0])

    def assert_one_line(self, err):
        """A refusal is one line that says whose it is, with nothing in it that a terminal would obey."""
        self.assertRegex(err, r"\Atensormorph: [^\n]+\n\Z")
        self.assertFalse([c for c in err[:-1] if ord(c) < 32 or 127 <= ord(c) < 160], err)

    def safetensors(self, name, tensors, metadata=None, sparse_bytes=0):
        """Writes a file from {name: (dtype, shape, bytes)}; bytes None leaves a hole of the right size."""
        header, offset = ({"__metadata__": metadata} if metadata else {}), 0
        for key, (dtype, shape, _) in tensors.items():
            size = SIZES[dtype]
            for extent in shape:
                size *= extent
            header[key] = {"dtype": dtype, "shape": list(shape), "data_offsets": [offset, offset + size]}
            offset += size
        text = json.dumps(header).encode()
        text += b" " * (-len(text) % 8)
        path = self.folder / name
        with open(path, "wb") as file:
            file.write(struct.pack("<Q", len(text)) + text)
            for dtype, shape, data in tensors.values():
                if data is not None:
                    file.write(data)
            file.truncate(8 + len(text) + offset)
        return path

    def small_model(self, name="model.safetensors", scale=1.0):
        values = [scale * (i - 5) / 4 for i in range(12)]
        return self.safetensors(
            name,
            {
                "layers.0.weight": ("F32", (3, 4), struct.pack("<12f", *values)),
                "layers.0.bias": ("F32", (4,), struct.pack("<4f", 1, 0, -0.0, 2)),
                "step": ("I64", (), struct.pack("<q", -7)),
            },
            {"format": "pt"},
        )

    def data_file(self, *parts):
        path = DATA.joinpath(*parts)
        if not path.is_file():
            self.skipTest(f"no {path.name} in the folder of real files")
        return path


def main():
    """Exit code 77 when nothing at all could run, with the reasons printed."""
    if not os.access(COMMAND, os.X_OK):
        print("skipped: TM_COMMAND names no program")
        sys.exit(77)
    program = unittest.main(exit=False, verbosity=1)
    for test, reason in program.result.skipped:
        print(f"skipped: {test}: {reason}")
    everything = program.result.testsRun > 0 and len(program.result.skipped) == program.result.testsRun
    sys.exit(77 if everything else not program.result.wasSuccessful())
