#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The figures of `tensormorph stats` for every tensor of an f32 safetensors file, as a plain numpy script computes them.

usage: numpy_stats.py FILE [ROUNDS]     prints the numpy version and the median seconds
"""
import json
import statistics
import struct
import sys
import time

import numpy


def tensors(path):
    with open(path, "rb") as file:
        length = struct.unpack("<Q", file.read(8))[0]
        header = json.loads(file.read(length))
    data = numpy.memmap(path, mode="r", offset=8 + length)
    for name, entry in header.items():
        if name != "__metadata__":
            begin, end = entry["data_offsets"]
            yield name, data[begin:end].view(numpy.float32)


def figures(values):
    finite = values[numpy.isfinite(values)]
    magnitude = numpy.abs(finite)
    tiny = numpy.finfo(numpy.float32).tiny
    return {
        "count": values.size,
        "nan": int(numpy.isnan(values).sum()),
        "pos_inf": int(numpy.isposinf(values).sum()),
        "neg_inf": int(numpy.isneginf(values).sum()),
        "zero": int((values == 0).sum()),
        "subnormal": int(((magnitude > 0) & (magnitude < tiny)).sum()),
        "min": finite.min(), "max": finite.max(), "abs_max": magnitude.max(),
        "mean": finite.mean(dtype=numpy.float64), "std": finite.std(dtype=numpy.float64),
        "l2": numpy.sqrt(numpy.square(finite, dtype=numpy.float64).sum()),
    }


def main():
    path, rounds = sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 3
    seconds = []
    for _ in range(rounds):
        start = time.perf_counter()
        for _, values in tensors(path):
            figures(values)
        seconds.append(time.perf_counter() - start)
    print(f"numpy {numpy.__version__}: median {statistics.median(seconds):.3f} s of {rounds} rounds")


main()
