#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The figures of `tensormorph diff` for every tensor of two files that make_checkpoint.py wrote, as a plain numpy script computes
them: a tensor at a time, decoded to f32, differences and sums in f64.

usage: numpy_diff.py A B [ROUNDS]     prints the numpy version, the median seconds and rate, when the first tensor was done, and the
                                      most memory that was resident
"""

import json
import math
import resource
import statistics
import struct
import sys
import time

import numpy

Q8_0 = numpy.dtype([("scale", "<f2"), ("quants", "i1", 32)])


def safetensors(path):
    with open(path, "rb") as file:
        length = struct.unpack("<Q", file.read(8))[0]
        header = json.loads(file.read(length))
    data = numpy.memmap(path, mode="r", offset=8 + length)
    for name, entry in header.items():
        if name != "__metadata__":
            begin, end = entry["data_offsets"]
            yield name, entry["dtype"], data[begin:end]


def gguf(path):
    """Of files with q8_0 tensors of one axis and without metadata."""
    data = numpy.memmap(path, mode="r")
    count, place = struct.unpack_from("<Q", data, 8)[0], 24
    infos = []
    for _ in range(count):
        length = struct.unpack_from("<Q", data, place)[0]
        name = bytes(data[place + 8 : place + 8 + length]).decode()
        _, elements, _, offset = struct.unpack_from("<IQIQ", data, place + 8 + length)
        infos.append((name, elements // 32 * Q8_0.itemsize, offset))
        place += 8 + length + 24
    begin = place + -place % 32
    for name, size, offset in infos:
        yield name, "Q8_0", data[begin + offset : begin + offset + size]


def tensors(path):
    with open(path, "rb") as file:
        return gguf(path) if file.read(4) == b"GGUF" else safetensors(path)


def decode(dtype, data):
    if dtype == "F32":
        return data.view(numpy.float32)
    if dtype == "BF16":
        return (data.view(numpy.uint16).astype(numpy.uint32) << 16).view(numpy.float32)
    blocks = data.view(Q8_0)
    return (blocks["scale"].astype(numpy.float32)[:, None] * blocks["quants"]).reshape(-1)


def figures(a, b):
    equal = int((a.view(numpy.uint32) == b.view(numpy.uint32)).sum())
    finite = numpy.isfinite(a) & numpy.isfinite(b)
    nonfinite = a.size - int(finite.sum())
    if nonfinite:
        a, b = a[finite], b[finite]
    a, b = a.astype(numpy.float64), b.astype(numpy.float64)
    difference = numpy.abs(a - b)
    larger = numpy.maximum(numpy.abs(a), numpy.abs(b))
    relative = numpy.divide(difference, larger, out=numpy.zeros_like(difference), where=larger > 0)
    distance, norm, other_norm = (math.sqrt(numpy.dot(x, x)) for x in (difference, a, b))
    return {
        "count": a.size,
        "equal": equal,
        "nonfinite": nonfinite,
        "max_abs": difference.max(),
        "max_rel": relative.max(),
        "distance": distance,
        "norm": norm,
        "other_norm": other_norm,
        "rel_l2": distance / norm,
        "cosine": numpy.dot(a, b) / norm / other_norm,
    }


def main():
    paths, rounds = sys.argv[1:3], int(sys.argv[3]) if len(sys.argv) > 3 else 3
    seconds, first, total = [], None, 0
    for _ in range(rounds):
        start, total = time.perf_counter(), 0
        others = {name: (dtype, data) for name, dtype, data in tensors(paths[1])}
        for name, dtype, data in tensors(paths[0]):
            figures(decode(dtype, data), decode(*others[name]))
            total += data.size + others[name][1].size
            first = first or time.perf_counter() - start
        seconds.append(time.perf_counter() - start)
    median, resident = statistics.median(seconds), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    print(
        f"numpy {numpy.__version__}: median {median:.3f} s of {rounds} round{'s' * (rounds != 1)}, {total / median / 1e9:.2f} GB/s, "
        f"first row after {1000 * first:.0f} ms, at most {resident // 1000} MB resident with the mappings"
    )


main()
