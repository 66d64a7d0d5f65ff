#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes a file for the benchmarks: random normal values, the same megabyte over and over, in each tensor from another place on.
Floats become safetensors, blocks GGUF.  With PERCENT so many of the tensors, the last ones, hold values that noise of a hundredth
of their size has moved.

usage: make_checkpoint.py F32|BF16|Q8_0 MEGABYTES TENSORS FILE [PERCENT]
"""
import array
import json
import random
import struct
import sys

ELEMENT_BYTES = {"F32": 4, "BF16": 2, "Q8_0": 34}
ELEMENTS = {"F32": 1, "BF16": 1, "Q8_0": 32}            # of a block


def quantized(values):
    """As quantizers do: the largest of 32 values becomes 127 or -127."""
    blocks = []
    for i in range(0, len(values) // 32 * 32, 32):
        block = values[i : i + 32]
        scale = max(map(abs, block)) / 127
        blocks.append(struct.pack("<e32b", scale, *(round(value / scale) for value in block)))
    return b"".join(blocks)


def megabyte(dtype, is_off=False):
    rng, noise = random.Random(1), random.Random(2)
    values = array.array("f", (rng.gauss(0, 0.02) for _ in range((1 << 20) // ELEMENT_BYTES[dtype] * ELEMENTS[dtype])))
    if is_off:
        values = array.array("f", (value + noise.gauss(0, 0.0002) for value in values))
    if dtype == "Q8_0":
        return quantized(values)
    data = values.tobytes()
    return data if dtype == "F32" else b"".join(data[i + 2 : i + 4] for i in range(0, len(data), 4))


def safetensors_header(dtype, size, count):
    width = ELEMENT_BYTES[dtype]
    header = {f"layer.{i}.weight": {"dtype": dtype, "shape": [size // width], "data_offsets": [i * size, (i + 1) * size]}
              for i in range(count)}
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    return struct.pack("<Q", len(text)) + text


def gguf_header(size, count):
    infos = b""
    for i in range(count):
        name = f"layer.{i}.weight".encode()
        infos += struct.pack("<Q", len(name)) + name + struct.pack("<IQIQ", 1, size // 34 * 32, 8, i * size)
    head = struct.pack("<4sIQQ", b"GGUF", 3, count, 0) + infos
    return head + bytes(-len(head) % 32)


def tensor(body, size, begin):
    yield body[begin : begin + size]
    left = size - min(size, len(body) - begin)
    while left > 0:
        yield body[:left]
        left -= len(body)


def main():
    dtype, megabytes, count, path = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), sys.argv[4]
    off_count = count * (int(sys.argv[5]) if len(sys.argv) > 5 else 0) // 100
    width = ELEMENT_BYTES[dtype]
    granule = width * 16 if dtype == "Q8_0" else width   # data of GGUF is aligned
    size = max(granule, (megabytes << 20) // count // granule * granule)
    body = megabyte(dtype)
    off_body = megabyte(dtype, is_off=True) if off_count else body
    with open(path, "wb") as file:
        file.write(gguf_header(size, count) if dtype == "Q8_0" else safetensors_header(dtype, size, count))
        for i in range(count):
            file.writelines(tensor(body if i < count - off_count else off_body, size, i * 997 * width % len(body)))


main()
