#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""stats on an emulated processor without AVX2 gives the bytes that it gives on this one: the reference answers there.

usage: plain_processor.py COMMAND
"""
import json
import os
import random
import shutil
import struct
import subprocess
import sys
import tempfile

EMULATOR = "qemu-x86_64"
SKIPPED = 77


def f32_to(kind, value):
    bits = struct.unpack("<I", struct.pack("<f", value))[0]
    return struct.pack("<H", bits >> 16) if kind == "BF16" else struct.pack("<f", value)


def make_checkpoint(path):
    """Ordinary values, special ones, and sizes around the block and superblock of the canonical sum."""
    rng = random.Random(7)
    special = [float("nan"), float("inf"), float("-inf"), 0.0, -0.0, 1e-40, 3e38, -3e38]
    header, data = {}, b""
    for kind in ("F32", "BF16"):
        for count in (1, 15, 511, 513, 40000):
            values = [rng.gauss(0, 1) if rng.random() < 0.99 else rng.choice(special) for _ in range(count)]
            body = b"".join(f32_to(kind, value) for value in values)
            header[f"{kind}.{count}"] = {"dtype": kind, "shape": [count], "data_offsets": [len(data), len(data) + len(body)]}
            data += body
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text + data)


def tensors(command, path):
    done = subprocess.run(command + ["stats", "--json", path], capture_output=True, text=True, timeout=250)
    if done.returncode != 0:
        raise SystemExit(f"{' '.join(command)}: exit {done.returncode}: {done.stderr}")
    document = json.loads(done.stdout)
    return document["tensors"], [device["name"] for device in document["devices"]]


def main():
    command = sys.argv[1]
    emulator = shutil.which(EMULATOR)
    if emulator is None or os.uname().machine != "x86_64":
        print(f"skipped: there is no {EMULATOR}")
        return SKIPPED
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "model.safetensors")
        make_checkpoint(path)
        here, here_devices = tensors([command], path)
        there, there_devices = tensors([emulator, "-cpu", "qemu64", command], path)
    if there_devices != ["reference:0"]:
        raise SystemExit(f"the emulated processor used {there_devices}, expected the reference alone")
    if here != there:
        different = [a["name"] for a, b in zip(here, there) if a != b]
        raise SystemExit(f"different figures: {different}")
    print(f"{len(here)} tensors: equal figures from {here_devices} and {there_devices}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
