# SPDX-License-Identifier: Apache-2.0
"""Talks to op_runner: one case in, one result out (the protocol is in op_runner.c)."""
import math
import struct
import subprocess

BYTES = {"f64": 8, "f32": 4, "f16": 2, "bf16": 2, "f8_e4m3fn": 1, "f8_e5m2": 1, "i8": 1, "u8": 1, "i16": 2, "u16": 2,
         "i32": 4, "u32": 4, "i64": 8, "u64": 8, "bool": 1}


class Refused(Exception):
    pass


class Runner:
    def __init__(self, path):
        self.process = subprocess.Popen([path], stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def run(self, operation, inputs, attributes=b"", output="-"):
        """inputs: (format, dims, bytes) each; gives (format, dims, bytes).  Raises Refused."""
        to, back = self.process.stdin, self.process.stdout
        to.write(f"{operation} {attributes.hex() or '-'} {output} {len(inputs)}\n".encode())
        for name, dims, data in inputs:
            assert len(data) == math.prod(dims) * BYTES[name], (operation, name, dims, len(data))
            to.write(" ".join([name, str(len(dims)), *map(str, dims)]).encode() + b"\n" + data)
        to.flush()
        kind, _, rest = back.readline().decode().rstrip("\n").partition(" ")
        if kind != "ok":
            raise Refused(rest or "no answer")
        name, _, *dims = rest.split()
        dims = tuple(map(int, dims))
        return name, dims, back.read(math.prod(dims) * BYTES[name])


def axis_attributes(axis):
    return struct.pack("<II", axis, 0)


def reduce_attributes(axes, keep_dims):
    return struct.pack("<II", sum(1 << axis for axis in axes), keep_dims)


def compare_attributes(predicate):
    names = ["equal", "not_equal", "less", "less_equal", "greater", "greater_equal"]
    return struct.pack("<II", names.index(predicate), 0)


def transpose_attributes(permutation):
    return bytes(permutation) + bytes(8 - len(permutation))


def matmul_attributes(transpose_a=0, transpose_b=0):
    return struct.pack("<II", transpose_a, transpose_b)


def scaled_attributes(transpose_a=0, transpose_b=0, zero_points=0):
    return struct.pack("<IIII", transpose_a, transpose_b, zero_points, 0)


def norm_attributes(epsilon):
    return struct.pack("<d", epsilon)


def rope_attributes(theta=0.0, scale=0.0, rotary_dims=0, halves=0):
    return struct.pack("<ddII", theta, scale, rotary_dims, halves)


def attention_attributes(scale=0.0, causal=0):
    return struct.pack("<dII", scale, causal, 0)


def magnitudes_attributes(within=0, upper=0):
    return struct.pack("<II", within, upper)


def switch_attributes(value):
    """cast (saturate) and gelu (tanh_form)."""
    return struct.pack("<II", value, 0)
