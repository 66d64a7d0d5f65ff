# SPDX-License-Identifier: Apache-2.0
"""What CMake takes without a word and does not do: a hidden variable of a preset, a variable as a pattern."""
import json
import pathlib
import re
import unittest

SOURCE = pathlib.Path(__file__).resolve().parent.parent.parent
# set() without CACHE goes before what a preset has put into the cache.
PLAIN_SET = re.compile(r"^\s*set\(\s*(\w+)\b(?![^)]*\bCACHE\b)", re.MULTILINE | re.IGNORECASE)
# What stands behind MATCHES is the pattern itself, never the name of a variable that holds it.
NAME_AS_PATTERN = re.compile(r"\bMATCHES\s+([A-Za-z_]\w*)")


def build_files():
    yield SOURCE / "CMakeLists.txt"
    yield from (SOURCE / "cmake").glob("*.cmake")     # what lies deeper there is a project of its own
    for folder in ("backends", "bench", "cli", "conformance", "fuzz", "libexec", "src", "tests"):
        yield from (SOURCE / folder).rglob("CMakeLists.txt")
        yield from (SOURCE / folder).rglob("*.cmake")


class BuildFiles(unittest.TestCase):
    def test_the_searches_find(self):
        found = PLAIN_SET.findall('set(A "-O2")\n  SET( B\n  c)\nset(C "" CACHE STRING "c")\nset(D x\n  CACHE STRING "d")\n')
        self.assertEqual(found, ["A", "B"])
        self.assertEqual(NAME_AS_PATTERN.findall('if(a MATCHES A AND b MATCHES "${B}" OR c MATCHES "^c")'), ["A"])

    def test_nothing_of_a_preset_is_hidden(self):
        presets = json.loads((SOURCE / "CMakePresets.json").read_text())["configurePresets"]
        named = {name for preset in presets for name in preset.get("cacheVariables", {})}
        self.assertIn("CMAKE_C_FLAGS_RELWITHDEBINFO", named)
        plainly_set = {name for file in build_files() for name in PLAIN_SET.findall(file.read_text())}
        self.assertEqual(named & plainly_set, set())

    def test_no_name_is_a_pattern(self):
        self.assertEqual([(file.name, name) for file in build_files() for name in NAME_AS_PATTERN.findall(file.read_text())], [])


if __name__ == "__main__":
    unittest.main()
