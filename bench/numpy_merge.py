#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The mean of two checkpoints of equal tensors, as a plain numpy script computes it: safetensors of f32 or bf16, or GGUF of q8_0
(with the package gguf).  The result is brought to the disk.

usage: numpy_merge.py A B OUT [ROUNDS]     prints the numpy version, the median seconds and GB written a second
"""
import json
import os
import statistics
import struct
import sys
import time

import numpy


def bf16_to_f32(bits):
    return (bits.astype(numpy.uint32) << 16).view(numpy.float32)


def f32_to_bf16(values):
    bits = values.view(numpy.uint32)
    return ((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16).astype(numpy.uint16)


def mean(a, b, dtype):
    if dtype == "F32":
        return (0.5 * a.view(numpy.float32) + 0.5 * b.view(numpy.float32)).astype(numpy.float32)
    if dtype == "BF16":
        return f32_to_bf16(0.5 * bf16_to_f32(a.view(numpy.uint16)) + 0.5 * bf16_to_f32(b.view(numpy.uint16)))
    from gguf import GGMLQuantizationType, quants
    kind = GGMLQuantizationType.Q8_0
    return quants.quantize(0.5 * quants.dequantize(a, kind) + 0.5 * quants.dequantize(b, kind), kind)


def safetensors(path):
    """Yields the bytes before the data, then each tensor's dtype and bytes."""
    with open(path, "rb") as file:
        length = struct.unpack("<Q", file.read(8))[0]
        header = json.loads(file.read(length))
    data = numpy.memmap(path, mode="r")
    yield None, data[: 8 + length]
    for name, entry in header.items():
        if name != "__metadata__":
            begin, end = entry["data_offsets"]
            yield entry["dtype"], data[8 + length + begin : 8 + length + end]


def gguf_file(path):
    from gguf import GGUFReader
    tensors = sorted(GGUFReader(path).tensors, key=lambda tensor: tensor.data_offset)
    data = numpy.memmap(path, mode="r")
    begin = int(tensors[0].data_offset)
    yield None, data[:begin]
    for tensor in tensors:
        begin = int(tensor.data_offset)
        yield "Q8_0", data[begin : begin + int(tensor.n_bytes)]


def merge(a, b, out):
    parts = gguf_file if a.endswith(".gguf") else safetensors
    with open(out, "wb") as file:
        for (dtype, left), (_, right) in zip(parts(a), parts(b)):
            file.write(left if dtype is None else mean(left, right, dtype))
            if a.endswith(".gguf"):
                file.write(bytes(-file.tell() % 32))
        file.flush()
        os.fsync(file.fileno())


def main():
    a, b, out = sys.argv[1:4]
    rounds = int(sys.argv[4]) if len(sys.argv) > 4 else 3
    seconds = []
    for _ in range(rounds):
        start = time.perf_counter()
        merge(a, b, out)
        seconds.append(time.perf_counter() - start)
    size = os.path.getsize(out)
    os.unlink(out)
    median = statistics.median(seconds)
    print(f"numpy {numpy.__version__}: median {median:.3f} s of {rounds} rounds, {size / median / 1e9:.2f} GB/s written")


main()
