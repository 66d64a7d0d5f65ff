# SPDX-License-Identifier: Apache-2.0
"""Checkpoints for tests of merging, made and read with numpy alone, and one run of merge_runner."""
import dataclasses
import json
import os
import struct
import subprocess
import tempfile

import numpy

SAFETENSORS = {"f64": "F64", "f32": "F32", "f16": "F16", "bf16": "BF16", "i64": "I64", "u8": "U8", "f8_e4m3": "F8_E4M3",
               "f8_e5m2": "F8_E5M2"}
GGUF = {"f32": (0, 1, 4), "f16": (1, 1, 2), "q4_0": (2, 32, 18), "q8_0": (8, 32, 34), "i32": (26, 1, 4), "bf16": (30, 1, 2)}
SIZES = {"F64": 8, "F32": 4, "F16": 2, "BF16": 2, "I64": 8, "U8": 1, "F8_E4M3": 1, "F8_E5M2": 1}


@dataclasses.dataclass
class Tensor:
    kind: str
    shape: tuple
    data: bytes

    def values(self):
        """As float64."""
        return decode(self.kind, self.data).reshape(self.shape)


def to_bf16(values):
    """float64 to the bits of bf16, rounded once; for numbers that are normal there, zeros, infinities and NaN."""
    bits = numpy.asarray(values, numpy.float64).view(numpy.uint64)
    shift = numpy.uint64(45)
    odd = (bits >> shift) & numpy.uint64(1)
    finite = numpy.isfinite(values)
    rounded = numpy.where(finite, (bits + numpy.uint64((1 << 44) - 1) + odd) >> shift << shift, bits)
    upper = rounded.view(numpy.float64).astype(numpy.float32).view(numpy.uint32) >> numpy.uint32(16)
    return numpy.where(numpy.isnan(values), numpy.uint32(0x7FC0), upper).astype(numpy.uint16)


def to_q8_0(values):
    """Blocks of 32: the scale is the largest magnitude / 127, in f32 and kept as f16; quotients are rounded, half away from 0."""
    blocks = numpy.asarray(values, numpy.float32).reshape(-1, 32)
    scales = numpy.abs(blocks).max(axis=1) / numpy.float32(127)
    inverse = numpy.where(scales != 0, numpy.float32(1) / numpy.where(scales != 0, scales, 1), numpy.float32(0)).astype(numpy.float32)
    scaled = blocks * inverse[:, None]
    rounded = (numpy.sign(scaled) * numpy.floor(numpy.abs(scaled) + numpy.float32(0.5))).astype(numpy.int8)
    out = numpy.empty((len(blocks), 34), numpy.uint8)
    out[:, :2] = scales.astype(numpy.float16)[:, None].view(numpy.uint8)
    out[:, 2:] = rounded.view(numpy.uint8)
    return out.tobytes()


def encode(kind, values):
    values = numpy.asarray(values)
    with numpy.errstate(over="ignore"):
        if kind == "bf16":
            return to_bf16(values).tobytes()
        if kind == "q8_0":
            return to_q8_0(values)
        return values.astype({"f64": "f8", "f32": "f4", "f16": "f2", "i64": "i8", "i32": "i4", "u8": "u1"}[kind]).tobytes()


def decode(kind, data):
    if kind == "bf16":
        return (numpy.frombuffer(data, numpy.uint16).astype(numpy.uint32) << 16).view(numpy.float32).astype(numpy.float64)
    if kind == "q8_0":
        blocks = numpy.frombuffer(data, numpy.uint8).reshape(-1, 34)
        scales = blocks[:, :2].copy().view(numpy.float16).astype(numpy.float32)
        return (blocks[:, 2:].view(numpy.int8).astype(numpy.float32) * scales).astype(numpy.float64).ravel()
    return numpy.frombuffer(data, {"f64": "f8", "f32": "f4", "f16": "f2", "i64": "i8", "i32": "i4", "u8": "u1"}[kind]).astype(numpy.float64)


def make(kind, values):
    return Tensor(kind, tuple(numpy.shape(values)), encode(kind, values))


def write_safetensors(path, tensors, metadata=None):
    header, at = {}, 0
    if metadata:
        header["__metadata__"] = metadata
    for name, tensor in tensors.items():
        header[name] = {"dtype": SAFETENSORS[tensor.kind], "shape": list(tensor.shape),
                        "data_offsets": [at, at + len(tensor.data)]}
        at += len(tensor.data)
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    path.write_bytes(struct.pack("<Q", len(text)) + text + b"".join(tensor.data for tensor in tensors.values()))
    return path


def read_safetensors(path):
    data = path.read_bytes()
    length = struct.unpack("<Q", data[:8])[0]
    header = json.loads(data[8:8 + length])
    metadata = header.pop("__metadata__", {})
    kinds = {dtype: kind for kind, dtype in SAFETENSORS.items()}
    tensors = {}
    for name, entry in header.items():
        begin, end = entry["data_offsets"]
        count = int(numpy.prod(entry["shape"], dtype=numpy.int64))
        assert end - begin == count * SIZES[entry["dtype"]] and 8 + length + end <= len(data), name
        tensors[name] = Tensor(kinds[entry["dtype"]], tuple(entry["shape"]), data[8 + length + begin:8 + length + end])
    return tensors, metadata


def write_gguf(path, tensors, metadata=None):
    def text(value):
        data = value.encode(errors="surrogateescape")
        return struct.pack("<Q", len(data)) + data
    metadata = metadata or {}
    head = b"GGUF" + struct.pack("<IQQ", 3, len(tensors), len(metadata))
    for key, value in metadata.items():
        head += text(key) + struct.pack("<I", 8) + text(value)
    at, body = 0, b""
    for name, tensor in tensors.items():
        head += text(name) + struct.pack("<I", len(tensor.shape))
        head += b"".join(struct.pack("<Q", extent) for extent in reversed(tensor.shape))
        head += struct.pack("<IQ", GGUF[tensor.kind][0], at)
        body += tensor.data + b"\0" * (-len(tensor.data) % 32)
        at = len(body)
    path.write_bytes(head + b"\0" * (-len(head) % 32) + body)
    return path


def read_gguf(path):
    import gguf
    kinds = {number: kind for kind, (number, _, _) in GGUF.items()}
    reader = gguf.GGUFReader(path)
    tensors = {}
    for tensor in reader.tensors:
        shape = tuple(int(extent) for extent in reversed(tensor.shape))
        tensors[tensor.name] = Tensor(kinds[int(tensor.tensor_type)], shape, tensor.data.tobytes())
    metadata = {key: bytes(field.parts[-1]).decode() for key, field in reader.fields.items()
                if field.types == [gguf.GGUFValueType.STRING]}
    return tensors, metadata


def folder():
    """One that vanishes; in memory where that can be, since a merge waits for the disk."""
    memory = "/dev/shm"
    return tempfile.TemporaryDirectory(dir=memory if os.access(memory, os.W_OK) and "TMPDIR" not in os.environ else None)


@dataclasses.dataclass
class Run:
    code: int
    lines: list

    def of(self, kind):
        return [line[1:] for line in self.lines if line[0] == kind]

    def rows(self, kind="row"):
        """name -> column -> text"""
        cells = [dict(cell.split("=", 1) for cell in line) for line in self.of(kind)]
        return {row["name"]: row for row in cells}

    def text(self):
        return "\n".join("\t".join(line) for line in self.lines)


def merge(runner, method, out, models, base=None, sets=(), limit=60, **keys):
    arguments = [runner, method, out]
    for model in models:
        arguments += ["model", model]
    if base is not None:
        arguments += ["base", base]
    for rule in sets:
        arguments += ["set", rule]
    for key, value in keys.items():
        for one in value if isinstance(value, (list, tuple)) else [value]:
            arguments += [key, one]
    result = subprocess.run([str(argument) for argument in arguments], capture_output=True, text=True,
                            errors="surrogateescape", timeout=limit, check=False)
    assert result.returncode in (0, 1, 3), (result.returncode, result.stderr, result.stdout[-2000:])
    return Run(result.returncode, [line.split("\t") for line in result.stdout.splitlines()])


def merged(runner, method, out, models, **rest):
    """The tensors and metadata of a merge that works."""
    run = merge(runner, method, out, models, **rest)
    assert run.code == 0, run.text()
    return (read_gguf if out.suffix == ".gguf" else read_safetensors)(out)
