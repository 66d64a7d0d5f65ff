# SPDX-License-Identifier: Apache-2.0
"""What examples/rewrite writes, as the packages `safetensors` and `gguf` read it:  writers_oracle.py REWRITE"""
import json
import pathlib
import subprocess
import sys
import tempfile

try:
    import gguf
    import numpy
    import safetensors
    import safetensors.numpy
except ImportError as missing:
    print(f"skipped: {missing} (scripts/make-venv)")
    sys.exit(77)

REWRITE = sys.argv[1]


def rewrite(source, target, *arguments):
    result = subprocess.run([REWRITE, source, target, *map(str, arguments)], capture_output=True, text=True, timeout=60, check=False)
    assert result.returncode == 0, f"{source} -> {target}: {result.stderr}"
    left = [entry.name for entry in target.parent.iterdir() if ".part" in entry.name or ".whole" in entry.name]
    assert not left, left
    return result


def same(a, b, what):
    assert a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes(), f"{what}: {a.dtype}{a.shape} {b.dtype}{b.shape}"


def arrays(generator):
    kinds = [numpy.uint8, numpy.float16, numpy.float64, numpy.int8, numpy.float32, numpy.int64, numpy.int32, numpy.uint16, numpy.bool_]
    made = {f"layer.{i}.{kind.__name__}": generator.integers(0, 2 if kind is numpy.bool_ else 100, (3, 5 + i)).astype(kind)
            for i, kind in enumerate(kinds)}
    made["scalar"] = numpy.array(2.5, numpy.float32)
    made["nothing"] = numpy.zeros((2, 0), numpy.float32)
    made["\u00e4\u2603 \"quoted\\"] = numpy.arange(4, dtype=numpy.uint32)
    return made


def check_safetensors(folder, generator):
    metadata = {"format": "pt", "note": "two\nlines, \u00e4 and \"quotes\""}
    wanted = arrays(generator)
    source = folder / "source.safetensors"
    safetensors.numpy.save_file(wanted, source, metadata)
    single = folder / "single.safetensors"
    rewrite(source, single)
    found = safetensors.numpy.load_file(single)
    assert found.keys() == wanted.keys()
    for name, array in wanted.items():
        same(found[name], array, name)
    with safetensors.safe_open(single, "numpy") as opened:
        assert opened.metadata() == metadata, opened.metadata()
    check_set(folder, source, wanted, metadata)


def check_set(folder, source, wanted, metadata):
    rewrite(source, folder / "set.safetensors", 700)
    index = json.loads((folder / "set.safetensors.index.json").read_text(encoding="utf-8"))
    assert index["metadata"]["total_size"] == sum(array.nbytes for array in wanted.values())
    assert index["weight_map"].keys() == wanted.keys()
    shards = sorted(set(index["weight_map"].values()))
    assert len(shards) > 2 and shards[0] == f"set-00001-of-{len(shards):05}.safetensors", shards
    for shard in shards:
        assert (folder / shard).stat().st_size <= 700, shard
        found = safetensors.numpy.load_file(folder / shard)
        assert sorted(found) == sorted(name for name, place in index["weight_map"].items() if place == shard)
        for name, array in found.items():
            same(array, wanted[name], name)
        with safetensors.safe_open(folder / shard, "numpy") as opened:
            assert opened.metadata() == metadata
    rewrite(folder / "set.safetensors.index.json", folder / "joined.safetensors")
    for name, array in safetensors.numpy.load_file(folder / "joined.safetensors").items():
        same(array, wanted[name], name)


def field(reader, key):
    return reader.fields[key].contents()


def write_gguf(path, generator, alignment):
    writer = gguf.GGUFWriter(path, "test")
    if alignment != 32:
        writer.add_custom_alignment(alignment)
    writer.add_uint8("n.u8", 200)
    writer.add_int64("n.i64", -5)
    writer.add_float64("n.f64", 0.1)
    writer.add_bool("n.bool", True)
    writer.add_string("text", "\u00e4 and\nmore")
    writer.add_array("tokens", [f"token {i}" for i in range(300)])
    writer.add_array("scores", [0.5 * i for i in range(300)])
    wanted = {"f32": generator.standard_normal((3, 64)).astype(numpy.float32), "f16": generator.standard_normal(7).astype(numpy.float16),
              "i32": numpy.arange(30, dtype=numpy.int32).reshape(2, 3, 5)}
    for name, array in wanted.items():
        writer.add_tensor(name, array)
    for kind, block in ((gguf.GGMLQuantizationType.Q8_0, 34), (gguf.GGMLQuantizationType.Q4_K, 144), (gguf.GGMLQuantizationType.BF16, 2)):
        wanted[kind.name] = generator.integers(0, 256, (2, 3 * block)).astype(numpy.uint8)
        writer.add_tensor(kind.name, wanted[kind.name], raw_dtype=kind)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return wanted


def check_gguf(folder, generator):
    for alignment in (32, 64, 8):
        source, target = folder / f"source{alignment}.gguf", folder / f"target{alignment}.gguf"
        wanted = write_gguf(source, generator, alignment)
        rewrite(source, target)
        assert target.read_bytes() == source.read_bytes(), f"alignment {alignment}: not the same bytes"
        reader = gguf.GGUFReader(target)
        assert field(reader, "tokens")[299] == "token 299" and field(reader, "text") == "\u00e4 and\nmore"
        assert [tensor.name for tensor in reader.tensors] == list(wanted)
        for tensor in reader.tensors:
            assert tensor.data.tobytes() == wanted[tensor.name].tobytes(), tensor.name


def check_from_one_to_the_other(folder, generator):
    names = {"a": numpy.float32, "b": numpy.float16, "c": numpy.int32, "d": numpy.float64}
    wanted = {name: generator.integers(0, 100, (3, 5)).astype(kind) for name, kind in names.items()}
    source = folder / "plain.safetensors"
    safetensors.numpy.save_file(wanted, source, {"general.name": "made here"})
    rewrite(source, folder / "plain.gguf")
    reader = gguf.GGUFReader(folder / "plain.gguf")
    assert field(reader, "general.name") == "made here"
    for tensor in reader.tensors:
        same(numpy.array(tensor.data), wanted[tensor.name], tensor.name)
    assert len(reader.tensors) == len(wanted)
    rewrite(folder / "plain.gguf", folder / "back.safetensors")
    for name, array in safetensors.numpy.load_file(folder / "back.safetensors").items():
        same(array, wanted[name], name)


def main():
    generator = numpy.random.default_rng(7)
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        check_safetensors(folder, generator)
        check_gguf(folder, generator)
        check_from_one_to_the_other(folder, generator)
    print("as both packages read it")


main()
