#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes the seed corpora of the fuzz targets from scratch: valid files, and one file for each way to be hostile.

Run it after changing it; the result is committed.  Corpora that it does not write stay as they are.  The classes of GGUF follow the public record of
vulnerabilities in parsers of that format: counts and products that wrap, alignments of zero, names that occur twice,
types that do not exist, arrays in arrays, files that end anywhere.
"""
import json
import pathlib
import shutil
import struct

ROOT = pathlib.Path(__file__).resolve().parent / "corpus"
MAX = 2**64 - 1


def write(parser, name, data, begun=set()):
    assert len(data) < 4096, name
    folder = ROOT / parser
    if parser not in begun:
        begun.add(parser)
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
    (folder / name).write_bytes(data)


# ---------------------------------------------------------------------------------------------------------- GGUF ----

def u32(number):
    return struct.pack("<I", number)


def u64(number):
    return struct.pack("<Q", number)


def text(value):
    value = value if isinstance(value, bytes) else value.encode()
    return u64(len(value)) + value


def meta(key, kind, value):
    return text(key) + u32(kind) + value


def array(kind, count, elements):
    return u32(kind) + u64(count) + elements


def tensor(name, dims, kind, offset):
    return text(name) + u32(len(dims)) + b"".join(map(u64, dims)) + u32(kind) + u64(offset)


def gguf(metas=(), tensors=(), data=0, alignment=32, version=3, counts=None):
    counts = counts or (len(tensors), len(metas))
    head = b"GGUF" + u32(version) + u64(counts[0]) + u64(counts[1]) + b"".join(metas) + b"".join(tensors)
    if data:
        head += bytes(-len(head) % alignment) + bytes(i & 255 for i in range(data))
    return head


def align(number):
    return meta("general.alignment", 4, u32(number))


def make_gguf():
    every = [meta("u8", 0, b"\1"), meta("i8", 1, b"\xff"), meta("u16", 2, b"\1\2"), meta("i16", 3, b"\1\2"),
             meta("u32", 4, u32(7)), meta("i32", 5, u32(7)), meta("f32", 6, struct.pack("<f", 0.1)), meta("bool", 7, b"\1"),
             meta("string", 8, text("caf\u00e9\n")), meta("u64", 10, u64(MAX)), meta("i64", 11, u64(MAX)),
             meta("f64", 12, struct.pack("<d", 0.1)), meta("words", 9, array(8, 3, text("a") + text("") + text("ccc"))),
             meta("numbers", 9, array(4, 3, u32(1) + u32(2) + u32(3))),
             meta("nested", 9, array(9, 2, array(0, 2, b"\1\2") + array(8, 1, text("deep"))))]
    two = [tensor("a", [4, 2], 0, 0), tensor("b", [32], 8, 32)]
    whole = gguf(every, two, 66)
    files = {
        "valid": whole,
        "valid-v2": gguf(every[:3], two, 66, version=2),
        "valid-empty": gguf(),
        "valid-zero-dim": gguf((), [tensor("a", [0, 7], 0, 0), tensor("b", [5, 0], 2, 0)]),
        "valid-scalar": gguf((), [tensor("a", [], 0, 0)], 4),
        "valid-unordered": gguf((), [tensor("a", [8], 0, 64), tensor("b", [8], 0, 0)], 96),
        "valid-five-axes": gguf((), [tensor("a", [1, 2, 1, 2, 1], 0, 0)], 16),
        "valid-unknown-type": gguf((), [tensor("a", [8], 77, 0), tensor("b", [8], 4, 32)], 64),
        "valid-all-types": gguf((), [tensor("t%d" % i, [256], i, 0 if i == 0 else i * 1024) for i in (0, 1, 24)], 3000),
        "valid-trailing": gguf((), [tensor("a", [8], 0, 0)], 500),
        "valid-names": gguf((), [tensor(b"a\0b", [8], 0, 0), tensor(b"\xff\xfe\x1b[31m", [8], 0, 32), tensor(b"", [8], 0, 64)], 96),
        "same-key-same-value": gguf([meta("k", 7, b"\1")] * 2),
        "same-key-other-value": gguf([meta("k", 7, b"\1"), meta("k", 7, b"\0")]),
        "same-key-other-type": gguf([meta("k", 7, b"\1"), meta("k", 0, b"\1")]),
        "same-tensor": gguf((), [tensor("a", [8], 0, 0), tensor("a", [8], 0, 32)], 64),
        "same-offset": gguf((), [tensor("a", [8], 0, 0), tensor("b", [8], 0, 0)], 64),
        "overlap": gguf((), [tensor("a", [16], 0, 0), tensor("b", [8], 0, 32)], 96),
        "overlap-unknown": gguf((), [tensor("a", [16], 0, 0), tensor("b", [8], 77, 32)], 96),
        "offset-unaligned": gguf((), [tensor("a", [8], 0, 31)], 96),
        "offset-beyond": gguf((), [tensor("a", [8], 0, 4096)], 32),
        "offset-wraps": gguf((), [tensor("a", [8], 0, MAX - 31)], 32),
        "offset-wraps-unknown": gguf((), [tensor("a", [8], 77, MAX - 31)], 32),
        "counts-tensors": gguf(counts=(MAX, 0)),
        "counts-tensors-2-59": gguf(counts=(2**59, 0)),
        "counts-metas": gguf(counts=(0, MAX)),
        "counts-metas-wrap": gguf(counts=(0, MAX // 48 + 1)),
        "string-length": gguf([text("k") + u32(8) + u64(MAX)]),
        "string-length-negative": gguf([text("k") + u32(8) + u64(2**63)]),
        "key-length": gguf([u64(MAX) + b"kkkkkkkkkkkkkkkkkkkkkk"]),
        "key-length-65536": gguf([u64(65536) + b"kkkkkkkkkkkkkkkkkkkkkk"]),
        "key-empty": gguf([meta("", 7, b"\1")]),
        "array-length": gguf([meta("k", 9, array(4, MAX, b""))]),
        "array-length-wraps": gguf([meta("k", 9, array(10, 2**61, bytes(64)))]),
        "array-of-strings-length": gguf([meta("k", 9, array(8, 2**61 + 1, bytes(64)))]),
        "array-of-empty-arrays": gguf([meta("k", 9, array(9, 60, array(0, 0, b"") * 60))]),
        "array-depth": gguf([meta("k", 9, array(9, 1, b"") * 11 + array(0, 1, b"\7"))]),
        "array-type": gguf([meta("k", 9, array(13, 1, bytes(16)))]),
        "value-type": gguf([meta("k", 13, bytes(16))]),
        "value-type-negative": gguf([meta("k", 2**32 - 1, bytes(16))]),
        "product-wraps-to-zero": gguf((), [tensor("a", [2**32, 2**32], 0, 0)], 32),
        "product-wraps-to-zero-3": gguf((), [tensor("a", [2**33, 2**31, 3], 0, 0)], 32),
        "product-wraps-with-zero": gguf((), [tensor("a", [2**32, 2**32, 0], 0, 0)], 32),
        "bytes-wrap": gguf((), [tensor("a", [2**61], 27, 0)], 32),
        "bytes-wrap-f32": gguf((), [tensor("a", [2**62], 0, 0)], 32),
        "padding-wraps": gguf((), [tensor("a", [2**61 - 1], 27, 0)], 32),
        "sum-wraps": gguf((), [tensor("a", [2**61], 24, 0), tensor("b", [2**63], 24, 2**61), tensor("c", [2**63], 24, 2**62)], 32),
        "dim-negative": gguf((), [tensor("a", [MAX], 0, 0)], 32),
        "dims-lie": gguf((), [tensor("a", [2**40], 0, 0)], 32),
        "rank-huge": gguf((), [text("a") + u32(2**32 - 1) + bytes(64)]),
        "rank-65": gguf((), [tensor("a", [1] * 65, 0, 0)], 32),
        "block-remainder": gguf((), [tensor("a", [33], 2, 0)], 32),
        "block-scalar": gguf((), [tensor("a", [], 8, 0)], 64),
        "type-negative": gguf((), [tensor("a", [8], 2**32 - 1, 0)], 32),
        "alignment-string": gguf([meta("general.alignment", 8, text("32"))]),
        "alignment-u64": gguf([meta("general.alignment", 10, u64(32))]),
        "version-0": gguf(version=0),
        "version-1-empty": gguf(version=1),
        "version-4": gguf(version=4),
        "big-endian": b"GGUF" + struct.pack(">IQQ", 3, 0, 0),
        "magic": b"GGML" + whole[4:],
    }
    for number in (0, 1, 3, 8, 24, 2**31, 2**32 - 1):
        files["alignment-%d" % number] = gguf([align(number)], [tensor("a", [8], 0, 0)], 32, alignment=max(1, min(number, 64)))
    for cut in (0, 3, 4, 7, 8, 23, 24, 30, 40, 100, 200, 300, 400, len(whole) - 67, len(whole) - 1):
        files["cut-%03d" % cut] = whole[:cut]
    files.update(other_gguf())
    for name, data in files.items():
        write("gguf", name, data)


class Gguf:
    """The same fields with either order of bytes, and with the counts of version 1."""

    def __init__(self, version, order):
        self.version, self.order = version, order

    def u32(self, number):
        return struct.pack(self.order + "I", number)

    def u64(self, number):
        return struct.pack(self.order + "Q", number)

    def count(self, number):
        return self.u32(number) if self.version == 1 else self.u64(number)

    def text(self, value):
        return self.count(len(value)) + value.encode()

    def meta(self, key, kind, value):
        return self.text(key) + self.u32(kind) + value

    def array(self, kind, count, elements):
        return self.u32(kind) + self.count(count) + elements

    def tensor(self, name, dims, kind, offset):
        return self.text(name) + self.u32(len(dims)) + b"".join(map(self.count, dims)) + self.u32(kind) + self.u64(offset)

    def file(self, metas=(), tensors=(), data=0, magic=b"GGUF"):
        head = magic + self.u32(self.version) + self.count(len(tensors)) + self.count(len(metas)) + b"".join(metas) + b"".join(tensors)
        return head + bytes(-len(head) % 32) + bytes(i & 255 for i in range(data))


def other_gguf():
    files = {}
    for name, version, order in (("big", 3, ">"), ("big-v2", 2, ">"), ("big-v1", 1, ">"), ("v1", 1, "<")):
        g = Gguf(version, order)
        metas = [g.meta("u16", 2, struct.pack(order + "H", 7)), g.meta("f64", 12, struct.pack(order + "d", 0.1)),
                 g.meta("text", 8, g.text("abc")), g.meta("words", 9, g.array(8, 3, g.text("a") + g.text("") + g.text("ccc"))),
                 g.meta("numbers", 9, g.array(3, 3, struct.pack(order + "3h", 1, -2, 3))),
                 g.meta("nested", 9, g.array(9, 2, g.array(0, 2, b"\1\2") + g.array(8, 1, g.text("deep"))))]
        tensors = [g.tensor("f32", [4, 2], 0, 0), g.tensor("q8_0", [32], 8, 32), g.tensor("bf16", [3], 30, 96),
                   g.tensor("iq2_xxs", [256], 16, 128), g.tensor("q6_k", [256], 14, 224), g.tensor("next", [8], 99, 448)]
        files["valid-" + name] = g.file(metas, tensors, 480)
        files[name + "-array-length"] = g.file([g.meta("k", 9, g.array(8, 2**31, bytes(64)))])
        files[name + "-string-length"] = g.file([g.text("k") + g.u32(8) + g.count(2**32 - 1)])
        files[name + "-cut"] = g.file(metas, tensors, 480)[:300]
        files[name + "-cut-data"] = g.file(metas, tensors, 480)[:-300]
        files[name + "-split"] = g.file([g.meta("split.no", 2, struct.pack(order + "H", 1)), g.meta("split.count", 2, struct.pack(order + "H", 3)),
                                         g.meta("split.tensors.count", 5, struct.pack(order + "i", 9))])
        files[name + "-split-text"] = g.file([g.meta("split.count", 8, g.text("3"))])
    files["big-magic"] = Gguf(3, ">").file(magic=b"FUGG")
    return files


# --------------------------------------------------------------------------------------------------- safetensors ----

def safetensors(header, data=0, length=None):
    header = header if isinstance(header, bytes) else header.encode()
    return u64(len(header) if length is None else length) + header + bytes(i & 255 for i in range(data))


def entry(name, dtype, shape, begin, end):
    return '"%s":{"dtype":"%s","shape":%s,"data_offsets":[%s,%s]}' % (name, dtype, shape, begin, end)


def make_safetensors():
    a, b = entry("a", "U8", "[2,3]", 0, 6), entry("b", "F32", "[2]", 6, 14)
    whole = safetensors('{"__metadata__":{"format":"pt","x":"\\u00e9"},%s,%s}  ' % (a, b), 14)
    files = {
        "valid": whole,
        "valid-empty": safetensors("{}"),
        "valid-unsorted": safetensors("{%s,%s}" % (b, a), 14),
        "valid-scalar": safetensors("{%s}" % entry("a", "I64", "[]", 0, 8), 8),
        "valid-zero": safetensors("{%s}" % entry("a", "F16", "[2,0]", 0, 0)),
        "valid-unknown-dtype": safetensors("{%s}" % entry("a", "F9", "[3]", 0, 5), 5),
        "valid-subbyte": safetensors("{%s,%s}" % (entry("a", "F4", "[4]", 0, 2), entry("b", "F6_E2M3", "[4]", 2, 5)), 5),
        "valid-names": safetensors("{%s,%s}" % (entry("\\u0000\\u001b[31m", "U8", "[1]", 0, 1), entry("", "U8", "[1]", 1, 2)), 2),
        "valid-extra-field": safetensors('{"a":{"x":[{"y":null}],"dtype":"U8","shape":[1],"data_offsets":[0,1]}}', 1),
        "length-0": safetensors("", length=0),
        "length-beyond": safetensors("{}", length=3),
        "length-max": safetensors("{}", length=MAX),
        "length-wraps": safetensors("{}", length=MAX - 7),
        "overlap": safetensors("{%s,%s}" % (entry("a", "U8", "[4]", 0, 4), entry("b", "U8", "[4]", 3, 7)), 7),
        "hole": safetensors("{%s,%s}" % (entry("a", "U8", "[4]", 0, 4), entry("b", "U8", "[4]", 5, 9)), 9),
        "trailing": safetensors("{%s}" % a, 7),
        "backwards": safetensors("{%s}" % entry("a", "U8", "[4]", 4, 0), 4),
        "offset-wraps": safetensors("{%s}" % entry("a", "U8", "[4]", MAX - 3, MAX), 4),
        "offset-too-large": safetensors("{%s}" % entry("a", "U8", "[4]", 0, 2**64), 4),
        "product-wraps": safetensors("{%s}" % entry("a", "U8", "[4294967296,4294967296]", 0, 0)),
        "bytes-wrap": safetensors("{%s}" % entry("a", "F64", "[2305843009213693952]", 0, 0)),
        "disagrees": safetensors("{%s}" % entry("a", "F32", "[4]", 0, 4), 4),
        "subbyte-odd": safetensors("{%s}" % entry("a", "F4", "[3]", 0, 2), 2),
        "same-name": safetensors("{%s,%s}" % (entry("a", "U8", "[1]", 0, 1), entry("\\u0061", "U8", "[1]", 1, 2)), 2),
        "same-field": safetensors('{"a":{"dtype":"U8","dtype":"U8","shape":[1],"data_offsets":[0,1]}}', 1),
        "missing-field": safetensors('{"a":{"dtype":"U8","shape":[1]}}', 1),
        "negative": safetensors("{%s}" % entry("a", "U8", "[-1]", 0, 1), 1),
        "fraction": safetensors("{%s}" % entry("a", "U8", "[1.0]", 0, 1), 1),
        "rank-65": safetensors("{%s}" % entry("a", "U8", "[" + ",".join("1" * 65) + "]", 0, 1), 1),
        "metadata-number": safetensors('{"__metadata__":{"a":1}}'),
        "metadata-twice": safetensors('{"__metadata__":{},"__metadata__":{}}'),
        "deep": safetensors('{"a":{"x":' + "[" * 80),
        "not-utf8": safetensors(b'{"a\xff":1}'),
        "not-json": safetensors("{hello}"),
        "array": safetensors("[]"),
        "lfs": b"version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 1\n",
        "html": b"<!DOCTYPE html><html></html>",
        "zip": b"PK\3\4" + bytes(30),
        "pickle": b"\x80\2}q\0.",
        "text": b"Access denied. Please log in.",
    }
    for cut in (0, 1, 7, 8, 9, 20, 60, 100, len(whole) - 15, len(whole) - 14, len(whole) - 1):
        files["cut-%03d" % cut] = whole[:cut]
    for name, data in files.items():
        write("safetensors", name, data)


# ---------------------------------------------------------------------------------------------------------- ONNX ----

def varint(number):
    out = b""
    while number > 127:
        out += bytes([number & 127 | 128])
        number >>= 7
    return out + bytes([number])


def fld(number, value):
    """A protobuf field: of an int a varint, else its bytes with their length."""
    if isinstance(value, int):
        return varint(number << 3) + varint(value & MAX)
    value = value.encode() if isinstance(value, str) else value
    return varint(number << 3 | 2) + varint(len(value)) + value


def proto(name, dims, kind, *fields):
    return b"".join(fld(1, dim) for dim in dims) + fld(2, kind) + (fld(8, name) if name else b"") + b"".join(fields)


def raw(data):
    return fld(9, data)


def onnx_node(op, output, *attributes, name=""):
    return fld(1, "x") + fld(2, output) + (fld(3, name) if name else b"") + fld(4, op) + b"".join(fld(5, a) for a in attributes)


def graph_proto(*tensors, nodes=(), extra=b""):
    return b"".join(fld(1, n) for n in nodes) + fld(2, "g") + b"".join(fld(5, t) for t in tensors) + extra


def onnx(content, extra=b""):
    return fld(1, 8) + fld(2, "maker") + fld(7, content) + fld(8, fld(1, "") + fld(2, 17)) + extra


def external(**entries):
    return b"".join(fld(13, fld(1, key) + fld(2, value)) for key, value in entries.items()) + fld(14, 1)


def nested(depth):
    content = graph_proto(proto("deep", [1], 2, raw(b"x")))
    for i in range(depth):
        content = graph_proto(nodes=[onnx_node("If", "o%d" % i, fld(1, "then_branch") + fld(6, content))])
    return content


def make_onnx():
    packed = b"".join(map(varint, (1, 300, MAX, 0)))
    tensors = [proto("raw", [2, 2], 1, raw(bytes(16))), proto("floats", [2], 1, fld(4, struct.pack("<2f", 1, 2))),
               proto("ints", [4], 6, fld(5, packed)), proto("halves", [2], 10, fld(5, varint(0x3c00) + varint(0xbc00))),
               proto("longs", [4], 7, fld(7, packed)), proto("words", [4], 12, fld(11, packed)), proto("bools", [3], 9, fld(5, b"\0\1\1")),
               proto("doubles", [1], 11, fld(10, struct.pack("<d", 0.5))), proto("nibbles", [4], 22, fld(5, b"\1\2")),
               proto("odd", [3], 21, raw(b"\1\2")), proto("text", [2], 8, fld(6, "a") + fld(6, "bc")), proto("none", [0, 3], 1),
               proto("scalar", [], 11, raw(bytes(8))), proto("next", [5], 77, raw(bytes(9))), proto("complex", [1], 15, raw(bytes(16)))]
    pieces = fld(4, struct.pack("<f", 1)) + varint(4 << 3 | 5) + struct.pack("<f", 2) + fld(4, struct.pack("<2f", 3, 4))
    runs = fld(7, varint(5) + varint(6)) + fld(7, 700) + fld(7, varint(8))
    sparse = fld(1, proto("s", [2], 1, raw(bytes(8)))) + fld(2, proto("", [2], 7, raw(bytes(16)))) + fld(3, 100)
    nodes = [onnx_node("Constant", "c", fld(1, "value") + fld(5, proto("", [1], 1, raw(bytes(4))))),
             onnx_node("Constant", "n", fld(1, "value_ints") + fld(8, 3) + fld(8, 500) + fld(20, 7)),
             onnx_node("Constant", "f", fld(1, "value_float") + varint(2 << 3 | 5) + struct.pack("<f", 1)),
             onnx_node("ConstantOfShape", "z", fld(1, "value") + fld(5, proto("", [1], 1, raw(bytes(4))))),
             onnx_node("Trees", "t", fld(1, "weights") + fld(5, proto("", [2], 1, raw(bytes(8)))), fld(1, "many") + fld(10, proto("", [2], 2, raw(b"ab"))) +
                  fld(10, proto("", [2], 2, raw(b"cd")))),
             onnx_node("If", "o", fld(1, "then_branch") + fld(6, graph_proto(proto("w", [1], 2, raw(b"a")))),
                  fld(1, "else_branch") + fld(6, graph_proto(proto("w", [1], 2, raw(b"b"))))),
             onnx_node("Constant", "sc", fld(1, "sparse_value") + fld(22, sparse))]
    whole = onnx(graph_proto(*tensors, nodes=nodes, extra=fld(15, sparse)), fld(14, fld(1, "k") + fld(2, "v")) +
                 fld(25, fld(1, "fn") + fld(7, nodes[0])))

    def one(*fields, dims=(4,), kind=1):
        return onnx(graph_proto(proto("a", dims, kind, *fields)))

    files = {
        "valid": whole,
        "valid-small": one(raw(bytes(16))),
        "valid-empty": onnx(b""),
        "valid-pieces": one(pieces),
        "valid-runs": one(runs, kind=7),
        "valid-packed-dims": onnx(graph_proto(fld(1, varint(2) + varint(2)) + fld(2, 1) + fld(8, "a") + raw(bytes(16)))),
        "valid-name-last": onnx(graph_proto(raw(bytes(4)) + fld(2, 1) + fld(8, "a"))),
        "valid-two-graphs": onnx(graph_proto(proto("a", [1], 2, raw(b"a"))), fld(7, graph_proto(proto("b", [1], 2, raw(b"b"))))),
        "valid-nested": onnx(nested(31)),
        "deep": onnx(nested(32)),
        "deeper": onnx(nested(60)),
        "external": one(external(location="x.bin", offset="4096", length="16")),
        "external-outside": one(external(location="../x.bin")),
        "external-nowhere": one(fld(14, 1)),
        "external-number": one(external(location="x", offset="-1")),
        "external-wraps": one(external(location="x", offset=str(MAX))),
        "external-too-large": one(external(location="x", offset=str(MAX) + "0")),
        "external-zero": one(external(location="x\0y")),
        "both": one(raw(bytes(16)), fld(4, bytes(16))),
        "two-fields": one(fld(4, bytes(8)), fld(5, b"\1\1")),
        "wrong-field": one(fld(7, b"\1\1\1\1")),
        "no-data": one(),
        "short": one(raw(bytes(15))),
        "long": one(raw(bytes(17))),
        "few-numbers": one(fld(7, b"\1\1\1"), kind=7),
        "many-numbers": one(fld(7, b"\1\1\1\1\1"), kind=7),
        "float-remainder": one(fld(4, bytes(15))),
        "number-cut": one(fld(7, b"\1\1\1\x81"), kind=7),
        "number-long": one(fld(7, b"\x80" * 10 + b"\1" + b"\1\1\1"), kind=7),
        "number-ten-bytes": one(fld(7, (b"\x80" * 9 + b"\1") + b"\1\1\1"), kind=7),
        "dim-negative": one(raw(bytes(16)), dims=(-1,)),
        "dims-wrap": one(raw(b""), dims=(2**32, 2**32)),
        "bytes-wrap": one(raw(b""), dims=(2**62,)),
        "bits-wrap": one(raw(b""), dims=(2**59,), kind=11),
        "rank-65": one(raw(b"a"), dims=(1,) * 65, kind=2),
        "segment": one(fld(3, fld(1, 0)), raw(bytes(16))),
        "same-name": onnx(graph_proto(proto("a", [1], 2, raw(b"a")), proto("a", [1], 2, raw(b"b")))),
        "type-max": one(raw(bytes(16)), kind=MAX),
        "field-0": fld(1, 8) + fld(2, "m") + b"\2\0",
        "field-large": fld(1, 8) + fld(2, "m") + varint(2**40) + b"\0",
        "group": fld(1, 8) + fld(2, "m") + b"\x13\x14",
        "tag-long": fld(1, 8) + fld(2, "m") + b"\xff" * 11,
        "length-beyond": fld(1, 8) + fld(2, "m") + b"\x3a\x7f" + bytes(5),
        "length-max": fld(1, 8) + fld(2, "m") + b"\x3a" + varint(MAX) + bytes(5),
        "inner-length": onnx(b"\x2a\x7f" + bytes(5)),
        "inner-length-max": onnx(b"\x2a" + varint(MAX) + bytes(5)),
        "opset-twice": onnx(b"", fld(8, fld(2, 18))),
        "sparse-empty": onnx(fld(15, b"")),
        "constant-list-empty": onnx(graph_proto(nodes=[onnx_node("Constant", "c", fld(1, "value_ints") + fld(8, b""))])),
        "constant-nothing": onnx(graph_proto(nodes=[onnx_node("Constant", "c", fld(1, "value"))])),
    }
    for cut in range(0, len(whole), 23):
        files["cut-%04d" % cut] = whole[:cut]
    for name, data in files.items():
        write("onnx", name, data)


# ----------------------------------------------------------------------------------------------------------- npy ----

def npy(header, data=0, version=(1, 0), length=None):
    header = header.encode()
    size = struct.pack("<H" if version[0] == 1 else "<I", len(header) if length is None else length)
    return b"\x93NUMPY" + bytes(version) + size + header + bytes(i & 255 for i in range(data))


def header(descr="'<f4'", order="False", shape="(2, 3)"):
    return "{'descr': %s, 'fortran_order': %s, 'shape': %s, }" % (descr, order, shape)


def make_npy():
    whole = npy(header() + "   \n", 24)
    files = {
        "valid": whole,
        "valid-v2": npy(header(), 24, (2, 0)),
        "valid-v3": npy(header(), 24, (3, 0)),
        "valid-scalar": npy(header("'|b1'", shape="()"), 1),
        "valid-one": npy(header("'<i8'", shape="(1,)"), 8),
        "valid-fortran": npy(header("'<i2'", "True", "(2, 3, 5)"), 60),
        "valid-big": npy(header("'>f8'"), 48),
        "valid-big-fortran": npy(header("'>u2'", "True", "(3, 7)"), 42),
        "valid-big-complex": npy(header("'>c8'"), 48),
        "valid-complex": npy(header("'<c16'"), 96),
        "valid-zero": npy(header(shape="(0, 3)")),
        "valid-fortran-zero": npy(header("'<f4'", "True", "(0, 3)")),
        "valid-text": npy(header("'<U3'", "True", "(2, 2)"), 48),
        "valid-time": npy(header("'<M8[ns]'"), 48),
        "valid-big-text": npy(header("'>U3'"), 72),
        "valid-large-element": npy(header("'|S600'", "True", "(1, 2)"), 1200),
        "valid-no-element": npy(header("'|S0'", "True", "(2, 2)")),
        "valid-python-2": npy('{"shape": (2L, 3L), "fortran_order": False, "descr": "|u1"}', 6),
        "valid-trailing": npy(header(), 30),
        "object": npy(header("'|O'"), 24),
        "structured": npy(header("[('a', '<f4')]"), 24),
        "type-unknown": npy(header("'<q4'"), 24),
        "type-empty": npy(header("''"), 24),
        "type-order-only": npy(header("'<'"), 24),
        "type-long": npy(header("'<f" + "4" * 40 + "'"), 24),
        "type-huge": npy(header("'<f99999999999'"), 24),
        "type-escape": npy(header("'<f\\x34'"), 24),
        "order-number": npy(header(order="1"), 24),
        "shape-list": npy(header(shape="[2, 3]"), 24),
        "shape-negative": npy(header(shape="(-1,)"), 24),
        "shape-wraps": npy(header(shape="(4294967296, 4294967296)"), 24),
        "shape-too-large": npy(header(shape="(18446744073709551616,)"), 24),
        "bytes-wrap": npy(header(shape="(4611686018427387904,)"), 24),
        "end-wraps": npy(header("'|u1'", shape="(18446744073709551615,)"), 24),
        "rank-65": npy(header("'|u1'", shape="(" + "1," * 65 + ")"), 1),
        "no-shape": npy("{'descr': '<f4', 'fortran_order': False}", 24),
        "twice": npy("{'descr': '<f4', 'descr': '<f4', 'fortran_order': False, 'shape': ()}", 4),
        "extra": npy("{'descr': '<f4', 'fortran_order': False, 'shape': (), 'x': 1}", 4),
        "rest": npy(header() + " x", 24),
        "no-dictionary": npy("hello"),
        "length-beyond": npy(header(), 0, length=5000),
        "length-max": npy(header(), 0, (2, 0), 2**32 - 1),
        "length-0": npy("", 24),
        "version-0": npy(header(), 24, (0, 0)),
        "version-4": npy(header(), 24, (4, 0)),
    }
    for cut in range(0, len(whole), 7):
        files["cut-%03d" % cut] = whole[:cut]
    for name, data in files.items():
        write("npy", name, data)


# ---------------------------------------------------------------------------------------------------------- JSON ----

def make_json():
    texts = ["{}", "[]", "null", " [1, -2.5e+3, true, false, null, \"x\"] ", '{"a":{"b":[[],{}]},"c":"\\u00e9\\ud83d\\ude00\\n"}',
             "18446744073709551615", "18446744073709551616", "01", "1.", "-", "[1,]", "{\"a\":1,}", "[", "{\"a\"", "\"\\ud83d\"",
             "\"\\u12\"", "\"abc", "[" * 64 + "]" * 64, "[" * 65, "{\"a\":" * 65, "{} x", "\"\\q\"", "nul", "[1 2]", "", "\"\\u0000\""]
    for i, value in enumerate(texts):
        write("json_pull", "text-%02d" % i, value.encode())
    for i, value in enumerate([b'"\xff"', b'"\xc0\x80"', b'"\xed\xa0\x80"', b'"\xe2\x82\xac"', b'"\x01"', b"\xef\xbb\xbf{}", b'"a\0b"']):
        write("json_pull", "bytes-%02d" % i, value)


def make_index():
    texts = {
        "valid": '{"metadata":{"total_size":14,"x":{"y":[1]}},"weight_map":{"a":"m-1.safetensors","b":"m-2.safetensors","c":"m-1.safetensors"}}',
        "valid-empty": '{"weight_map":{}}',
        "valid-subfolder": '{"weight_map":{"a":"x/m.safetensors"}}',
        "no-map": '{"metadata":{}}',
        "up": '{"weight_map":{"a":"../m.safetensors"}}',
        "up-later": '{"weight_map":{"a":"x/../../m.safetensors"}}',
        "up-escaped": '{"weight_map":{"a":"\\u002e\\u002e/m.safetensors"}}',
        "up-end": '{"weight_map":{"a":"x/.."}}',
        "absolute": '{"weight_map":{"a":"/etc/passwd"}}',
        "nul": '{"weight_map":{"a":"m.safetensors\\u0000.txt"}}',
        "empty-name": '{"weight_map":{"a":""}}',
        "same-tensor": '{"weight_map":{"a":"m","a":"m"}}',
        "same-map": '{"weight_map":{},"weight_map":{}}',
        "number": '{"weight_map":{"a":1}}',
        "list": '{"weight_map":[]}',
        "total-fraction": '{"metadata":{"total_size":1.5},"weight_map":{}}',
        "total-huge": '{"metadata":{"total_size":99999999999999999999},"weight_map":{}}',
        "metadata-null": '{"metadata":null,"weight_map":{}}',
        "cut": '{"weight_map":{"a":"m',
    }
    for name, value in texts.items():
        write("shard_index", name, value.encode())


# ------------------------------------------------------------------------------------------------------- manifest ----

def manifest(**changes):
    value = {"schema": 1, "name": "adder", "version": "1.0", "file": "adder.so", "abi": "0.1", "architecture": "any",
             "processor_features": ["one", "two"], "sha256": "ab" * 32, "watches": ["/etc/driver"]}
    value.update(changes)
    return json.dumps({key: item for key, item in value.items() if item is not ...}).encode()


def make_manifests():
    def put(name, data):
        write("manifest", name, data)

    put("valid", manifest())
    put("valid-short", b'{"schema":1,"name":"a"}')
    put("valid-unknown", manifest(future={"deep": [[1, 2, {"x": None}]]}))
    put("valid-escapes", b'{"schema":1,"name":"\\u0061\\u00e4","version":"\\ud83d\\ude00"}')
    for key in ("schema", "name", "version", "file", "abi", "architecture", "processor_features", "sha256", "watches"):
        put(f"without-{key}", manifest(**{key: ...}))
        for kind, wrong in (("number", -1.5), ("null", None), ("list", [[]]), ("object", {"a": 1}), ("true", True)):
            put(f"{key}-{kind}", manifest(**{key: wrong}))
    put("schema-2", manifest(schema=2))
    put("schema-huge", b'{"schema":1' + b"0" * 400 + b',"name":"a"}')
    put("name-empty", manifest(name=""))
    put("name-long", manifest(name="n" * 65))
    put("name-64", manifest(name="n" * 64))
    put("name-nul", b'{"schema":1,"name":"a\\u0000b"}')
    put("name-twice", b'{"schema":1,"name":"a","name":7}')
    put("name-control", b'{"schema":1,"name":"\\u001b[2J"}')
    put("text-long", manifest(version="v" * 1100))
    put("abi-text", manifest(abi="0.1x"))
    put("abi-huge", manifest(abi="99999999999.1"))
    put("abi-one", manifest(abi="1"))
    put("sha256-short", manifest(sha256="ab"))
    put("sha256-letters", manifest(sha256="zz" * 32))
    put("features-many", manifest(processor_features=["f"] * 65))
    put("features-64", manifest(processor_features=["f"] * 64))
    put("watches-many", manifest(watches=["/w"] * 17))
    put("watches-twice", b'{"schema":1,"name":"a","watches":["/a","/b"],"watches":["/c"]}')
    put("deep", b'{"schema":1,"name":"a","x":' + b"[" * 500)
    put("array", b'[1]')
    put("trailing", manifest() + b"x")
    put("not-utf8", b'{"schema":1,"name":"\xff"}')
    for cut in (0, 1, 2, 9, 12, 20, 31, 60, 100, 150):
        put(f"cut-{cut:03}", manifest()[:cut])


# -------------------------------------------------------------------------------------------------- shared object ----

def dynamic_object(**odd):
    """The smallest shared object with one entry; every field can be made wrong by name."""
    names = b"\0tm_plugin_query\0libneeded.so.1\0__asan_init\0"
    entry, needed, import_ = 1, names.index(b"libneeded"), names.index(b"__asan")
    head, segments = 64, 4
    dynamic_at = head + segments * 56
    def symbol(name, info, section):
        return struct.pack("<IBBHQQ", name, info, 0, section, 0x1000, 8)
    dynamic_bytes = 16 * 8
    strings_at = dynamic_at + dynamic_bytes
    symbols_at = strings_at + len(names) + (-len(names) % 8)
    symbols = bytes(24) + symbol(import_ if odd.get("sanitizer") else 0, 0x10, 0) + symbol(odd.get("entry_name", entry), 0x12, 7)
    symbols += symbol(entry, 0x12, 7) * odd.get("more_entries", 0)
    count = len(symbols) // 24
    hash_at = symbols_at + len(symbols)
    if odd.get("gnu"):
        table = struct.pack("<4I", odd.get("buckets", 1), odd.get("first", 2), odd.get("filter", 1), 0) + u64(MAX)
        table += u32(odd.get("bucket", 2)) + b"".join(u32(0 if i + 1 < count - 2 else odd.get("last", 1)) for i in range(count - 2))
    else:
        table = struct.pack("<2I", 1, odd.get("count", count)) + u32(1) + bytes(4 * count)
    end = hash_at + len(table)
    entries = [(1, odd.get("needed", needed)), (5, odd.get("strings", strings_at)), (10, odd.get("strings_bytes", len(names))),
               (6, odd.get("symbols", symbols_at)), (11, odd.get("symbol_bytes", 24)),
               (0x6ffffef5 if odd.get("gnu") else 4, odd.get("hash", hash_at)), (0, 0), (0, 0)]
    if odd.get("endless"):
        entries = [(1, needed)] * 8
    dynamic = b"".join(struct.pack("<QQ", *one) for one in entries)
    def segment(kind, flags, offset, size):
        return struct.pack("<IIQQQQQQ", kind, flags, offset, offset, offset, size, size, 8)
    programs = segment(1, 5, odd.get("load", 0), odd.get("load_bytes", end)) + segment(2, 4, odd.get("dynamic", dynamic_at), dynamic_bytes)
    programs += segment(odd.get("stack_kind", 0x6474e551), odd.get("stack", 6), 0, 0) + segment(0, 0, 0, 0)
    ident = b"\x7fELF" + bytes([odd.get("class_", 2), odd.get("order", 1), 1]) + bytes(9)
    header = ident + struct.pack("<HHIQQQIHHHHHH", odd.get("type_", 3), odd.get("machine", 62), 1, 0, odd.get("phoff", 64),
                                 odd.get("shoff", 0), 0, 64, odd.get("phsize", 56), odd.get("phnum", segments), 64,
                                 odd.get("shnum", 0), 0)
    return header + programs + dynamic + names + bytes(-len(names) % 8) + symbols + table


def make_shared_objects():
    def put(name, **odd):
        write("shared_object", name, dynamic_object(**odd))

    put("valid")
    put("valid-gnu", gnu=1)
    put("two-entries", more_entries=1)
    put("two-entries-gnu", more_entries=1, gnu=1)
    put("no-entry", entry_name=0)
    put("sanitizer", sanitizer=1)
    put("stack-executable", stack=7)
    put("stack-unsaid", stack_kind=0)
    for name, changes in {"class": {"class_": 1}, "order": {"order": 2}, "machine": {"machine": 8}, "type": {"type_": 2}}.items():
        put(f"other-{name}", **changes)
    for field in ("strings", "symbols", "hash", "dynamic", "phoff", "load", "load_bytes", "strings_bytes", "needed", "symbol_bytes"):
        for kind, value in (("zero", 0), ("far", 1 << 40), ("max", MAX), ("wraps", MAX - 15)):
            put(f"{field}-{kind}", **{field: value})
            put(f"{field}-{kind}-gnu", gnu=1, **{field: value})
    for field in ("phnum", "phsize", "shnum"):
        put(f"{field}-zero", **{field: 0})
        put(f"{field}-max", **{field: 65535})
    put("shoff-far", shnum=3, shoff=1 << 50)
    put("count-max", count=2**32 - 1)
    put("count-beyond", count=1000)
    put("buckets-max", gnu=1, buckets=2**32 - 1)
    put("buckets-beyond", gnu=1, buckets=100000)
    put("first-max", gnu=1, first=2**32 - 1)
    put("first-beyond", gnu=1, first=9)
    put("filter-max", gnu=1, filter=2**32 - 1)
    put("bucket-max", gnu=1, bucket=2**32 - 1)
    put("bucket-empty", gnu=1, bucket=0)
    put("chain-endless", gnu=1, last=0)
    put("dynamic-endless", endless=1)
    whole = dynamic_object()
    for cut in (0, 3, 4, 16, 63, 64, 100, 120, 176, 288, 300, 415, 420, 500, 560, len(whole) - 1):
        write("shared_object", f"cut-{cut:03}", whole[:cut])


# ------------------------------------------------------------------------------------------------------- profile ----

def make_profiles():
    """The target adds checksums to each line of its own accord, so none stands here but in `sums`."""
    header, device, link = "profile\t1\t3", "af8bbff99f1b595f", "0123456789abcdef"
    entry = f"entry\t{device}\t3\t800f8f7c267cd214\t0\t55\t4000\t-fdc74451\t6aaaf00\t10\t2,2,2"

    def put(name, *lines, end="\n"):
        write("profile", name, ("\n".join(lines) + end).encode("latin-1"))

    put("whole", header, f"entry\t{device}\t1\t0\t0\t37\t1000\tfdc74451\t0\t0\t", entry, entry,
        f"entry\t{link}\t6\t0\t1\t5\t500\t-1\t1\t0\t", f"entry\t{link}\t8\t14\t0\t5\t500\t0\t0\t0\t")
    put("sums", "2c77a5ee652801bb\tprofile\t1\t0", f"0fb4517cb1f536a7\tentry\taf8bbff99f1b595f\t1\t0\t0\t55\t4000\t-fdc74451\t6aaaf00\t0\t")
    put("sums-wrong", "2c77a5ee652801ba\tprofile\t1\t0")
    put("empty", end="")
    put("no-header", entry)
    put("two-headers", header, entry, header, entry)
    put("later", "profile\t2\t0", entry)
    put("version-zero", "profile\t0\t0", entry)
    put("no-newline", header, entry, end="")
    put("cut", header, entry[:40])
    for index, worse in enumerate(("0", "a", "ffffffff", "ffffffffffffffff", "10000000000000000", "-1", "+1", " 1", "", "g", "1\t1", "\0")):
        fields = entry.split("\t")
        for field in range(1, len(fields)):
            put(f"field-{field:02}-{index:02}", header, "\t".join(fields[:field] + [worse] + fields[field + 1:]))
    put("formats-many", header, entry.rsplit("\t", 1)[0] + "\t" + ",".join(["2"] * 17))
    put("long", header, entry + "x" * 2000)
    put("device", header, f"device\t{device}\tname\tbuild\t1\t{'0' * 32}\t1\tdriver\t2\t0")
    put("device-work", header, f"device\t{device}\tname\tbuild\t1\t{'0' * 32}\t1\tdriver\t2\t0",
        f"entry\t{device}\t9\t2\t0\t55\t4000\t-fdc74451\t6aaaf00\t0\t", f"entry\t{device}\t9\t6\t0\t1\t0\t1\t1\t0\t")
    put("device-long", header, f"device\t{device}\t{'n' * 300}\tbuild\t1\t{'0' * 32}\t1\tdriver\t2\t0")
    put("link", header, f"link\t{link}\t{'0' * 32}\t{'f' * 32}")
    put("owners", header, *[f"entry\t{i:x}\t1\t0\t0\t1\t1\t0\t0\t0\t" for i in range(90)])
    put("bytes", header, "\xff\xfe\t\x1b[2J\t\x7f")


# --------------------------------------------------------------------------------------------------------- graphs ----

def layout(dims, strides=None, form="f32"):
    return {"format": form, "dims": dims} | ({} if strides is None else {"strides": strides})


def graph(*items, version=1):
    return json.dumps({"tensormorph_graph": version, "items": items}).encode()


def value(number, kind="input", name="x", dims=(4,), **more):
    return {"kind": kind, "value": number, "name": name} | layout(list(dims)) | more


def node(made, reads, op="neg", dims=(4,), **more):
    return {"kind": "node", "values": made, "op": op, "version": 1, "inputs": reads,
            "results": [layout(list(dims)) for _ in made]} | more


def make_graphs():
    x, w = value(0, dims=[4, 8]), value(1, "constant", "w", [2, 8], sha256="00" * 32)
    fc = node([2], [0, 1], "matmul", [4, 2], attributes="0000000001000000", name="fc")
    valid = graph(x, w, fc, value(3, "state", "s", [4, 2]), node([4], [3, 2], "add", [4, 2]),
                  {"kind": "view", "value": 5, "of": 4, "offset": 24} | layout([2, 4], [4, -8]),
                  {"kind": "carry", "value": 4, "state": 3}, {"kind": "output", "value": 5, "name": "y"})
    write("graph", "valid", valid)
    for cut in range(0, len(valid), 61):
        write("graph", f"cut-{cut:04}", valid[:cut])
    write("graph", "empty", graph())
    write("graph", "cycle", graph(value(0), node([1], [2]), node([2], [1])))
    write("graph", "cycle-self", graph(value(0), node([1], [1])))
    write("graph", "cycle-long", graph(value(0), *(node([i], [i + 1]) for i in range(1, 20)), node([20], [1])))
    write("graph", "late", graph(value(0), node([1], [2]), node([2], [0])))
    write("graph", "never", graph(value(0), node([1], [7])))
    write("graph", "nothing-made", graph({"kind": "output", "value": 0, "name": "y"}))
    write("graph", "twice", graph(value(0), value(1)))
    write("graph", "version", graph(version=2))
    write("graph", "version-max", graph(version=MAX))
    write("graph", "rank", graph(value(0, dims=[1] * 9)))
    write("graph", "huge", graph(value(0, dims=[MAX, MAX])))
    write("graph", "negative-huge", graph(value(0, strides=[-2**63])))
    write("graph", "stride-max", graph(value(0, strides=[2**63])))
    write("graph", "blocks", graph(value(0, dims=[33]) | {"format": "q8_0"}))
    write("graph", "view-outside", graph(value(0), {"kind": "view", "value": 1, "of": 0, "offset": MAX} | layout([4])))
    for index, offset in enumerate((16, 17, 2**63, MAX)):
        empty = {"kind": "view", "value": 1, "of": 0, "offset": offset} | layout([0])
        write("graph", f"view-empty-{index}", graph(value(0), empty, node([2], [1], dims=(0,))))
    write("graph", "fill", graph(value(0, dims=[]), node([1], [0], "fill", [2**20, 2**20])))
    write("graph", "name-escapes", graph(value(0, name="\u00e9\"\\")).replace(b"x", b"\\u0078"))
    write("graph", "name-nul", graph(value(0)).replace(b'"x"', b'"a\\u0000"'))
    for index, inputs in enumerate(([], [0] * 16, [0] * 17, [4294967295], [-1], [0.5], "0", None)):
        write("graph", f"inputs-{index}", graph(value(0), node([1], inputs)))
    for index, attributes in enumerate(("", "00", "0", "zz", "00" * 64, "00" * 65, 1)):
        write("graph", f"attributes-{index}", graph(value(0), node([1], [0, 0], "matmul", attributes=attributes)))


def field(content):
    content = content if isinstance(content, bytes) else str(content).encode()
    return b"%d:%s\n" % (len(content), content)


def plan(devices=1, steps=2, head="tensormorph plan", form=2, digest=b"\0" * 32, policy=(4294967295, 0, 0, 100, 0), state=0,
         device_count=None, step_count=None, step=(0, 1, ""), nodes=None):
    parts = [head, form, digest, digest, *policy, devices if device_count is None else device_count]
    for index in range(devices):
        parts += [f"x:{index}", "x", "build", bytes([index]) * 16]
    parts += [state, steps if step_count is None else step_count]
    for index in range(steps):
        parts += (index if nodes is None else nodes[index], *step)
    return b"".join(field(part) for part in parts)


def make_plans():
    valid = plan()
    write("plan", "valid", valid)
    for cut in range(0, len(valid), 13):
        write("plan", f"cut-{cut:04}", valid[:cut])
    write("plan", "rest", valid + b"x")
    write("plan", "none", plan(devices=0, steps=0))
    write("plan", "no-device", plan(devices=0))
    write("plan", "other-head", plan(head="tensormorph graph"))
    write("plan", "other-form", plan(form=3))
    write("plan", "short-digest", plan(digest=b"\0" * 31))
    write("plan", "class", plan(policy=(5, 0, 0, 100, 0)))
    write("plan", "no-repeats", plan(policy=(0, 0, 0, 0, 0)))
    write("plan", "max", plan(policy=(0, 1, 1, MAX, MAX)))
    write("plan", "many-devices", plan(device_count=4294967295))
    write("plan", "many-steps", plan(step_count=4294967294))
    write("plan", "huge-steps", plan(step_count=MAX))
    write("plan", "state-outside", plan(state=2))
    write("plan", "step-outside", plan(step=(1, 1, "")))
    write("plan", "step-odd", plan(step=(0, 2, "")))
    write("plan", "other-order", plan(nodes=(1, 0)))
    write("plan", "node-twice", plan(nodes=(1, 1)))
    write("plan", "node-outside", plan(nodes=(0, 2)))
    write("plan", "negative", valid.replace(b"3:100", b"4:-100"))
    write("plan", "length", valid.replace(b"3:100", b"99999999999999999999:100"))


def make_recipes():
    head = "method: ties\nbase: base.safetensors\nmodels:\n  - a.safetensors\n  - {path: b/b.gguf, name: other, weight: 0.5, density: 0.25}\n"
    whole = head + ("output: out.safetensors\nweight: [1, 2]\nscale: 0.75\ndtype: bf16\nnormalize: no\nmissing: copy\nrows: longest\n"
                    "other: skip\nshard_size: 5GB\ntensors:\n  - {match: 'layers.1*', weight: {a: 0.3, other: 0.7}, dtype: f32}\n"
                    "  - match: '*.bias'\n    weight: [0.5, null]\n    density: 1\n    scale: 0\n")
    recipes = {
        "whole": whole,
        "json": json.dumps({"version": "0.1.0", "method": "slerp", "t": 0.25,
                            "models": [{"path": "a.safetensors", "hash": "00", "bytes": 7}, {"path": "b.safetensors"}],
                            "tensors": [{"match": "x*", "t": 1}]}),
        "dare": "method: dare\nrescale: false\nseed: 18446744073709551615\nbase: {path: b.npy, hash: x}\nmodels: [a]\ndensity: 1\n",
        "empty": "", "comment": "# nothing\n", "scalar": "linear", "list": "[method, linear]", "two": "method: task\n---\nmethod: dare\n",
        "unknown-key": "metod: linear\n", "twice": "t: 0\nt: 1\n", "null": "method:\n", "null-key": "~: 1\n", "map-key": "{[a]: 1}\n",
        "nul": 'method: "li\\0near"\n', "nan": "t: .nan\n", "infinite": "weight: inf\n", "huge": "scale: 1e999\n", "density": "density: 0\n",
        "weights": head + "weight: [1, 2, 3]\n", "nobody": head + "weight: {c: 1}\n", "number": head + "weight: {2: 1}\n",
        "models-map": "models: {a: b}\n", "models-none": "models: []\n", "model-list": "models: [[a]]\n", "model-bare": "models: [{weight: 1}]\n",
        "models-many": "models: [" + "a, " * 40 + "]\n", "base-bare": "base: {hash: 1}\n", "tensors-bare": "tensors: [{weight: 1}]\n",
        "tensors-text": "tensors: [a]\n", "alias": "models: [&a x, *a, *a]\nweight: &w [1, 2, 3]\ndensity: *w\n",
        "itself": "tensors: &a [*a]\n", "itself-map": "tensors: [&a {match: x, weight: *a}]\n", "merge-key": "<<: {method: task}\n",
        "bomb": "a: &a [x, x]\nb: &b [*a, *a]\nc: &c [*b, *b]\n", "tag": "method: !!binary linear\n", "deep": "[" * 3000,
        "tab": "method:\tlinear\n\tt: 1\n", "latin": b"method: \xe9\n", "utf16": "\ufeffmethod: linear\n".encode("utf-16-le"),
        "quote": 'method: "linear\n', "path": "output: " + "x" * 3000 + "\n", "size": "shard_size: 5Q\n", "crlf": "method: linear\r\nt: 0.5\r\n",
    }
    for name, recipe in recipes.items():
        write("merge_recipe", name, recipe if isinstance(recipe, bytes) else recipe.encode())


make_gguf()
make_safetensors()
make_onnx()
make_npy()
make_json()
make_index()
make_manifests()
make_shared_objects()
make_profiles()
make_graphs()
make_plans()
make_recipes()
