#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes a safetensors file for the benchmarks: random normal values, the same megabyte over and over.

usage: make_checkpoint.py F32|BF16 MEGABYTES TENSORS FILE
"""
import array
import json
import random
import struct
import sys


def megabyte(dtype):
    rng = random.Random(1)
    values = array.array("f", (rng.gauss(0, 0.02) for _ in range(1 << (18 if dtype == "F32" else 19))))
    data = values.tobytes()
    return data if dtype == "F32" else b"".join(data[i + 2 : i + 4] for i in range(0, len(data), 4))


def main():
    dtype, megabytes, count, path = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), sys.argv[4]
    width = {"F32": 4, "BF16": 2}[dtype]
    size = max(width, (megabytes << 20) // count // width * width)
    header = {f"layer.{i}.weight": {"dtype": dtype, "shape": [size // width], "data_offsets": [i * size, (i + 1) * size]}
              for i in range(count)}
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    body = megabyte(dtype)
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text)
        left = size * count
        while left > 0:
            file.write(body[:left])
            left -= len(body)


main()
