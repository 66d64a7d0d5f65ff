# SPDX-License-Identifier: Apache-2.0
"""What a comparison of checkpoints says, against float64 numpy and against what was done to make one out of the other.

diff_oracle.py DIFF_ROWS DATA [CASE ...]   exit 77 without numpy, and without the real files if only they are asked for.
"""
import math
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

DIFF_ROWS, DATA = sys.argv[1], pathlib.Path(sys.argv[2])
try:
    import numpy
except ImportError as missing:
    print("skipped:", missing)
    sys.exit(77)

import made_checkpoints as made  # noqa: E402
from made_checkpoints import store  # noqa: E402

BY_NAME = 1
CORRUPT, NOT_FOUND = -7, -2
FIGURES = ("max_abs", "max_rel", "rel_l2", "cosine", "distance", "norm", "other_norm")


class Outcome:
    def __init__(self, output):
        self.rows, self.notes, names = [], [], []
        for line in output.splitlines():
            kind, *cells = line.split("\t")
            if kind == "columns":
                names = cells
            elif kind == "row":
                self.rows.append({name: read_cell(name, cell) for name, cell in zip(names, cells, strict=True)})
            elif kind == "note":
                self.notes.append(cells[0])
            elif kind == "progress":
                self.progress = tuple(map(int, cells))
            else:
                self.status, self.error = int(cells[0]), cells[1]


def read_cell(name, cell):
    if name in ("shape", "other_shape"):
        return None if cell == "-" else tuple(int(extent) for extent in cell.split(",") if extent)
    if cell == "-":
        return None
    if name in ("name", "other_name"):
        return bytes.fromhex(cell).decode()
    if name in ("verdict", "paired", "dtype", "other_dtype"):
        return cell
    return float(cell) if name in FIGURES or name == "changed" else int(cell)


def run(a, b, *patterns, threads=2, how="map", flags=0):
    command = [DIFF_ROWS, str(threads), how, str(flags), str(a), str(b), *patterns]
    return Outcome(subprocess.run(command, stdout=subprocess.PIPE, check=True, timeout=100).stdout.decode())


def figures_of(a, b):
    """What numpy says of two arrays of values."""
    a, b = numpy.ravel(a), numpy.ravel(b)
    if a.dtype.kind == "f" or b.dtype.kind == "f" or a.dtype != b.dtype:
        a, b = a.astype("f8"), b.astype("f8")
        equal = int((a.view("u8") == b.view("u8")).sum())
    else:
        equal = int((a == b).sum())
    a, b = a.astype("f8"), b.astype("f8")
    finite = numpy.isfinite(a) & numpy.isfinite(b)
    want = {"count": a.size, "equal": equal, "changed": (a.size - equal) / a.size if a.size else 0, "nonfinite": int((~finite).sum())}
    a, b = a[finite], b[finite]
    if a.size == 0:
        return {**want, **({key: None for key in FIGURES} if want["nonfinite"] else {})}
    difference, larger = numpy.abs(a - b), numpy.maximum(numpy.abs(a), numpy.abs(b))
    squares = {key: math.fsum(x * y) for key, (x, y) in {"d": (a - b, a - b), "a": (a, a), "b": (b, b), "ab": (a, b)}.items()}
    want.update(max_abs=difference.max(), max_rel=numpy.divide(difference, larger, out=numpy.zeros_like(a), where=larger > 0).max(),
                distance=math.sqrt(squares["d"]), norm=math.sqrt(squares["a"]), other_norm=math.sqrt(squares["b"]))
    want["rel_l2"] = 0 if squares["d"] == 0 else want["distance"] / want["norm"] if want["norm"] else None
    want["cosine"] = squares["ab"] / (want["norm"] * want["other_norm"]) if squares["a"] and squares["b"] else None
    return want


class Case(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.folder = pathlib.Path(scratch.name)
        self.random = numpy.random.default_rng(20)

    def values(self, *shape):
        return self.random.standard_normal(shape).astype("f4")

    def write(self, name, tensors):
        return made.write(self.folder / name, tensors)

    def diff(self, a, b, *patterns, status=0, **options):
        """The same rows for any number of threads, mapped or read."""
        found = run(a, b, *patterns, **options)
        self.assertEqual(found.status, status, found.error)
        for threads, how in ((1, "map"), (3, "read")):
            other = run(a, b, *patterns, threads=threads, how=how, **options)
            self.assertEqual((other.rows, other.notes, other.status), (found.rows, found.notes, found.status))
        if status == 0:
            compared = {"identical", "renamed", "tied", "retyped", "transposed", "changed"}        # of others not all is read
            self.assertLessEqual(found.progress[0], found.progress[1])
            if all(row["verdict"] in compared for row in found.rows) and not found.notes:
                self.assertEqual(found.progress[0], found.progress[1])
            self.assertEqual(found.progress[2:], (found.progress[3],) * 2, found.progress)
        return found

    def verdicts(self, found):
        return [(row["verdict"], row["name"], row["other_name"], row["paired"]) for row in found.rows]

    def check_figures(self, row, a, b):
        # Sums of two floats of 16 bits or less go by chains of f32.
        is_short = {row["dtype"], row["other_dtype"]} <= {"f16", "bf16", "f8_e4m3fn", "f8_e5m2"}
        for key, want in figures_of(a, b).items():
            got = row[key]
            if isinstance(want, float) and got is not None:
                self.assertTrue(math.isclose(got, want, rel_tol=1e-7 if is_short else 1e-12, abs_tol=1e-13), (row["name"], key, got, want))
            else:
                self.assertEqual(got, want, (row["name"], key))


class Figures(Case):
    def test_every_pair_of_formats(self):
        kinds = {"safetensors": ("f64", "f32", "f16", "bf16", "i8", "u8", "i64", "bool"), "gguf": ("f32", "f16", "bf16", "q8_0", "i32"),
                 "onnx": ("f32", "f16", "bf16", "u8")}
        base = self.values(9, 4096) * 3
        files = {}
        for suffix, names in kinds.items():
            for shift in (0, 1):
                numbers = base + shift * 0.01 * self.values(*base.shape)
                tensors = {}
                for one in names:
                    for other in ("f64", "f32", "f16", "bf16", "q8_0", "i8", "u8", "i32", "i64", "bool"):
                        tensors[f"{one}-{other}"] = store(numpy.abs(numbers) if one[0] in "bu" and one != "bf16" else numbers, one)
                files[suffix, shift] = (self.write(f"{shift}.{suffix}", tensors), tensors)
        for left in kinds:
            for right in kinds:
                (a, in_a), (b, in_b) = files[left, 0], files[right, 1]
                found = run(a, b)
                self.assertEqual(found.status, 0, found.error)
                wanted = [name for name in in_a if name in in_b]
                rows = {row["name"]: row for row in found.rows if row["paired"] == "name"}
                self.assertEqual(list(rows), wanted)
                for name in wanted:
                    self.check_figures(rows[name], in_a[name].values, in_b[name].values)
                    self.assertEqual((rows[name]["dtype"], rows[name]["other_dtype"]), (in_a[name].kind, in_b[name].kind))

    def test_squares_beyond_f64(self):
        """What cannot be known is not told; the rest is right."""
        cases = {"large": ([1e163, 2e163], [1e163, -1e163]), "tiny": ([1e-200, 2e-200], [1e-200, 3e-200]), "lost": ([1e-160, 1e-161], [1e-160, 2e-161]),
                 "some": ([1.0, 2.0], [1.0, 2.0 + 1e-15]), "zero": ([0.0, 0.0], [0.0, 1.0]), "edge": ([1e200, 1.0], [1e200, 2.0])}
        a, b = ({name: store(numpy.array(pair[side], "f8")) for name, pair in cases.items()} for side in (0, 1))
        rows = {row["name"]: row for row in self.diff(self.write("a.safetensors", a), self.write("b.safetensors", b)).rows}
        for name in ("large", "tiny", "lost"):
            self.assertEqual([rows[name][key] for key in FIGURES[2:]], [None] * 5, name)
            self.assertEqual(rows[name]["max_abs"], abs(cases[name][0][1] - cases[name][1][1]), name)
        self.assertEqual([rows["edge"][key] for key in ("rel_l2", "cosine", "distance", "norm")], [None, None, 1, None])
        for name in ("some", "zero"):
            self.check_figures(rows[name], a[name].values, b[name].values)

    def test_mixed_formats(self):
        base = self.values(18, 2048)
        kinds = ("f32", "f16", "bf16", "q8_0")
        one = {f"{a}-{b}": store(base, a) for a in kinds for b in kinds}
        other = {f"{a}-{b}": store(base + 0.001, b) for a in kinds for b in kinds}
        found = self.diff(self.write("a.gguf", one), self.write("b.gguf", other))
        self.assertEqual(len(found.rows), 16)
        for row in found.rows:
            self.check_figures(row, one[row["name"]].values, other[row["name"]].values)
            self.assertEqual(row["verdict"], "changed")

    def test_nonfinite_and_zero(self):
        x = self.values(100)
        x[[3, 50, 51]] = numpy.nan, numpy.inf, -numpy.inf
        y = x.copy()
        y[[3, 50, 7]] = 1, -numpy.inf, numpy.nan
        same_nan = numpy.full(9, numpy.nan, "f4")
        minus = numpy.array([0.0, -0.0, 1], "f4")
        a = {"x": store(x), "nan": store(same_nan), "zero": store(numpy.zeros(5, "f4")), "minus": store(minus), "from0": store(minus * 0)}
        b = {"x": store(y), "nan": store(same_nan), "zero": store(numpy.zeros(5, "f4")), "minus": store(numpy.abs(minus)), "from0": store(minus + 1)}
        found = self.diff(self.write("a.safetensors", a), self.write("b.safetensors", b))
        self.assertEqual([row["verdict"] for row in found.rows], ["changed", "identical", "identical", "changed", "changed"])
        for row in found.rows:
            self.check_figures(row, a[row["name"]].values, b[row["name"]].values)
        self.assertEqual((found.rows[4]["rel_l2"], found.rows[4]["cosine"], found.rows[3]["max_abs"], found.rows[2]["rel_l2"]), (None, None, 0, 0))

    def test_empty_and_0d(self):
        a = {"empty": store(numpy.zeros((2, 0), "f4")), "scalar": store(numpy.float32(3)), "other": store(numpy.zeros((0, 3), "f4"))}
        b = {"empty": store(numpy.zeros((2, 0), "f4")), "scalar": store(numpy.float32(4)), "other": store(numpy.zeros((5, 0), "f4"))}
        found = self.diff(self.write("a.safetensors", a), self.write("b.safetensors", b))
        self.assertEqual([row["verdict"] for row in found.rows], ["identical", "changed", "reshaped"])
        self.assertEqual((found.rows[0]["count"], found.rows[0]["changed"], found.rows[1]["max_abs"]), (0, 0, 1))

    def test_itself_and_the_other_way_round(self):
        a = {f"t{i}": store(self.values(40, 96), kind) for i, kind in enumerate(("f32", "f16", "bf16", "f64"))}
        b = {f"t{i}": store(self.values(40, 96), kind) for i, kind in enumerate(("f16", "f32", "bf16", "f32"))}
        b["t9"] = store(self.values(3))
        first, second = self.write("a.safetensors", a), self.write("b.safetensors", b)
        for path, tensors in ((first, a), (second, b)):
            found = self.diff(path, path)
            self.assertEqual(self.verdicts(found), [("identical", name, name, "name") for name in tensors])
            for row in found.rows:
                self.assertEqual((row["changed"], row["rel_l2"], row["cosine"], row["max_abs"]), (0, 0, 1, 0))
        there, back = self.diff(first, second), self.diff(second, first)
        swapped = {"name": "other_name", "dtype": "other_dtype", "shape": "other_shape", "norm": "other_norm", "bytes": "other_bytes"}
        swapped.update({other: one for one, other in swapped.items()})
        turn = {"added": "removed", "removed": "added"}
        for row, other in zip(there.rows, back.rows, strict=True):
            for key in row:
                want = other[swapped.get(key, key)]
                if key == "rel_l2" and row[key] is not None:
                    self.assertTrue(math.isclose(row[key], row["distance"] / row["norm"], rel_tol=1e-15))
                else:
                    self.assertEqual(row[key], turn.get(want, want) if key == "verdict" else want, key)


class Pairing(Case):
    def test_anything_at_once(self):
        """Tensors of which each is left alone, renamed, stored otherwise, turned, changed or dropped; and each is said to be."""
        for seed in range(30 if os.environ.get("TM_NIGHTLY") else 2):
            self.random = numpy.random.default_rng(seed)
            a, b, want = {}, {}, []
            for i in range(50):
                shape = tuple(self.random.integers(9, 20, self.random.integers(1, 4)))
                x = store(made.from_bf16(made.to_bf16(self.values(*shape))))
                name, new, kind = f"m.{i}.w", f"n.{self.random.integers(10**9)}.{i}", ("bf16", "f64")[i % 2]
                turned = store(numpy.ascontiguousarray(x.values.T.astype("f4")), ("f32", kind)[i // 2 % 2])
                bent = store(x.values.astype("f4") + 1)
                choices = [(name, x, "identical"), (new, x, "renamed"), (name, store(x.values, kind), "retyped"), (new, store(x.values, kind), "retyped"),
                           (name, bent, "changed"), (new, bent, "removed"), (None, None, "removed"), (name, x, "tied"), (name, store(x.values[None]), "reshaped")]
                if len(shape) > 1 and shape != shape[::-1]:
                    choices += [(name, turned, "transposed"), (new, turned, "transposed")]
                other, stored, verdict = choices[self.random.integers(len(choices))]
                a[name] = x
                if other is not None:
                    b[other] = stored
                if verdict == "tied":
                    b[new] = x
                    want += [("identical", name, name), ("tied", name, new)]
                else:
                    want.append((verdict, name, None if verdict == "removed" else other))
                    want += [("added", None, other)] if verdict == "removed" and other else []
            names = [list(b)[i] for i in self.random.permutation(len(b))]
            second = ("b.onnx", "b.gguf", "b.safetensors")[seed % 3]
            found = self.diff(self.write("a.safetensors", a), self.write(second, {name: b[name] for name in names}))
            got = {str(row[:3]) for row in self.verdicts(found)}
            self.assertEqual((set(map(str, want)) - got, got - set(map(str, want)), len(found.rows)), (set(), set(), len(want)), seed)

    def test_renamed_and_permuted(self):
        """Whatever the names and the order: each finds its own."""
        for suffix in ("safetensors", "gguf", "onnx"):
            shapes = [(64,), (8, 16), (4, 32), (128,), (2, 3, 32), (256, 32)]
            a = {f"model.layers.{i}.w": store(self.values(*shapes[i % len(shapes)]), ("f32", "f16", "bf16")[i % 3]) for i in range(60)}
            names = list(a)
            order = self.random.permutation(len(names))
            new = {names[i]: names[i] if i % 5 == 0 else f"blk.{self.random.integers(1000)}.x{i}" for i in order}
            b = {new[names[i]]: a[names[i]] for i in order if i % 7 != 6}
            b["new.0"] = store(self.values(8, 16))
            found = self.diff(self.write(f"a.{suffix}", a), self.write(f"b.{suffix}", b))
            kept = [name for i, name in enumerate(names) if i % 7 != 6]
            want = [("identical", name, name, "name") for name in kept if new[name] == name]
            want += [("renamed", name, new[name], "content") for name in kept if new[name] != name]
            want += [("removed", name, None, None) for i, name in enumerate(names) if i % 7 == 6]
            self.assertEqual(self.verdicts(found), want + [("added", None, "new.0", None)])
            by_name = self.diff(self.folder / f"a.{suffix}", self.folder / f"b.{suffix}", flags=BY_NAME)
            self.assertEqual({row["verdict"] for row in by_name.rows}, {"identical", "removed", "added"})

    def test_other_formats_under_other_names(self):
        """f32 against the same values in every format that holds them exactly."""
        grid = numpy.clip(numpy.rint(self.values(6, 64) * 40), -127, 127)
        grid[:, ::32] = 127
        numbers = [(grid + i * (numpy.abs(grid) < 90)).astype("f4") / 64 for i in range(5)]
        plain = {f"model.layers.{i}.q_proj.weight": store(x) for i, x in enumerate(numbers)}
        a = self.write("a.safetensors", plain)
        for suffix, kind in (("safetensors", "bf16"), ("safetensors", "f64"), ("gguf", "f16"), ("gguf", "q8_0"), ("gguf", "bf16"), ("onnx", "f16")):
            b = {f"blk.{i}.attn_q.weight": store(x, kind) for i, x in enumerate(numbers)}
            for (one, x), y in zip(plain.items(), b.values()):
                self.assertTrue((x.values == y.values).all(), (one, kind))
            found = self.diff(a, self.write(f"b.{suffix}", dict(reversed(b.items()))))
            want = [("retyped", f"model.layers.{i}.q_proj.weight", f"blk.{i}.attn_q.weight", "decoded") for i in range(5)]
            self.assertEqual(self.verdicts(found), want)
            self.assertEqual({row["rel_l2"] for row in found.rows}, {0})

    def test_retyped_by_name_and_npy(self):
        x = store(self.values(33, 7), "bf16")
        wide = store(x.values.astype("f4"))
        made.write_npy(self.folder / "some.npy", wide)
        a = self.write("a.safetensors", {"w": x})
        self.assertEqual(self.verdicts(self.diff(a, self.write("b.safetensors", {"w": wide}))), [("retyped", "w", "w", "name")])
        self.assertEqual(self.verdicts(self.diff(a, self.folder / "some.npy")), [("retyped", "w", "some", "single")])
        made.write_npy(self.folder / "more.npy", store(wide.values + 1, "f32"))
        self.assertEqual(self.verdicts(self.diff(self.folder / "some.npy", self.folder / "more.npy")), [("changed", "some", "more", "single")])
        many = self.write("many.safetensors", {"v": store(self.values(5)), "w": x})
        found = self.diff(many, self.folder / "some.npy")
        self.assertEqual(self.verdicts(found), [("retyped", "w", "some", "decoded"), ("removed", "v", None, None)])

    def test_transposed(self):
        shapes = ((40, 24), (64, 64), (5, 3, 7), (2000, 3), (1, 9, 31), (300, 500), (3, 41, 1, 2))
        a = {f"a{i}": store(self.values(*shape)) for i, shape in enumerate(shapes)}
        turned = {f"b{i}": store(numpy.ascontiguousarray(one.values.T).astype("f4"), "f64" if i % 2 else "f32") for i, one in enumerate(a.values())}
        found = self.diff(self.write("a.safetensors", a), self.write("b.safetensors", turned))
        self.assertEqual(self.verdicts(found), [("transposed", f"a{i}", f"b{i}", "transposed") for i in range(len(shapes))])
        for i, row in enumerate(found.rows):
            self.assertEqual((row["equal"], row["rel_l2"], row["shape"]), (row["count"], 0, shapes[i]))
        same = self.write("c.safetensors", {f"a{i}": one for i, one in enumerate(turned.values())})
        found = self.diff(self.folder / "a.safetensors", same)
        self.assertEqual(self.verdicts(found), [("transposed", f"a{i}", f"a{i}", "name") for i in range(len(shapes))])

    def test_transposed_and_sparse(self):
        """Elements at some places are all zeros: those that are not tell."""
        numbers = {"thin": (50, 40, 0.05), "thinner": (500, 400, 0.001), "square": (300, 300, 0.01), "one": (60, 40, 0)}
        a = {name: numpy.where(self.random.random((n, m)) < share, self.values(n, m), 0).astype("f4") for name, (n, m, share) in numbers.items()}
        a["one"][3, 7] = 2
        a["unit"] = numpy.eye(300, 200, dtype="f4")
        a["unit"][5, 6] = 3
        a["twos"] = self.values(2, 2)
        a["cubes"] = self.values(2, 3, 2)
        one = self.write("a.safetensors", {name: store(x) for name, x in a.items()})
        for kind in ("f32", "f64"):
            turned = {name: store(numpy.ascontiguousarray(x.T), kind) for name, x in a.items()}
            found = self.diff(one, self.write("b.safetensors", turned))
            self.assertEqual(self.verdicts(found), [("transposed", name, name, "name") for name in a])
            other = self.write("c.safetensors", {"new." + name: x for name, x in reversed(turned.items())})
            self.assertEqual(sorted(self.verdicts(self.diff(one, other))), sorted(("transposed", name, "new." + name, "transposed") for name in a))

    def test_transposed_square_but_not_equal(self):
        x = self.values(64, 64)
        a = {"noisy": store(x), "rounded": store(x), "far": store(x), "near": store(x)}
        b = {"noisy": store((x.T + 1e-3 * self.values(64, 64)).astype("f4")), "rounded": store(numpy.ascontiguousarray(x.T), "bf16"),
             "far": store(self.values(64, 64)), "near": store(x + numpy.float32(1e-3))}
        found = self.diff(self.write("a.safetensors", a), self.write("b.safetensors", b))
        self.assertEqual([row["verdict"] for row in found.rows], ["transposed", "transposed", "changed", "changed"])
        self.assertLess(found.rows[0]["rel_l2"], 0.01)

    def test_transposed_twins(self):
        """Samples of all four agree, and still each finds its own."""
        x = self.values(100, 60)
        y = x.copy()
        y[0, 0] = 9
        turned = [store(numpy.ascontiguousarray(z.T)) for z in (x, y)]
        a = self.write("a.safetensors", {"a": store(x), "b": store(y)})
        found = self.diff(a, self.write("b.safetensors", {"d": turned[1], "c": turned[0]}))
        self.assertEqual(self.verdicts(found), [("transposed", "a", "c", "transposed"), ("transposed", "b", "d", "transposed")])
        self.assertEqual(self.verdicts(self.diff(a, self.write("c.safetensors", {"d": turned[1]}))),
                         [("transposed", "b", "d", "transposed"), ("removed", "a", None, None)])

    def test_transposed_across_formats(self):
        """A block format is read as it is, and the other one is turned, whichever comes first."""
        numbers = numpy.clip(numpy.rint(self.values(64, 96) * 40), -127, 127) + 0.0         # no -0: q8_0 has none
        numbers[:, ::32] = 127
        q8 = self.write("a.gguf", {"blk.0.w": store(numbers, "q8_0")})
        plain = self.write("b.onnx", {"onnx::MatMul_3": store(numpy.ascontiguousarray(numbers.T), "f16")})
        self.assertEqual(self.verdicts(self.diff(q8, plain)), [("transposed", "blk.0.w", "onnx::MatMul_3", "transposed")])
        self.assertEqual(self.verdicts(self.diff(plain, q8)), [("transposed", "onnx::MatMul_3", "blk.0.w", "transposed")])

    def test_transposed_but_not_equal(self):
        x = self.values(300, 200)
        near = x.T + 1e-3
        a = self.write("a.safetensors", {"near": store(x), "far": store(x), "wide": store(x[:, :150])})
        b = self.write("b.safetensors", {"near": store(near), "far": store(self.values(200, 300)), "wide": store(x[:, 50:].reshape(150, 300))})
        found = self.diff(a, b)
        self.assertEqual([row["verdict"] for row in found.rows], ["transposed", "reshaped", "reshaped"])
        self.check_figures(found.rows[0], x, numpy.float32(near).T)

    def test_reshaped(self):
        x = self.values(6, 8)
        a = {"flat": store(x), "ones": store(x), "grown": store(x), "both": store(x)}
        b = {"flat": store(x.reshape(4, 12)), "ones": store(x.reshape(6, 1, 8) + 1), "grown": store(self.values(7, 8)), "both": store(x.reshape(48), "f16")}
        found = self.diff(self.write("a.safetensors", a), self.write("b.safetensors", b))
        self.assertEqual([row["verdict"] for row in found.rows], ["reshaped"] * 4)
        self.assertEqual([row["equal"] for row in found.rows][:3], [48, 0, None])
        self.check_figures(found.rows[1], x, x + numpy.float32(1))

    def test_tied(self):
        x, y = store(self.values(90, 10)), store(self.values(90, 10))
        one, two = {"embed": x, "other": y}, {"embed": x, "lm_head": x, "other": y}
        a, b = self.write("a.safetensors", one), self.write("b.safetensors", two)
        self.assertEqual(self.verdicts(self.diff(a, b))[2:], [("tied", "embed", "lm_head", "content")])
        self.assertEqual(self.verdicts(self.diff(b, a))[2:], [("tied", "lm_head", "embed", "content")])
        renamed = self.write("c.safetensors", {"tok": x, "out.lm_head": x, "other": y})
        want = [("renamed", "lm_head", "out.lm_head", "content"), ("renamed", "embed", "tok", "content")]
        self.assertEqual(sorted(self.verdicts(self.diff(b, renamed))[1:]), sorted(want))
        found = self.diff(a, renamed)
        self.assertEqual([row["verdict"] for row in found.rows], ["identical", "renamed", "tied"])
        wide = self.write("d.safetensors", {"embed": x, "lm_head": store(x.values, "f64"), "other": y})
        self.assertEqual(self.verdicts(self.diff(a, wide))[2:], [("tied", "embed", "lm_head", "decoded")])

    def test_constants_of_layers(self):
        """Between two ways to name tensors: those of one layer, as many on either side, belong together."""
        a, b = {}, {}
        for i in range(3):
            x, zero, ones = store(self.values(32, 32)), store(numpy.zeros(32, "f4")), store(numpy.ones(32, "f4"))
            a.update({f"model.layers.{i}.mlp.up.weight": x, f"model.layers.{i}.mlp.up.bias": zero, f"model.layers.{i}.ln1.weight": ones,
                      f"model.layers.{i}.ln2.weight": ones})
            b.update({f"blk.{i}.ffn_up.weight": x, f"blk.{i}.ffn_up.bias": zero, f"blk.{i}.attn_norm.weight": ones, f"blk.{i}.ffn_norm.weight": ones})
        one = self.write("a.safetensors", a)
        found = self.diff(one, self.write("b.gguf", b))
        self.assertEqual(self.verdicts(found), [("renamed", left, right, "content") for left, right in zip(a, b)])
        del b["blk.1.ffn_norm.weight"]
        found = self.diff(one, self.write("c.gguf", b))
        self.assertEqual([row[:3] for row in self.verdicts(found) if row[0] != "renamed"],
                         [("removed", "model.layers.1.ln1.weight", None), ("removed", "model.layers.1.ln2.weight", None), ("added", None, "blk.1.attn_norm.weight")])

    def test_shifted_names(self):
        """One more in front: what is elsewhere now is told, and that one is stored twice is not."""
        x = [store(self.values(40, 10)) for _ in range(5)]
        a = self.write("a.safetensors", {f"c.{i}": one for i, one in enumerate(x)})
        b = self.write("b.safetensors", {"c.0": store(self.values(40, 10)), **{f"c.{i + 1}": one for i, one in enumerate(x)}})
        found = self.diff(a, b)
        self.assertEqual(self.verdicts(found), [("changed", f"c.{i}", f"c.{i}", "name") for i in range(5)] + [("renamed", "c.4", "c.5", "content")])
        self.assertEqual(found.notes, ["4 tensors that differ from those of their names are in the second checkpoint under other names; the "
                                       "first, c.0, is c.1 there"])
        self.assertEqual(self.verdicts(self.diff(b, a))[-1], ("renamed", "c.5", "c.4", "content"))
        self.assertEqual(self.diff(a, b, flags=BY_NAME).notes, [])

    def test_constants_and_small_ones(self):
        """Equal to many, so names decide or nobody does."""
        zero, ones, small = numpy.zeros(64, "f4"), numpy.ones(64, "f4"), numpy.array([1, 2], "f4")
        a = {f"m.layers.{i}.norm.bias": store(zero) for i in range(10)}
        a.update({f"m.layers.{i}.norm.weight": store(ones) for i in range(3)}, lone=store(ones[:40]), pair=store(small))
        b = {f"layers.{i}.norm.bias": store(zero) for i in reversed(range(10))}
        b.update({f"w{i}": store(ones) for i in range(3)}, only=store(ones[:40]), two=store(small), zero=store(zero))
        found = self.diff(self.write("a.safetensors", a), self.write("b.safetensors", b))
        want = [("renamed", f"m.layers.{i}.norm.bias", f"layers.{i}.norm.bias", "content") for i in range(10)]
        want += [("renamed", "lone", "only", "content"), ("renamed", "pair", "two", "content")]
        want += [("removed", f"m.layers.{i}.norm.weight", None, None) for i in range(3)]
        want += [("added", None, name, None) for name in ("w0", "w1", "w2", "zero")]
        self.assertEqual(self.verdicts(found), want)
        self.assertEqual(len(found.notes), 1)
        self.assertIn("6 tensors", found.notes[0])

    def test_axes_of_one_and_empty_ones(self):
        x = numpy.array([1, 2, 3], "f4")
        a = {"x": store(x.reshape(1, 1, 3)), "y": store(numpy.float32(7)), "none": store(numpy.zeros((2, 0), "f4")), "other": store(numpy.zeros((0, 3), "f4"))}
        b = {"u": store(x.reshape(3, 1, 1)), "v": store(numpy.full((1, 1), 7, "f4")), "w": store(numpy.zeros((2, 0), "f4")), "z": store(numpy.zeros((3, 0), "f4"))}
        found = self.diff(self.write("a.safetensors", a), self.write("b.safetensors", b))
        self.assertEqual(self.verdicts(found), [("reshaped", "x", "u", "content"), ("reshaped", "y", "v", "content"), ("renamed", "none", "w", "content"),
                                                ("removed", "other", None, None), ("added", None, "z", None)])

    def test_padded_with_zeros(self):
        """Samples from the middle agree, and only a whole look tells them apart."""
        a, b = {}, {}
        for i in range(6):
            x = numpy.zeros(5000, "f4")
            x[i] = 1
            a[f"a.{i}.w"], b[f"b.{5 - i}.w"] = store(x), store(x)
        found = self.diff(self.write("a.safetensors", a), self.write("b.safetensors", dict(reversed(b.items()))))
        self.assertEqual(self.verdicts(found), [("renamed", f"a.{i}.w", f"b.{5 - i}.w", "content") for i in range(6)])

    def test_equal_sample_only(self):
        x = self.values(100000)
        y = x.copy()
        y[-1] += 1
        found = self.diff(self.write("a.safetensors", {"x": store(x)}), self.write("b.safetensors", {"y": store(y)}))
        self.assertEqual([row["verdict"] for row in found.rows], ["removed", "added"])
        self.assertEqual(found.notes, ["x and y agree in a sample, but not as a whole: they were not paired"])

    def test_sparse_square(self):
        """A change in a matrix of zeros is none of its order."""
        x = numpy.zeros((50, 50), "f4")
        a = {f"x{i}": store(x) for i in range(20)}
        b = {name: store((self.random.random((50, 50)) < 0.02).astype("f4")) for name in a}
        found = self.diff(self.write("a.safetensors", a), self.write("b.safetensors", b))
        self.assertEqual([row["verdict"] for row in found.rows], ["changed"] * 20)

    def test_equal_content_goes_by_name(self):
        x = store(self.values(500))
        a = {f"m.{i}.{part}.w": x for i in range(4) for part in ("q", "k")}
        b = {f"model.m.{i}.{part}.w": x for part in ("k", "q") for i in (3, 1, 0, 2)}
        found = self.diff(self.write("a.safetensors", a), self.write("b.safetensors", b))
        self.assertEqual(self.verdicts(found), [("renamed", name, "model." + name, "content") for name in a])

    def test_types_without_a_decoder(self):
        data = self.random.integers(0, 256, 66 * 40, dtype="u1").tobytes()
        other = bytes([data[0] ^ 1]) + data[1:]
        shape = (10, 1024)
        a = self.write("a.gguf", {"same": made.raw("iq2_xxs", shape, data), "differ": made.raw("iq2_xxs", shape, data),
                                  "type": made.raw("iq2_xxs", shape, data), "old": made.raw("iq2_xxs", shape, data[::-1])})
        b = self.write("b.gguf", {"same": made.raw("iq2_xxs", shape, data), "differ": made.raw("iq2_xxs", shape, other),
                                  "type": store(self.values(*shape)), "new": made.raw("iq2_xxs", shape, data[::-1])})
        found = self.diff(a, b)
        self.assertEqual([row["verdict"] for row in found.rows], ["identical", "changed", "unexamined", "renamed"])
        self.assertEqual([row["equal"] for row in found.rows], [10240, None, None, 10240])
        self.assertTrue(all(row[key] is None for row in found.rows for key in FIGURES))
        self.assertTrue(any("iq2_xxs" in note for note in found.notes))


class Choices(Case):
    def files(self):
        x, y, z = (store(self.values(50)) for _ in range(3))
        a = self.write("a.safetensors", {"model.x": x, "model.y": y, "model.z": z})
        return a, self.write("b.safetensors", {"model.x": x, "blk.y": y, "model.w": store(self.values(9))})

    def test_patterns(self):
        a, b = self.files()
        self.assertEqual(self.verdicts(self.diff(a, b, "*.y")), [("renamed", "model.y", "blk.y", "content")])
        self.assertEqual(self.verdicts(self.diff(a, b, "blk.*")), [("renamed", "model.y", "blk.y", "content")])
        rest = [("identical", "model.x", "model.x", "name"), ("removed", "model.z", None, None), ("added", None, "model.w", None)]
        for pattern in ("!model.y", "!blk.y", "!*.y"):
            self.assertEqual(self.verdicts(self.diff(a, b, pattern)), rest)
        self.assertIn("nothing is left to compare", self.diff(a, b, "!model.?", status=NOT_FOUND).error)
        self.assertEqual(self.verdicts(self.diff(a, b, "model.[wz]")), [("removed", "model.z", None, None), ("added", None, "model.w", None)])

    def test_patterns_that_match_nothing(self):
        a, b = self.files()
        for patterns in (("blk.z",), ("!blk.z",), ("*", "blk.q")):
            found = self.diff(a, b, *patterns, status=NOT_FOUND)
            self.assertIn("did you mean 'blk.y'", found.error)
            self.assertEqual((found.rows, found.progress), ([], (0, 0, 0, 0)))
        self.diff(a, b, "!*", status=NOT_FOUND)

    def test_incomplete(self):
        x, y = store(self.values(500)), store(self.values(400))
        a = self.write("a.safetensors", {"x": x, "y": y})
        made.write_safetensors(self.folder / "b.safetensors", {"x": x, "y": y}, cut=100)
        for one, other in ((a, self.folder / "b.safetensors"), (self.folder / "b.safetensors", a)):
            found = self.diff(one, other, status=CORRUPT)
            self.assertEqual(self.verdicts(found), [("identical", "x", "x", "name"), ("unexamined", "y", "y", "name")])
            self.assertIn("'y'", found.error)

    def test_odd_names(self):
        x = {name: store(self.values(20)) for name in ("", ".", "..a..", "ä\tb\n", "a/b.0/c", "0", "x" * 3000, "." * 500)}
        y = {name + "!": one for name, one in x.items()}
        found = self.diff(self.write("a.safetensors", x), self.write("b.safetensors", y))
        self.assertEqual(self.verdicts(found), [("renamed", name, name + "!", "content") for name in x])

    def test_nothing(self):
        none, some = self.write("a.gguf", {}), self.write("b.gguf", {"x": store(self.values(5))})
        self.assertEqual(self.verdicts(self.diff(none, some)), [("added", None, "x", None)])
        self.assertEqual(self.verdicts(self.diff(some, none)), [("removed", "x", None, None)])
        self.assertEqual(self.verdicts(self.diff(none, none)), [])


class RealFiles(Case):
    def rows(self, one, other):
        return self.diff(DATA / one, DATA / other).rows

    def test_silero_exports(self):
        rows = self.rows("silero-vad/silero_vad_16k_op15.onnx", "silero-vad/silero_vad_op18_ifless.onnx")
        weights = [row for row in rows if row["dtype"] == "f32" and row["count"] > 1]
        self.assertEqual([row["verdict"] for row in weights], ["identical"] * 14)
        self.assertEqual(weights[1]["name"], "model.encoder.0.reparam_conv.weight")
        self.assertFalse(any(row["verdict"] == "changed" for row in rows))

    def test_silero_safetensors(self):
        rows = self.rows("silero-vad/silero_vad_16k.safetensors", "silero-vad/silero_vad_op18_ifless.onnx")
        paired = [(row["verdict"], row["name"], row["other_name"]) for row in rows if row["paired"]]
        self.assertEqual(paired, [("renamed", "stft_conv.weight", "model.stft.forward_basis_buffer")])

    def test_magika_releases(self):
        rows = self.rows("magika/standard_v3_0.onnx", "magika/standard_v3_1.onnx")
        count = {}
        for row in rows:
            count[row["verdict"]] = count.get(row["verdict"], 0) + 1
        self.assertEqual(count, {"identical": 14, "changed": 9, "renamed": 12, "removed": 1, "added": 1})
        shifted = {row["name"].split("/")[-1]: row["other_name"].split("/")[-1] for row in rows if row["verdict"] == "renamed"}
        self.assertEqual((shifted["Const_14:0"], shifted["truediv_1_recip:0"]), ("Const_2:0", "truediv_recip:0"))


if __name__ == "__main__":
    for folder in ("silero-vad", "magika"):
        if "RealFiles" in sys.argv and not (DATA / folder).is_dir():
            print(f"skipped: there is no {DATA / folder}")
            sys.exit(77)
    unittest.main(argv=[sys.argv[0], *sys.argv[3:]])
