# SPDX-License-Identifier: Apache-2.0
"""The references against numpy, on random shapes and random bits of every format.

ops_numpy.py RUNNER   exit 77 without numpy.  TM_TEST_SEED repeats a failure.
"""
import math
import os
import sys

import op_client as client

try:
    import numpy as np
except ImportError:
    print("skipped: this Python has no numpy (scripts/make-venv)")
    sys.exit(77)

# ---- formats: numpy's own where it has them, tables by the specification where it has not ----

NATIVE = {"f64": "<f8", "f32": "<f4", "f16": "<f2", "i8": "i1", "u8": "u1", "i16": "<i2", "u16": "<u2", "i32": "<i4", "u32": "<u4",
          "i64": "<i8", "u64": "<u8", "bool": "u1"}
FLOATS = ["f64", "f32", "f16", "bf16", "f8_e4m3fn", "f8_e5m2"]
INTEGERS = ["i8", "u8", "i16", "u16", "i32", "u32", "i64", "u64"]
DIGITS = {"f64": 52, "f32": 23, "f16": 10, "bf16": 7, "f8_e4m3fn": 3, "f8_e5m2": 2}
SMALLEST = {"f64": -1074, "f32": -149, "f16": -24, "bf16": -133, "f8_e4m3fn": -9, "f8_e5m2": -16}


def table_of(exponent_bits, mantissa_bits, has_infinity):
    """Values of the codes without sign, by the definition of a binary float."""
    bias = 2 ** (exponent_bits - 1) - 1
    values = []
    for code in range(2 ** (exponent_bits + mantissa_bits)):
        exponent, mantissa = divmod(code, 2 ** mantissa_bits)
        if exponent == 0:
            values.append(math.ldexp(mantissa, 1 - bias - mantissa_bits))
        elif has_infinity and exponent == 2 ** exponent_bits - 1:
            values.append(math.inf if mantissa == 0 else math.nan)
        else:
            values.append(math.ldexp(2 ** mantissa_bits + mantissa, exponent - bias - mantissa_bits))
    if not has_infinity:
        values[-1] = math.nan
    return np.array(values)


TABLES = {"bf16": table_of(8, 7, True), "f8_e4m3fn": table_of(4, 3, False), "f8_e5m2": table_of(5, 2, True)}


def decode(name, data, dims):
    """Bytes -> an array: f64 for floats, the native type for integers."""
    if name in NATIVE:
        array = np.frombuffer(data, NATIVE[name]).reshape(dims)
        return array.astype(np.float64) if name in FLOATS else (array != 0) if name == "bool" else array
    table = TABLES[name]
    codes = np.frombuffer(data, "<u2" if len(table) > 256 else "u1").reshape(dims)
    return np.where(codes >= len(table), -1.0, 1.0) * table[codes % len(table)]


def rounded(name, values):
    """f64 values rounded once to the format's values, as f64."""
    values = np.asarray(values, np.float64)
    if name in NATIVE:
        return values.astype(NATIVE[name]).astype(np.float64)
    table = TABLES[name]
    finite = table[np.isfinite(table)]
    # One more step as in an unlimited range decides what rounds beyond the largest finite value.
    grid = np.append(finite, 2 * finite[-1] - finite[-2])
    size = np.abs(values)
    high = np.clip(np.searchsorted(grid, size), 1, len(grid) - 1)
    low = high - 1
    to_low, to_high = size - grid[low], grid[high] - size
    code = np.where((to_low < to_high) | ((to_low == to_high) & (low % 2 == 0)), low, high)
    beyond = math.inf if np.isinf(table).any() else math.nan
    result = np.where((code == len(finite)) | (size > grid[-1]), beyond, grid[code])
    return np.copysign(np.where(np.isnan(values), math.nan, result), values)


def ulp(name, values):
    """Distance to the next value of the format."""
    exponent = np.frexp(np.where(np.isfinite(values), values, 1.0))[1] - 1 - DIGITS[name]
    return np.ldexp(1.0, np.maximum(exponent, SMALLEST[name]))


# ---- random cases ----


class Cases:
    def __init__(self, runner, seed):
        self.runner = runner
        self.random = np.random.default_rng(seed)
        self.count = 0

    def dims(self, least_rank=0):
        rank = int(self.random.integers(least_rank, 4))
        return tuple(int(extent) for extent in self.random.choice([0, 1, 2, 3, 5, 40], rank, p=[.05, .2, .25, .25, .15, .1]))

    def broadcastable(self, dims):
        kept = dims[int(self.random.integers(0, len(dims) + 1)):]
        return tuple(1 if self.random.random() < .3 else extent for extent in kept)

    def bits(self, name, dims):
        return self.random.bytes(math.prod(dims) * client.BYTES[name])

    def mild(self, name, dims):
        """Values of ordinary size, so that results are neither 0 nor infinite."""
        values = self.random.standard_normal(dims) * np.exp2(self.random.integers(-3, 3, dims))
        return self.encode(name, values)

    def encode(self, name, values):
        values = np.asarray(values)
        if name in NATIVE:
            return values.astype(NATIVE[name]).tobytes()
        result = self.runner.run("cast", [("f64", values.shape, values.astype("<f8").tobytes())], client.switch_attributes(0), name)
        return result[2]

    def run(self, operation, inputs, attributes=b"", output="-"):
        self.count += 1
        name, dims, data = self.runner.run(operation, inputs, attributes, output)
        return name, decode(name, data, dims)


def fail(what, found, expected, right):
    where = tuple(map(int, np.argwhere(~right)[0]))
    print(f"{what}: element {where} is {found[where]!r}, expected {expected[where]!r}")
    sys.exit(1)


def same_shape(what, found, expected):
    if found.shape != expected.shape:
        print(f"{what}: shape {found.shape}, expected {expected.shape}")
        sys.exit(1)


def equal(what, found, expected):
    expected = np.asarray(expected)
    same_shape(what, found, expected)
    right = (found == expected) | ((found != found) & (expected != expected))
    if not right.all():
        fail(what, found, expected, right)


def near(what, name, found, expected, slack=0.0, ulps=1.0):
    """Within `ulps` of the format, plus an absolute slack."""
    expected = np.asarray(expected, np.float64)
    same_shape(what, found, expected)
    target = rounded(name, expected)
    right = (found == target) | ((found != found) & (target != target)) | (np.abs(found - expected) <= ulps * ulp(name, expected) + slack)
    if not right.all():
        fail(what, found, target, right)


# ---- the operations ----


def divide_integers(a, b):
    """Truncates; x / 0 is 0; MIN / -1 wraps."""
    a, b = np.broadcast_arrays(a, b)
    bits = 8 * a.dtype.itemsize
    quotients = []
    for x, y in zip(a.ravel().tolist(), b.ravel().tolist()):
        quotient = 0 if y == 0 else abs(x) // abs(y) * (-1 if (x < 0) != (y < 0) else 1)
        quotients.append(quotient & ((1 << bits) - 1))
    return np.array(quotients, dtype=f"<u{a.dtype.itemsize}").view(a.dtype).reshape(a.shape)


def binary(cases):
    operations = {"add": np.add, "sub": np.subtract, "mul": np.multiply, "div": np.divide}
    predicates = {"equal": np.equal, "not_equal": np.not_equal, "less": np.less, "less_equal": np.less_equal,
                  "greater": np.greater, "greater_equal": np.greater_equal}
    for name in FLOATS + INTEGERS:
        for _ in range(4):
            dims = cases.dims()
            pair = [(name, shape, cases.bits(name, shape)) for shape in (dims, cases.broadcastable(dims))]
            a, b = (decode(item[0], item[2], item[1]) for item in pair)
            for operation, function in operations.items():
                what = f"{operation} {name}"
                expected = divide_integers(a, b) if operation == "div" and name in INTEGERS else function(a, b)
                equal(what, cases.run(operation, pair)[1], rounded(name, expected) if name in FLOATS else expected)
            for predicate, function in predicates.items():
                equal(f"{predicate} {name}", cases.run("compare", pair, client.compare_attributes(predicate))[1], function(a, b))


def unary(cases):
    exact = {"neg": np.negative, "abs": np.abs, "sqrt": np.sqrt, "relu": lambda x: np.where(x < 0, 0.0, x)}
    wide = np.longdouble
    close = {"exp": np.exp, "log": np.log, "tanh": np.tanh, "sigmoid": lambda x: 1 / (1 + np.exp(-x)),
             "silu": lambda x: x / (1 + np.exp(-x)), "erf": np.vectorize(math.erf, otypes=[float]),
             "gelu": lambda x: x * np.vectorize(lambda v: 0.5 * math.erfc(-v / math.sqrt(2)), otypes=[float])(x)}
    # erfc(x) turns a relative error of its argument into one x * x times as large; here x * x stays below 1000.
    ulps_in_f64 = {operation: 1000 if operation == "gelu" else 8 for operation in close}
    for name in FLOATS:
        for _ in range(4):
            dims = cases.dims()
            for operation, function in exact.items():
                data = cases.bits(name, dims)
                equal(f"{operation} {name}", cases.run(operation, [(name, dims, data)])[1], rounded(name, function(decode(name, data, dims))))
            for operation, function in close.items():
                data = cases.mild(name, dims)
                expected = function(decode(name, data, dims).astype(wide))
                near(f"{operation} {name}", name, cases.run(operation, [(name, dims, data)], client.switch_attributes(0) if operation == "gelu" else b"")[1],
                     expected, ulps=ulps_in_f64[operation] if name == "f64" else 1)
    for name in INTEGERS:
        dims = cases.dims()
        data = cases.bits(name, dims)
        x = decode(name, data, dims)
        equal(f"neg {name}", cases.run("neg", [(name, dims, data)])[1], np.negative(x))
        equal(f"abs {name}", cases.run("abs", [(name, dims, data)])[1], np.abs(x))
        equal(f"relu {name}", cases.run("relu", [(name, dims, data)])[1], np.maximum(x, 0))


def ternary(cases):
    for name in FLOATS + INTEGERS:
        for _ in range(3):
            dims = cases.dims()
            inputs = [(name, shape, cases.bits(name, shape)) for shape in (dims, cases.broadcastable(dims), cases.broadcastable(dims))]
            x, low, high = (decode(item[0], item[2], item[1]) for item in inputs)
            equal(f"clamp {name}", cases.run("clamp", inputs)[1], np.where(x < low, low, np.where(x > high, high, x)))
            condition = cases.random.integers(0, 2, dims).astype("u1")
            equal(f"where {name}", cases.run("where", [("bool", dims, condition.tobytes()), *inputs[1:]])[1],
                  np.broadcast_to(np.where(condition, low, high), dims))
            if name in FLOATS:
                chosen = np.where((high == 0) | (x == low), x, np.where(high == 1, low, x + high * (low - x)))
                equal(f"lerp {name}", cases.run("lerp", inputs)[1], rounded(name, chosen))


def philox(counters, key):
    """The four words of Philox4x32-10 for each counter below 2^64."""
    x = [counters & 0xffffffff, counters >> 32, np.zeros_like(counters), np.zeros_like(counters)]
    keys = [key & 0xffffffff, key >> 32]
    for _ in range(10):
        a, b = x[0] * np.uint64(0xd2511f53), x[2] * np.uint64(0xcd9e8d57)
        x = [b >> 32 ^ x[1] ^ keys[0], b & 0xffffffff, a >> 32 ^ x[3] ^ keys[1], a & 0xffffffff]
        keys = [(keys[0] + 0x9e3779b9) & 0xffffffff, (keys[1] + 0xbb67ae85) & 0xffffffff]
    return np.stack(x, -1)


def merge_inputs(cases, name, count):
    """Tensors of one shape, the first of the format and the others of any; now and then elements like the first one's."""
    dims = cases.dims()
    names = [name] + [str(cases.random.choice(FLOATS)) for _ in range(count - 1)]
    inputs = [(kind, dims, cases.bits(kind, dims) if cases.random.random() < .3 else cases.mild(kind, dims)) for kind in names]
    return dims, inputs, [decode(kind, data, dims) for kind, _, data in inputs]


def weighted_sums(cases):
    for name in FLOATS:
        for output in FLOATS:
            for count in (1, 2, 3, 14):
                dims, inputs, x = merge_inputs(cases, name, count)
                weights = cases.random.standard_normal(count)
                expected = weights[0] * x[0]
                for weight, other in zip(weights[1:], x[1:]):
                    expected = expected + weight * other
                found = cases.run("weighted_sum", [inputs[0], ("f64", (count,), weights.tobytes()), *inputs[1:]], output=output)
                equal(f"weighted_sum {name} {output}", found[1], rounded(output, expected))


def differences(x, base):
    return np.where(x == base, 0, x - base)


def dare_sums(cases):
    for name in FLOATS:
        for density in (1, .5, .1, 0):
            for count in (1, 2, 13):
                dims, inputs, x = merge_inputs(cases, name, count + 1)
                first = int(cases.random.integers(0, 1 << 40))
                weights, threshold = cases.random.standard_normal(count), int(density * 2 ** 32)
                factor = 1 / density if density else 1.
                keys = cases.random.integers(0, 1 << 64, count, dtype=np.uint64)
                elements = np.uint64(first) + np.arange(math.prod(dims), dtype=np.uint64).reshape(dims)
                expected = x[0]
                for weight, key, other in zip(weights, keys, x[1:]):
                    words = np.take_along_axis(philox(elements >> 2, int(key)), (elements & 3)[..., None].astype(int), -1)[..., 0]
                    kept = (words < threshold) & (other != x[0])
                    expected = np.where(kept, expected + weight * (factor * (other - x[0])), expected)
                settings = [first] + [int(word) for weight, key in zip(weights, keys)
                                      for word in (np.float64(weight).view(np.uint64), np.float64(factor).view(np.uint64), threshold, key)]
                settings = ("u64", (len(settings),), np.array(settings, np.uint64).tobytes())
                found = cases.run("dare_sum", [inputs[0], settings, *inputs[1:]])
                equal(f"dare_sum {name} {density}", found[1], rounded("f32", expected))


def ties_sums(cases):
    for name in FLOATS:
        for divides in (True, False):
            for count in (1, 2, 3, 13):
                dims, inputs, x = merge_inputs(cases, name, count + 1)
                weights, thresholds, scale = cases.random.standard_normal(count), np.abs(cases.random.standard_normal(count)), 0.7
                products = []
                for weight, threshold, other in zip(weights, thresholds, x[1:]):
                    d = differences(other, x[0])
                    products.append(weight * np.where(np.abs(d.astype(np.float32)).astype(np.float64) < threshold, 0, d))
                elected, total, share = products[0], np.zeros(dims), np.zeros(dims)
                for product in products[1:]:
                    elected = elected + product
                for weight, product in zip(weights, products):
                    agrees = np.where(elected > 0, product > 0, product < 0)
                    total, share = total + np.where(agrees, product, 0), share + np.where(agrees, abs(weight), 0)
                merged = x[0] + scale * (total / share if divides else total)
                expected = np.where(elected == 0, x[0], np.where(np.isnan(elected), elected, merged))
                settings = np.array([scale] + [number for pair in zip(weights, thresholds) for number in pair])
                found = cases.run("ties_sum", [inputs[0], ("f64", settings.shape, settings.tobytes()), *inputs[1:]],
                                  client.switch_attributes(0 if divides else 1))
                equal(f"ties_sum {name} {count}", found[1], rounded("f32", expected))


def magnitudes(cases):
    for name in FLOATS:
        for other in ("f32", "bf16"):
            dims = cases.dims()
            inputs = [(kind, dims, cases.mild(kind, dims)) for kind in (name, other)]
            x, base = (decode(kind, data, dims) for kind, _, data in inputs)
            bits = np.abs(differences(x, base).astype(np.float32)).view(np.uint32).ravel()
            bits = np.where(np.isnan(bits.view(np.float32)), 0x7fc00000, bits)
            upper = bits >> 15
            equal(f"magnitudes {name}", cases.run("magnitudes", inputs, client.magnitudes_attributes())[1], np.bincount(upper, minlength=1 << 16))
            for chosen in np.unique(upper)[:3]:
                found = cases.run("magnitudes", inputs, client.magnitudes_attributes(1, int(chosen)))
                equal(f"magnitudes {name} {chosen}", found[1], np.bincount(bits[upper == chosen] & 0x7fff, minlength=1 << 16))


def to_integer(name, values):
    info = np.iinfo(NATIVE[name])
    clean = [0 if value != value else info.max if value >= info.max else info.min if value <= info.min else int(value)
             for value in values.ravel().tolist()]
    return np.array(clean, dtype=NATIVE[name]).reshape(values.shape)


def sticky(integers):
    """Wide integers as f64 that round to any narrower float as they would themselves: what is cut off leaves a one."""
    values = []
    for integer in integers.ravel().tolist():
        cut = max(abs(integer).bit_length() - 50, 0)
        size = (abs(integer) >> cut | (abs(integer) & ((1 << cut) - 1) != 0)) << cut
        values.append(math.copysign(float(size), integer))
    return np.array(values).reshape(integers.shape)


def cast(cases):
    plain = client.switch_attributes(0)
    for source in FLOATS + INTEGERS + ["bool"]:
        for target in FLOATS + INTEGERS + ["bool"]:
            dims = cases.dims()
            data = cases.bits(source, dims) if cases.random.random() < .5 or source not in FLOATS else cases.mild(source, dims)
            x = decode(source, data, dims)
            found = cases.run("cast", [(source, dims, data)], plain, target)[1]
            if target == "bool":
                expected = x != 0
            elif target in INTEGERS:
                expected = to_integer(target, x) if source in FLOATS else x.astype(NATIVE[target])
            elif source in ("i64", "u64") and target != "f64":
                expected = rounded(target, sticky(x))
            else:
                expected = rounded(target, x.astype(np.float64))
            equal(f"cast {source} to {target}", found, expected)


def moves(cases):
    for name in FLOATS + INTEGERS:
        dims = cases.dims(1)
        data = cases.bits(name, dims)
        x = decode(name, data, dims)
        permutation = [int(axis) for axis in cases.random.permutation(len(dims))]
        equal(f"transpose {name}", cases.run("transpose", [(name, dims, data)], client.transpose_attributes(permutation))[1], x.transpose(permutation))
        axis = int(cases.random.integers(0, len(dims)))
        indices = cases.random.integers(-2, dims[axis] + 2, cases.dims()[:2])
        padded = np.concatenate([x, np.zeros_like(x[(slice(None),) * axis + (slice(0, 1),)] if dims[axis] else np.zeros(dims[:axis] + (1,) + dims[axis + 1:], x.dtype))], axis)
        inside = (indices >= 0) & (indices < dims[axis])
        expected = np.take(padded, np.where(inside, indices, dims[axis]), axis)
        equal(f"gather {name}", cases.run("gather", [(name, dims, data), ("i64", indices.shape, indices.astype("<i8").tobytes())], client.axis_attributes(axis))[1], expected)


def exact_sum(x, axes):
    kept = [axis for axis in range(x.ndim) if axis not in axes]
    result = np.zeros([x.shape[axis] for axis in kept])
    rows = x.transpose(kept + list(axes))
    for index in np.ndindex(result.shape):
        result[index] = math.fsum(rows[index].ravel().tolist())
    return result


def reductions(cases):
    for name in FLOATS + INTEGERS:
        for _ in range(6):
            dims = cases.dims(1)
            is_float = name in FLOATS
            data = cases.mild(name, dims) if is_float else cases.bits(name, dims)
            x = decode(name, data, dims)
            axes = tuple(axis for axis in range(len(dims)) if cases.random.random() < .5)
            attributes = client.reduce_attributes(axes, 0)
            count = math.prod(dims[axis] for axis in axes)
            found = cases.run("sum", [(name, dims, data)], attributes)[1]
            if is_float:
                total = exact_sum(x, axes)
                slack = 1e-14 * exact_sum(np.abs(x), axes)
                near(f"sum {name}", name, found, total, slack)
                near(f"mean {name}", name, cases.run("mean", [(name, dims, data)], attributes)[1], np.divide(total, count), slack)
            else:
                equal(f"sum {name}", found, x.sum(axes, dtype="<u8" if name[0] == "u" else "<i8"))
            if count == 0:
                continue
            data = cases.bits(name, dims)
            x = decode(name, data, dims)
            for operation, function in (("min", np.min), ("max", np.max)):
                equal(f"{operation} {name}", cases.run(operation, [(name, dims, data)], attributes)[1], function(x, axes) if axes else x)
            axis = int(cases.random.integers(0, len(dims)))
            if dims[axis] != 0:
                equal(f"argmax {name}", cases.run("argmax", [(name, dims, data)], client.reduce_attributes([axis], 1))[1], np.argmax(x, axis, keepdims=True))


def products(cases):
    for a_name in FLOATS:
        for b_name in FLOATS:
            batch = cases.dims()[:2]
            m, n, k = (int(extent) for extent in cases.random.choice([1, 2, 7, 20, 70, 300], 3))
            k = 0 if cases.random.random() < .05 else k
            ta, tb = (int(bit) for bit in cases.random.integers(0, 2, 2))
            a_dims = cases.broadcastable(batch) + ((k, m) if ta else (m, k))
            b_dims = batch + ((n, k) if tb else (k, n))
            a_data, b_data = cases.mild(a_name, a_dims), cases.mild(b_name, b_dims)
            a, b = decode(a_name, a_data, a_dims), decode(b_name, b_data, b_dims)
            a, b = (a.swapaxes(-1, -2) if ta else a), (b.swapaxes(-1, -2) if tb else b)
            name, found = cases.run("matmul", [(a_name, a_dims, a_data), (b_name, b_dims, b_data)], client.matmul_attributes(ta, tb))
            near(f"matmul {a_name} {b_name}", name, found, a @ b, slack=(k + 1) * 2.3e-16 * (np.abs(a) @ np.abs(b)))
    for _ in range(4):
        dims = cases.dims()[:1]
        a_dims, b_dims = dims + (3, 90), dims + (90, 5)
        a_data, b_data = cases.bits("i8", a_dims), cases.bits("i8", b_dims)
        a, b = decode("i8", a_data, a_dims).astype(np.int64), decode("i8", b_data, b_dims).astype(np.int64)
        equal("matmul i8", cases.run("matmul", [("i8", a_dims, a_data), ("i8", b_dims, b_data)], client.matmul_attributes())[1], (a @ b).astype(np.int32))


def expand_scale(scale, dims):
    """Each entry repeated until the operand's extents are reached."""
    for axis in range(scale.ndim):
        scale = np.repeat(scale, dims[axis] // scale.shape[axis], axis)
    return scale


def scaled_products(cases):
    for name in ("i8", "u8", "f8_e4m3fn", "f8_e5m2", "f16"):
        for with_zero in (0, 1):
            for _ in range(4):
                m, n, k = (int(extent) for extent in cases.random.choice([2, 4, 6, 12], 3))
                tb = int(cases.random.integers(0, 2))
                dims = [(2, m, k), (2, n, k) if tb else (2, k, n)]
                values, inputs, scales, zeros = [], [], [], []
                for shape in dims:
                    data = cases.bits(name, shape) if name in INTEGERS else cases.mild(name, shape)
                    groups = () if cases.random.random() < .3 else tuple(int(cases.random.choice([1, extent // 2, extent])) for extent in shape)
                    scale = cases.random.standard_normal(groups).astype("<f4")
                    zero = cases.random.integers(-20, 20, groups).astype("<i4")
                    inputs.append((name, shape, data))
                    scales.append(("f32", groups, scale.tobytes()))
                    zeros.append(("i32", groups, zero.tobytes()))
                    centred = decode(name, data, shape).astype(np.float64) - (expand_scale(zero, shape) if with_zero else 0)
                    values.append(centred * expand_scale(scale.astype(np.float64), shape))
                a, b = values[0], values[1].swapaxes(-1, -2) if tb else values[1]
                found = cases.run("matmul_scaled", inputs + scales + (zeros if with_zero else []), client.scaled_attributes(0, tb, with_zero))
                near(f"matmul_scaled {name}", found[0], found[1], a @ b, slack=1e-14 * (np.abs(a) @ np.abs(b)))


def normalizations(cases):
    for name in FLOATS:
        for _ in range(6):
            dims = cases.dims(1)
            if 0 in dims:
                continue
            data = cases.mild(name, dims)
            x = decode(name, data, dims)
            axis = int(cases.random.integers(0, len(dims)))
            e = np.exp(x - x.max(axis, keepdims=True))
            ulps = 8 if name == "f64" else 1
            near(f"softmax {name}", name, cases.run("softmax", [(name, dims, data)], client.axis_attributes(axis))[1], e / e.sum(axis, keepdims=True), ulps=ulps)
            weights = [(name, dims[-1:], cases.mild(name, dims[-1:])) for _ in range(2)]
            scale, shift = (decode(*item[::2], item[1]) for item in weights)
            epsilon = 1e-3
            centred = x - x.mean(-1, keepdims=True)
            normal = centred / np.sqrt((centred ** 2).mean(-1, keepdims=True) + epsilon)
            near(f"layer_norm {name}", name, cases.run("layer_norm", [(name, dims, data), *weights], client.norm_attributes(epsilon))[1], normal * scale + shift,
                 slack=1e-12)
            near(f"rms_norm {name}", name, cases.run("rms_norm", [(name, dims, data), weights[0]], client.norm_attributes(epsilon))[1],
                 x / np.sqrt((x ** 2).mean(-1, keepdims=True) + epsilon) * scale, slack=1e-12)


def indices(cases, values):
    """An integer operand in either width."""
    name = str(cases.random.choice(["i32", "i64"]))
    values = np.asarray(values, NATIVE[name])
    return name, values.shape, values.tobytes()


def rotations(cases):
    for name in FLOATS:
        for _ in range(8):
            batch, tokens, heads, half = (int(extent) for extent in cases.random.choice([1, 2, 3, 5, 40], 4))
            dims = (batch, tokens, heads, 2 * half)
            data, positions = cases.mild(name, dims), cases.random.integers(-5, 4000, tokens)
            x = decode(name, data, dims)
            count = int(2 * cases.random.integers(0, half + 1))
            theta, scale, halves = float(cases.random.choice([0, 500000, 7])), float(cases.random.choice([0, .25])), int(cases.random.integers(0, 2))
            turning = count or 2 * half
            angles = positions[:, None] * (scale or 1) * (theta or 10000) ** (-np.arange(0, turning, 2) / turning)
            turns = np.exp(1j * angles)[:, None, :]
            first, second = (slice(0, turning // 2), slice(turning // 2, turning)) if halves else (slice(0, turning, 2), slice(1, turning, 2))
            turned = (x[..., first] + 1j * x[..., second]) * turns
            expected = x.copy()
            expected[..., first], expected[..., second] = turned.real, turned.imag
            found = cases.run("rope", [(name, dims, data), indices(cases, positions)], client.rope_attributes(theta, scale, count, halves))
            near(f"rope {name}", found[0], found[1], expected, slack=1e-11 * np.abs(x).max())


def updates(cases):
    for name in FLOATS + INTEGERS:
        for _ in range(4):
            dims = cases.dims(1)
            axis = int(cases.random.integers(0, len(dims)))
            count = int(cases.random.integers(0, 5))
            rows_dims = dims[:axis] + (count,) + dims[axis + 1:]
            state_data, rows_data = cases.bits(name, dims), cases.bits(name, rows_dims)
            state, rows = (decode(name, *pair) for pair in ((state_data, dims), (rows_data, rows_dims)))
            start = cases.random.integers(-3, dims[axis] + 3, () if cases.random.random() < .5 else (count,))
            expected = state.copy()
            for row in range(count):
                place = int(start) + row if start.ndim == 0 else int(start[row])
                if 0 <= place < dims[axis]:
                    expected[(slice(None),) * axis + (place,)] = rows[(slice(None),) * axis + (row,)]
            found = cases.run("update", [(name, dims, state_data), (name, rows_dims, rows_data), indices(cases, start)], client.axis_attributes(axis))
            equal(f"update {name}", found[1], expected)


def attend(q, k, v, length, scale, causal, mask):
    """One batch and head: q [tokens, dim], k and v [capacity, ...], mask [tokens, capacity] of floats."""
    y = np.zeros((q.shape[0], v.shape[1]))
    for token in range(q.shape[0]):
        keys = max(length - (q.shape[0] - 1 - token if causal else 0), 0)
        scores = q[token] @ k[:keys].T * scale + mask[token, :keys]
        weights = np.exp(scores - scores.max()) if keys and np.isfinite(scores).any() else np.zeros(0)
        if len(weights):
            y[token] = weights @ v[:keys] / weights.sum()
    return y


def attentions(cases):
    for name in FLOATS:
        for other in ("f32", "f16", "bf16", name):
            for _ in range(3):
                tokens, shared, group, capacity, dim, width = (int(extent) for extent in cases.random.choice([1, 2, 3, 5, 20], 6))
                batch, heads, causal = int(cases.random.integers(1, 3)), shared * group, int(cases.random.integers(0, 2))
                shapes = [(batch, tokens, heads, dim), (batch, capacity, shared, dim), (batch, capacity, shared, width)]
                inputs = [(kind, shape, cases.mild(kind, shape)) for kind, shape in zip((name, other, other), shapes)]
                q, k, v = (decode(item[0], item[2], item[1]) for item in inputs)
                length = int(cases.random.integers(-1, capacity + 2))
                inputs.append(indices(cases, length))
                mask_dims = tuple(1 if cases.random.random() < .3 else extent for extent in (batch, heads, tokens, capacity))[int(cases.random.integers(0, 3)):]
                mask = np.where(cases.random.random(mask_dims) < .3, -np.inf, 0)
                if cases.random.random() < .3:
                    inputs.append(("bool", mask_dims, (mask == 0).astype("u1").tobytes()))
                elif cases.random.random() < .5:
                    mask = np.where(mask == 0, cases.random.integers(-8, 8, mask_dims) / 4, mask)
                    inputs.append(("f32", mask_dims, mask.astype("<f4").tobytes()))
                else:
                    mask = np.zeros(mask_dims)
                mask = np.broadcast_to(mask, (batch, heads, tokens, capacity))
                scale = float(cases.random.choice([0, .1]))
                expected = np.stack([np.stack([attend(q[b, :, h], k[b, :, h // group], v[b, :, h // group], min(length, capacity), scale or dim ** -.5, causal,
                                                      mask[b, h]) for h in range(heads)], 1) for b in range(batch)])
                found = cases.run("attention", inputs, client.attention_attributes(scale, causal))
                near(f"attention {name} {other}", found[0], found[1], expected, slack=1e-12 * np.abs(v).max())


def against_ml_dtypes(cases):
    """A third opinion on the narrow formats, where the package is there."""
    try:
        import ml_dtypes
    except ImportError:
        print("narrow formats: compared with tables made here only (no ml_dtypes)")
        return
    for name, other in (("bf16", ml_dtypes.bfloat16), ("f8_e4m3fn", ml_dtypes.float8_e4m3fn), ("f8_e5m2", ml_dtypes.float8_e5m2)):
        x = np.frombuffer(cases.random.bytes(4 * 20000), "<f4")
        x = np.concatenate([x, cases.random.standard_normal(20000).astype("<f4") * 100])
        found = cases.run("cast", [("f32", x.shape, x.tobytes())], client.switch_attributes(0), name)[1]
        equal(f"cast f32 to {name} (ml_dtypes)", found, x.astype(other).astype(np.float64))
    print("narrow formats: also compared with ml_dtypes", ml_dtypes.__version__)


def main():
    seed = int(os.environ.get("TM_TEST_SEED", "20261"), 0)
    print(f"TM_TEST_SEED={seed} numpy {np.__version__}")
    cases = Cases(client.Runner(sys.argv[1]), seed)
    np.seterr(all="ignore")
    for family in (binary, unary, ternary, weighted_sums, dare_sums, ties_sums, magnitudes, cast, moves, reductions, products, scaled_products,
                   normalizations, rotations, updates, attentions, against_ml_dtypes):
        before = cases.count
        family(cases)
        print(f"{family.__name__}: {cases.count - before} cases agree")
    return 0


if __name__ == "__main__":
    sys.exit(main())
