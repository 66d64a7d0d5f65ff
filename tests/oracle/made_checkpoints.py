# SPDX-License-Identifier: Apache-2.0
"""Checkpoints made of numpy arrays in each format that the library reads.  A Stored is bytes with a format's name; its values are
what they decode to, as float64 (integers as they are)."""
import json
import struct

import numpy

SAFETENSORS = {"f64": "F64", "f32": "F32", "f16": "F16", "bf16": "BF16", "i8": "I8", "u8": "U8", "i16": "I16", "i32": "I32", "i64": "I64",
               "u64": "U64", "bool": "BOOL"}
GGUF = {"f32": 0, "f16": 1, "q4_0": 2, "q8_0": 8, "q4_k": 12, "q6_k": 14, "iq2_xxs": 16, "i8": 24, "i16": 25, "i32": 26, "i64": 27, "f64": 28, "bf16": 30}
ONNX = {"f32": 1, "u8": 2, "i8": 3, "i16": 5, "i32": 6, "i64": 7, "bool": 9, "f16": 10, "f64": 11, "u64": 13, "bf16": 16}
NUMPY = {"f64": "<f8", "f32": "<f4", "f16": "<f2", "i8": "i1", "u8": "u1", "i16": "<i2", "i32": "<i4", "i64": "<i8", "u64": "<u8", "bool": "?"}


class Stored:
    def __init__(self, kind, shape, data, values):
        self.kind, self.shape, self.data, self.values = kind, tuple(shape), data, values


def to_bf16(array):
    bits = numpy.ascontiguousarray(array, "<f4").view("<u4").astype(numpy.uint64)
    return ((bits + 0x7fff + (bits >> 16 & 1)) >> 16).astype("<u2")


def from_bf16(bits):
    return (bits.astype("<u4") << 16).view("<f4")


def to_q8_0(array):
    blocks = numpy.ascontiguousarray(array, "<f4").reshape(-1, 32)
    scales = (numpy.abs(blocks).max(axis=1) / numpy.float32(127)).astype("<f2")
    inverse = numpy.divide(1, scales.astype("<f4"), out=numpy.zeros(len(scales), "<f4"), where=scales != 0)
    return scales, numpy.clip(numpy.rint(blocks * inverse[:, None]), -127, 127).astype("i1")


def store(array, kind=None):
    """Rounds to the kind; None: the array's own."""
    array = numpy.asarray(array)
    kind = kind or next(name for name, code in NUMPY.items() if numpy.dtype(code) == array.dtype)
    if kind == "bf16":
        bits = to_bf16(array)
        return Stored(kind, array.shape, bits.tobytes(), from_bf16(bits).astype("f8").reshape(array.shape))
    if kind == "q8_0":
        scales, quants = to_q8_0(array)
        data = b"".join(struct.pack("<e", scale) + row.tobytes() for scale, row in zip(scales, quants))
        return Stored(kind, array.shape, data, (scales.astype("f8")[:, None] * quants).reshape(array.shape))
    with numpy.errstate(over="ignore"):
        rounded = numpy.ascontiguousarray(array.astype(NUMPY[kind]))
    return Stored(kind, array.shape, rounded.tobytes(), rounded.astype("f8") if kind[0] == "f" else rounded)


def raw(kind, shape, data):
    """Bytes of a format that numpy cannot decode."""
    return Stored(kind, shape, data, None)


def write_safetensors(path, tensors, cut=0):
    header, offset = {}, 0
    for name, one in tensors.items():
        header[name] = {"dtype": SAFETENSORS[one.kind], "shape": list(one.shape), "data_offsets": [offset, offset + len(one.data)]}
        offset += len(one.data)
    text = json.dumps(header).encode()
    data = struct.pack("<Q", len(text)) + text + b"".join(one.data for one in tensors.values())
    path.write_bytes(data[:len(data) - cut])


def write_gguf(path, tensors):
    infos, data = b"", b""
    for name, one in tensors.items():
        data += bytes(-len(data) % 32)
        name = name.encode()
        infos += struct.pack("<Q", len(name)) + name + struct.pack("<I", len(one.shape))
        infos += struct.pack(f"<{len(one.shape)}Q", *reversed(one.shape)) + struct.pack("<IQ", GGUF[one.kind], len(data))
        data += one.data
    head = b"GGUF" + struct.pack("<IQQ", 3, len(tensors), 0) + infos
    path.write_bytes(head + bytes(-len(head) % 32) + data)


def varint(number):
    out = b""
    while number > 127:
        out += bytes([number & 127 | 128])
        number >>= 7
    return out + bytes([number])


def field(number, content):
    if isinstance(content, int):
        return varint(number << 3) + varint(content)
    return varint(number << 3 | 2) + varint(len(content)) + content


def write_onnx(path, tensors):
    graph = field(2, b"graph")
    for name, one in tensors.items():
        dims = b"".join(field(1, extent) for extent in one.shape)
        graph += field(5, dims + field(2, ONNX[one.kind]) + field(8, name.encode()) + field(9, one.data))
    path.write_bytes(field(1, 8) + field(7, graph) + field(8, field(2, 17)))


def write_npy(path, one):
    numpy.save(path, numpy.frombuffer(one.data, NUMPY[one.kind]).reshape(one.shape))


WRITERS = {"safetensors": write_safetensors, "gguf": write_gguf, "onnx": write_onnx}
KINDS = {"safetensors": SAFETENSORS, "gguf": GGUF, "onnx": ONNX}


def write(path, tensors):
    WRITERS[path.suffix[1:]](path, tensors)
    return path
