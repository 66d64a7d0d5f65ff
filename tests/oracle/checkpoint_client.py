# SPDX-License-Identifier: Apache-2.0
"""Talks to checkpoint_dump: what a file holds, as the library reads it (the protocol is in checkpoint_dump.c)."""
import subprocess


class Tensor:
    def __init__(self, name, format_name, type_name, dims, data):
        self.name, self.format, self.type, self.dims, self.data = name, format_name, type_name, dims, data

    def __eq__(self, other):
        return (self.name, self.format, self.dims, self.data) == (other.name, other.format, other.dims, other.data)

    def __repr__(self):
        data = None if self.data is None else self.data[:16].hex()
        return f"{self.name} {self.format} {self.type} {self.dims} {data}"


class Checkpoint:
    def __init__(self):
        self.format, self.error, self.metadata, self.notes, self.tensors = None, None, {}, [], {}


def unhex(text):
    return b"" if text == "-" else bytes.fromhex(text)


def parse(data):
    found, at = [], 0
    while at < len(data):
        end = data.index(b"\n", at)
        kind, _, rest = data[at:end].decode().partition(" ")
        at = end + 1
        if kind in ("file", "error"):
            found.append(Checkpoint())
            setattr(found[-1], "format" if kind == "file" else "error", rest)
        elif kind == "metadata":
            key, type_name, value = rest.split()
            found[-1].metadata[unhex(key).decode()] = (type_name, unhex(value).decode())
        elif kind == "note":
            found[-1].notes.append(rest)
        elif kind == "tensor":
            name, format_name, type_name, size, _, *dims = rest.split()
            tensor = Tensor(unhex(name).decode(), format_name, unhex(type_name).decode(), tuple(map(int, dims)), None)
            if int(size) >= 0:
                tensor.data = data[at:at + int(size)]
                at += int(size)
            assert tensor.name not in found[-1].tensors
            found[-1].tensors[tensor.name] = tensor
        else:
            assert kind == "end", kind
    return found


def read_all(program, paths, how="read"):
    """One Checkpoint a path."""
    found = []
    for begin in range(0, len(paths), 200):
        done = subprocess.run([program, how, *map(str, paths[begin:begin + 200])], stdout=subprocess.PIPE, check=True, timeout=120)
        found += parse(done.stdout)
    assert len(found) == len(paths)
    return found


def read(program, path):
    """Mapped and read, which must not differ."""
    mapped, plain = read_all(program, [path], "map")[0], read_all(program, [path])[0]
    assert mapped.tensors == plain.tensors and mapped.error == plain.error, (mapped.tensors, plain.tensors)
    return plain
