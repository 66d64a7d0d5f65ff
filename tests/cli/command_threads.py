# SPDX-License-Identifier: Apache-2.0
"""A system that gives the command one thread beside its first: everything is done all the same, and ends."""

import os
import resource
import struct
import subprocess
import unittest

import harness

SANITIZED = any(name.endswith("SAN_OPTIONS") for name in os.environ)
STACK = 1 << 30                 # of a thread: a second one does not fit
ADDRESS_SPACE = 1_600_000_000
COUNT = 1 << 21


def hard_limit_of(limit):
    hard = resource.getrlimit(limit)[1]
    return float("inf") if hard == resource.RLIM_INFINITY else hard


class FewThreads(harness.CommandTest):
    def limited(self, *arguments, code=0):
        def limit():
            resource.setrlimit(resource.RLIMIT_STACK, (STACK, STACK))
            resource.setrlimit(resource.RLIMIT_AS, (ADDRESS_SPACE, ADDRESS_SPACE))
        done = subprocess.run([harness.COMMAND, *map(str, arguments)], cwd=self.folder, env=self.environment(), timeout=60,
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, preexec_fn=limit)
        self.assertEqual(done.returncode, code, done.stderr.decode())

    @unittest.skipIf(SANITIZED, "a sanitizer needs the whole address space")
    @unittest.skipIf(min(map(hard_limit_of, (resource.RLIMIT_STACK, resource.RLIMIT_AS))) < ADDRESS_SPACE, "the limits are lower")
    def test_jobs_end(self):
        a, b = (self.safetensors(name, {"w": ("F32", [COUNT], struct.pack("<f", value) * COUNT)})
                for name, value in (("a.safetensors", 1), ("b.safetensors", 2)))
        self.limited("stats", a)
        self.limited("check", a)
        self.limited("diff", a, b, code=1)
        self.limited("merge", "--linear", a, b, "-o", self.folder / "c.safetensors")


if __name__ == "__main__":
    harness.main()
