#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""mean, std and l2 of `stats` against exact arithmetic, where the mean is large beside the deviation and where it is not;
the same figures from any number of threads and from the reference alone.

usage: deviation.py COMMAND
"""
import json
import math
import os
import random
import struct
import subprocess
import sys
import tempfile
from fractions import Fraction

RELATIVE = 1e-6


def pack(kind, value):
    if kind == "BF16":
        return struct.pack("<f", value)[2:]
    return struct.pack({"F64": "<d", "F32": "<f", "F16": "<e", "I64": "<q"}[kind], value)


def unpack(kind, data):
    if kind == "BF16":
        return struct.unpack("<f", b"\0\0" + data)[0]
    return struct.unpack({"F64": "<d", "F32": "<f", "F16": "<e", "I64": "<q"}[kind], data)[0]


def cases():
    rng = random.Random(11)
    yield "plain", "F32", [rng.gauss(0, 1) for _ in range(70000)]
    yield "norm", "F32", [1 + rng.gauss(0, 1e-5) for _ in range(4096)]
    yield "offset", "F32", [1e6 + rng.random() for _ in range(40000)]
    yield "half", "F16", [rng.gauss(100, 1) for _ in range(40000)]
    yield "brain", "BF16", [rng.gauss(1, 0.01) for _ in range(40000)]
    yield "time", "F64", [1.7e9 + 1000 * rng.random() for _ in range(33000)]
    yield "far", "F64", [1e15 + rng.random() for _ in range(1000)]
    yield "count", "I64", [10**12 + rng.randrange(100) for _ in range(5000)]
    yield "special", "F32", [math.nan, math.inf, -math.inf] + [1e4 + rng.random() for _ in range(3000)]
    yield "constant", "F16", [3.25] * 5000


def make_checkpoint(path):
    header, data, expected = {}, b"", {}
    for name, kind, values in cases():
        encoded = [pack(kind, value) for value in values]
        body = b"".join(encoded)
        header[name] = {"dtype": kind, "shape": [len(values)], "data_offsets": [len(data), len(data) + len(body)]}
        data += body
        expected[name] = [v for v in (unpack(kind, e) for e in encoded) if math.isfinite(v)]
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text + data)
    return expected


def exact(values):
    numbers = [Fraction(v) for v in values]
    mean = sum(numbers) / len(numbers)
    variance = sum((n - mean) ** 2 for n in numbers) / len(numbers)
    return float(mean), math.sqrt(variance), math.sqrt(sum(n * n for n in numbers)), float(sum(map(abs, numbers)) / len(numbers))


def tensors(command, path, *options):
    done = subprocess.run([command, "stats", "--json", *options, path], capture_output=True, text=True, timeout=250)
    if done.returncode != 0:
        raise SystemExit(f"{options}: exit {done.returncode}: {done.stderr}")
    return json.loads(done.stdout)["tensors"]


def main():
    command, failures = sys.argv[1], 0
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "model.safetensors")
        expected = make_checkpoint(path)
        found = tensors(command, path)
        for options in (["--threads", "1"], ["--threads", "3"], ["--no-device", "cpu"], ["--reproducible"]):
            if tensors(command, path, *options) != found:
                failures += 1
                print(f"{options}: other figures")
    for tensor in found:
        mean, std, l2, magnitude = exact(expected[tensor["name"]])
        errors = {
            "mean": abs(tensor["mean"] - mean) / magnitude,
            "std": abs(tensor["std"] - std) / (std or 1),
            "l2": abs(tensor["l2"] - l2) / l2,
        }
        bad = {figure: error for figure, error in errors.items() if not error <= RELATIVE}
        failures += len(bad)
        print(f"{tensor['name']:10} {tensor['dtype']:5} " + (f"off by {bad}" if bad else "agrees"))
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
