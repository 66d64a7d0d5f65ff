#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Reads a safetensors or GGUF file with the standard library alone and prints what it holds, one line a fact.

An independent second reader for tests/formats/test_fixtures.c: nothing is shared with the library but the file format.
  meta<TAB>key<TAB>type<TAB>value
  tensor<TAB>name<TAB>type<TAB>dims, outermost first<TAB>bytes<TAB>offset in the file<TAB>Adler-32 of the bytes
Values: integers in decimal, floats as the hexadecimal bits of an f64, strings in hexadecimal, arrays as their Adler-32 over
the elements' values written so and joined by commas.
"""
import json
import struct
import sys
import zlib

SCALARS = {0: ("u8", "B"), 1: ("i8", "b"), 2: ("u16", "H"), 3: ("i16", "h"), 4: ("u32", "I"), 5: ("i32", "i"),
           6: ("f32", "f"), 7: ("bool", "?"), 10: ("u64", "Q"), 11: ("i64", "q"), 12: ("f64", "d")}
# GGUF type number -> name, elements and bytes of a block; enough for the fixtures
GGUF_TYPES = {0: ("f32", 1, 4), 1: ("f16", 1, 2), 2: ("q4_0", 32, 18), 8: ("q8_0", 32, 34), 27: ("i64", 1, 8)}


def show(value):
    if isinstance(value, bool):
        return "1" if value else "0"
    if isinstance(value, int):
        return str(value)
    if isinstance(value, float):
        return struct.pack(">d", value).hex()
    return value.hex()


class Gguf:
    def __init__(self, data):
        self.data, self.at = data, 4

    def number(self, code):
        size = struct.calcsize("<" + code)
        value = struct.unpack_from("<" + code, self.data, self.at)[0]
        self.at += size
        return value

    def text(self):
        length = self.number("Q")
        self.at += length
        return self.data[self.at - length:self.at]

    def value(self, kind):
        if kind == 8:
            return "string", show(self.text())
        if kind == 9:
            inner, count = self.number("I"), self.number("Q")
            shown = [self.value(inner) for _ in range(count)]
            name = "string" if inner == 8 else SCALARS[inner][0]
            joined = ",".join(s for _, s in shown).encode()
            return "array of %s[%d]" % (name, count), "%d" % zlib.adler32(joined)
        name, code = SCALARS[kind]
        return name, show(self.number(code))

    def read(self):
        self.number("I")
        tensors, metas = self.number("Q"), self.number("Q")
        alignment = 32
        for _ in range(metas):
            key = self.text()
            kind, shown = self.value(self.number("I"))
            if key == b"general.alignment":
                alignment = int(shown)
            print("meta\t%s\t%s\t%s" % (key.decode(), kind, shown))
        found = []
        for _ in range(tensors):
            name = self.text().decode()
            dims = [self.number("Q") for _ in range(self.number("I"))]
            kind, offset = self.number("I"), self.number("Q")
            found.append((name, dims[::-1], GGUF_TYPES[kind], offset))
        begin = -(-self.at // alignment) * alignment
        for name, dims, (kind, elements, block), offset in found:
            count = 1
            for dim in dims:
                count *= dim
            print_tensor(self.data, name, kind, dims, count // elements * block, begin + offset)


def print_tensor(data, name, kind, dims, size, offset):
    print("tensor\t%s\t%s\t%s\t%d\t%d\t%d" % (name, kind, ",".join(map(str, dims)), size, offset,
                                             zlib.adler32(data[offset:offset + size])))


def read_safetensors(data):
    length = struct.unpack_from("<Q", data)[0]
    header = json.loads(data[8:8 + length])
    for key, value in header.pop("__metadata__", {}).items():
        print("meta\t%s\tstring\t%s" % (key, value.encode().hex()))
    for name, entry in header.items():
        begin, end = entry["data_offsets"]
        print_tensor(data, name, entry["dtype"], entry["shape"], end - begin, 8 + length + begin)


def main():
    with open(sys.argv[1], "rb") as file:
        data = file.read()
    if data[:4] == b"GGUF":
        Gguf(data).read()
    else:
        read_safetensors(data)


main()
