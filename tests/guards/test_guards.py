# SPDX-License-Identifier: Apache-2.0
"""Proves that each guard can fail: a small tree that passes, then one violation at a time."""
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

SOURCE = pathlib.Path(__file__).resolve().parent.parent.parent
COMPILER = sys.argv.pop() if len(sys.argv) > 1 else "cc"

LONG_FUNCTION = "int tm_long(void) {\n" + "  ;\n" * 60 + "  return 0;\n}\n"


class GuardCase(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.root = pathlib.Path(self.folder.name)
        for place in ("include/tensormorph", "src/plugin", "backends/fast", "scripts", "tests/abi"):
            (self.root / place).mkdir(parents=True)

    def write(self, name, text):
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    def run_guard(self, guard, *arguments):
        return subprocess.run([SOURCE / "scripts" / guard, "--root", self.root, *arguments],
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)

    def passes(self, guard, *arguments):
        result = self.run_guard(guard, *arguments)
        self.assertEqual(result.returncode, 0, result.stdout)

    def fails(self, expected, guard, *arguments):
        result = self.run_guard(guard, *arguments)
        self.assertNotEqual(result.returncode, 0, result.stdout)
        self.assertIn(expected, result.stdout)


class Layers(GuardCase):
    def test_downwards_passes(self):
        self.write("src/tensor/a.c", '#include "tensor/a.h"\n#include <stdint.h>\n#include "base/error.h"\n'
                                     '#include "tensormorph/types.h"\n/* #include "api/x.h" */\n')
        self.write("src/base/file.c", "#include <unistd.h>\n")
        self.write("backends/fast/fast.c", '#include "fast.h"\n#include "tensormorph/plugin.h"\n')
        self.write("backends/fast/fast.h", "")
        self.write("cli/table.h", "")
        self.write("tests/cli/test_table.c", '#include "table.h"\n#include "tensormorph/types.h"\n')
        self.passes("check-layers")

    def test_violations(self):
        rows = (
            ("src/base/a.c", '#include "tensor/shape.h"', "base may not include tensor"),
            ("src/formats/a.c", '#include "schedule/plan.h"', "formats may not include schedule"),
            ("src/schedule/a.c", '#include "formats/gguf.h"', "schedule may not include formats"),
            ("src/tensor/a.c", '#include "ops/op_table.h"', "tensor may not include ops"),
            ("src/tensor/a.c", "#include <unistd.h>", "system header"),
            ("src/plugin/a.c", "#include <yaml.h>", "library header"),
            ("src/formats/a.c", '#include "tensormorph/tensormorph.h"', "application header"),
            ("src/other/a.c", '#include "base/error.h"', "no layer"),
            ("backends/fast/a.c", '#include "base/error.h"', "backends see"),
            ("backends/fast/a.c", '#include "tensormorph/tensormorph.h"', "backends see"),
            ("backends/fast/a.c", '#include "../../src/base/error.h"', "backends see"),
            ("backends/fast/a.c", "#include <sys/mman.h>", "system header"),
            ("cli/a.c", '#include "base/error.h"', "clients see"),
            ("tests/cli/a.c", '#include "base/error.h"', "clients see"),
            ("cli/a.c", '#include "../src/base/error.h"', "clients see"),
            ("examples/a.c", '#include "tensormorph/../../src/base/error.h"', "clients see"),
            ("include/tensormorph/a.h", '#include "base/error.h"', "public headers"),
        )
        for name, line, expected in rows:
            with self.subTest(line=line):
                self.write(name, "\n" + line + "\n")
                self.fails(f"{name}:2: ", "check-layers")
                self.fails(expected, "check-layers")
                (self.root / name).unlink()


class Names(GuardCase):
    def test_ordinary_words_pass(self):
        self.write("src/plugin/a.c", "/* alarm, ship, charm, fastest: no hardware here */ int tm_metallic_armour;\n")
        self.passes("check-names")

    def test_violations(self):
        for text in ("int tm_cuda_count;", "void cuLaunchKernelCUDA(void);", "/* on a GPU */", "int tmMetalDevice;",
                     "int x86_64;", "int cpu0;", "/* the fast backend */", "int tm_fast;"):
            with self.subTest(text=text):
                self.write("src/plugin/a.c", "\n" + text + "\n")
                self.fails("src/plugin/a.c:2: ", "check-names")

    def test_file_names_count(self):
        self.write("cli/vulkan_list.c", "")
        self.fails("cli/vulkan_list.c:0: ", "check-names")

    def test_exceptions(self):
        self.write("src/plugin/a.c", "int cpu_set;\n")
        self.write("scripts/check-names.exceptions", "src/plugin/a.c cpu the system's own name\n")
        self.passes("check-names")
        self.write("scripts/check-names.exceptions", "src/plugin/a.c cpu\n")
        self.fails("expected: PLACE NAME REASON", "check-names")
        self.write("scripts/check-names.exceptions", "src/plugin/a.c cpu reason\nsrc/plugin/b.c cpu reason\n")
        self.fails("no longer needed", "check-names")


class Code(GuardCase):
    def test_good_code_passes(self):
        self.write("src/plugin/a.c", 'int tm_f(int a) {\n  _Static_assert(1, "exit(1)");\n  return a; /* abort() */\n}\n')
        self.passes("check-code")

    def test_forbidden_calls(self):
        for call in ("abort()", "exit(1)", "assert(x)", "printf(text)", "longjmp(b, 1)", "strcpy(a, b)"):
            with self.subTest(call=call):
                self.write("backends/fast/a.c", f"void fast_f(void) {{\n  {call};\n}}\n")
                self.fails("backends/fast/a.c:2: ", "check-code")

    def test_flags_in_texts(self):
        self.write("src/plugin/a.c", 'int tm_f(void) {\n  return tm_fail(e, 1, "too long; raise it: --max-header SIZE");\n}\n')
        self.fails("src/plugin/a.c:2: --max-header", "check-code")
        self.write("src/plugin/a.c", 'int tm_f(void) {\n  return tm_fail(e, 1, "raise max_header_bytes", a --b); /* "--flag" */\n}\n')
        self.passes("check-code")

    def test_long_function(self):
        self.write("src/plugin/a.c", LONG_FUNCTION)
        self.fails("src/plugin/a.c:1: tm_long has 63 lines", "check-code")
        self.write("src/plugin/a.c", 'extern "C" {\n' + LONG_FUNCTION + "}\n")
        self.fails("src/plugin/a.c:2: tm_long has 63 lines", "check-code")
        self.write("src/plugin/a.c", "DEFINE(f32)\n" * 60 + "int tm_short(void) {\n  return 0;\n}\n")
        self.passes("check-code")
        self.write("src/plugin/a.c", "/* Longer than the limit: one state a line. */\n" + LONG_FUNCTION)
        self.passes("check-code")

    def test_long_file(self):
        self.write("src/plugin/a.c", "int tm_a;\n" * 801)
        self.fails("801 lines", "check-code")

    def test_deep_nesting(self):
        deep = "int tm_f(int a) {\n  for (;;)\n    while (a) {\n      if (a) do\n%s        a--; while (a);\n      else if (a) a--;\n    }\n}\n"
        for inner, fails in (("", True), ("if (a)\n", True)):
            with self.subTest(inner=inner):
                self.write("src/plugin/a.c", deep % inner)
                self.fails("tm_f nests %d levels deep" % (5 if inner else 4), "check-code")
        flat = ("int tm_f(int a) {\n  switch (a) {\n    case 1:\n    default: {\n      int b[] = { 1, 2 };\n      if (b[0]) return (a);\n"
                "      else if (a) { while (a) a--; }\n      else if (a) a++;\n      else if (a) a++;\n    }\n  }\n  return 0;\n}\n")
        self.write("src/plugin/a.c", flat * 3)
        self.passes("check-code")

    def test_two_files_of_one_name(self):
        self.write("src/plugin/a.c", "int tm_a(void);\n")
        self.write("src/base/b.c", "int tm_b(void);\n")
        self.passes("check-code")
        self.write("conformance/a.c", "int a(void);\n")
        self.fails("src/plugin/a.c:1: conformance/a.c has the same name", "check-code")

    def test_unfinished(self):
        self.write("scripts/a", "# TO" "DO later\n")
        self.fails("scripts/a:1: unfinished", "check-code")

    def test_long_line(self):
        self.write("src/plugin/a.c", "/* " + "x" * 157 + "\n*/\nint tm_a(void);\n")
        self.passes("check-code")
        self.write("src/plugin/a.c", "\n/* " + "x" * 158 + "\n*/\nint tm_a(void);\n")
        self.fails("src/plugin/a.c:2: 161 columns", "check-code")

    def test_unreadable_python(self):
        self.write("bench/a.py", "print(f'{1}')\n")
        self.write("scripts/b", "#!/usr/bin/env bash\nif then\n")
        self.passes("check-code")
        self.write("bench/a.py", "x = 1\nif x\n")
        self.fails("bench/a.py:2: Python ", "check-code")
        self.write("bench/a.py", "x = 1\n")
        self.write("scripts/b", "#!/usr/bin/env -S python3 -B\nif x\n")
        self.fails("scripts/b:2: Python ", "check-code")


class Globals(GuardCase):
    def compile(self, text):
        self.write("a.c", text)
        subprocess.run([COMPILER, "-fPIC", "-c", self.root / "a.c", "-o", self.root / "a.o"], check=True)
        (self.root / "liba.a").unlink(missing_ok=True)
        subprocess.run(["ar", "rc", self.root / "liba.a", self.root / "a.o"], check=True)
        return self.root / "liba.a"

    def test_constants_pass(self):
        self.passes("check-globals", self.compile(
            'static const int table[] = {1, 2};\nconst char *const names[] = {"a", "b"};\nint f(int i) { return table[i]; }\n'))

    def test_violations(self):
        for text in ("int counter;", "static int c = 1; int *f(void) { return &c; }", "int *f(void) { static int c; return &c; }",
                     "_Thread_local int t;", 'const char *names[] = {"a"};'):
            with self.subTest(text=text):
                self.fails("no mutable globals", "check-globals", self.compile(text))

    def test_statics_of_functions_can_be_excepted(self):
        self.write("scripts/check-globals.exceptions", "a.o here a reason\n")
        self.passes("check-globals", self.compile("char *f(void) { static char here; return &here; }"))

    def test_exception(self):
        self.write("scripts/check-globals.exceptions", "a.o counter a reason\n")
        self.passes("check-globals", self.compile("int counter;"))
        self.fails("no longer needed", "check-globals", self.compile("int f(void) { return 1; }"))


class Layout(GuardCase):
    def setUp(self):
        super().setUp()
        for name in ("types.h", "plugin.h"):
            shutil.copyfile(SOURCE / "include/tensormorph" / name, self.root / "include/tensormorph" / name)
        for name in ("tests/abi/layout.lock", "src/plugin/layout_fingerprints.inc"):
            shutil.copyfile(SOURCE / name, self.root / name)

    def replace(self, name, old, new):
        text = (self.root / name).read_text()
        self.assertIn(old, text)
        self.write(name, text.replace(old, new, 1))

    def check_fails(self, expected):
        self.fails(expected, "update-layout-lock", "--check", "--compiler", COMPILER)

    def update(self):
        return self.run_guard("update-layout-lock", "--compiler", COMPILER)

    def test_today_passes(self):
        self.passes("update-layout-lock", "--check", "--compiler", COMPILER)

    def test_changes_are_named(self):
        types, plugin = "include/tensormorph/types.h", "include/tensormorph/plugin.h"
        rows = (
            (types, "  int64_t   native_code;", "  uint64_t  native_code;", "tm_error: locked: 8 8 native_code : int64_t"),
            (types, "#define TM_OP_CAST               6u", "#define TM_OP_CAST               9u", "constant TM_OP_CAST 6"),
            (plugin, "(*flush)(tm_device *device, uint32_t queue)", "(*flush)(tm_device *device, uint64_t queue)", "flush"),
            (plugin, 'BACKEND "tensormorph.accelerator-backend"', 'BACKEND "tensormorph.backend"', "text TM_TRAIT_ACCELERATOR_BACKEND"),
            (plugin, "'h','o','s','t','-','c'", "'H','o','s','t','-','c'", "bytes TM_HOST_CORES"),
        )
        for name, old, new, expected in rows:
            with self.subTest(new=new):
                self.replace(name, old, new)
                self.check_fails(expected)
                self.replace(name, new, old)

    def test_gap_is_refused(self):
        self.replace("include/tensormorph/types.h", "  uint32_t  struct_size;\n  tm_status code;", "  uint32_t  struct_size;")
        self.fails("tm_error: gap", "update-layout-lock", "--compiler", COMPILER)

    def test_fingerprint_and_table_are_compared(self):
        self.replace("src/plugin/layout_fingerprints.inc", "{ 1u, UINT64_C(0x", "{ 1u, UINT64_C(0xf")
        self.check_fails("the row of minor 1")
        shutil.copyfile(SOURCE / "src/plugin/layout_fingerprints.inc", self.root / "src/plugin/layout_fingerprints.inc")
        self.replace("include/tensormorph/plugin.h", "#define TM_LAYOUT_FINGERPRINT UINT64_C(0x", "#define TM_LAYOUT_FINGERPRINT UINT64_C(0x1")
        self.check_fails("TM_LAYOUT_FINGERPRINT is")

    def test_update_appends_a_minor(self):
        old = (self.root / "src/plugin/layout_fingerprints.inc").read_text()
        self.replace("include/tensormorph/plugin.h", "#define TM_ABI_MINOR 1u", "#define TM_ABI_MINOR 2u")
        self.assertEqual(self.update().returncode, 0)
        new = (self.root / "src/plugin/layout_fingerprints.inc").read_text()
        self.assertTrue(new.startswith(old))
        self.assertIn("{ 2u, ", new)
        self.passes("update-layout-lock", "--check", "--compiler", COMPILER)

    def test_a_released_minor_stays(self):
        self.replace("include/tensormorph/plugin.h", "#define TM_ABI_MAJOR 0u", "#define TM_ABI_MAJOR 1u")
        result = self.update()
        self.assertNotEqual(result.returncode, 0)
        self.assertIn("locked", result.stdout)


if __name__ == "__main__":
    unittest.main()
