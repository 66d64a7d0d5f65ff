# SPDX-License-Identifier: Apache-2.0
"""Jobs on block formats that can be read and not written, beside what the package `gguf` decodes:  blocks_gguf.py COMMAND"""
import json
import pathlib
import subprocess
import sys
import tempfile

try:
    import gguf
    import numpy
except ImportError as missing:
    print(f"skipped: {missing} (scripts/make-venv)")
    sys.exit(77)

import made_checkpoints as made
import stats_oracle

COMMAND = sys.argv[1]
KINDS = ("Q4_1", "Q5_0", "Q5_1", "Q2_K", "Q3_K", "Q4_K", "Q5_K", "Q6_K", "IQ4_NL", "IQ4_XS", "TQ1_0", "TQ2_0")
HALVES = {"Q4_1": (0, 2), "Q5_0": (0,), "Q5_1": (0, 2), "Q2_K": (80, 82), "Q3_K": (108,), "Q4_K": (0, 2), "Q5_K": (0, 2), "Q6_K": (208,),
          "IQ4_NL": (0,), "IQ4_XS": (0,), "TQ1_0": (52,), "TQ2_0": (64,)}
ROWS = 37


def run(*words, code=0):
    done = subprocess.run([COMMAND, *map(str, words)], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == code, f"{words}: {done.returncode}, expected {code}: {done.stdout} {done.stderr}"
    return done


def random_blocks(generator, kind):
    """Random bits, but for the scales."""
    number = gguf.GGMLQuantizationType[kind]
    elements, size = gguf.GGML_QUANT_SIZES[number]
    blocks = generator.integers(0, 256, (ROWS * 2, size), dtype="u1")
    for at in HALVES[kind]:
        blocks[:, at:at + 2] = generator.normal(0, 0.01, (len(blocks), 1)).astype("<f2").view("u1")
    values = gguf.quants.dequantize(blocks, number).reshape(ROWS, 2 * elements)
    made.GGUF[kind.lower()] = int(number)
    return made.Stored(kind.lower(), values.shape, blocks.tobytes(), values)


def check_stats(path, tensors):
    rows = {row["name"]: row for row in json.loads(run("stats", path, "--json").stdout)["tensors"]}
    for name, one in tensors.items():
        found = list(stats_oracle.differences(rows[name], stats_oracle.oracle(one.values)))
        assert not found, f"{name}: {found}"


def check_diff(folder, path, tensors):
    """The decoded values in another file are the same values; a scale that changed is a change, by as much as it makes."""
    decoded = {name: made.store(one.values) for name, one in tensors.items()}
    made.write(folder / "decoded.safetensors", decoded)
    rows = json.loads(run("diff", path, folder / "decoded.safetensors", "--json").stdout)["tensors"]
    assert {row["verdict"] for row in rows} == {"retyped"}, rows
    assert all(row["equal"] == row["count"] for row in rows), rows
    for name, one in tensors.items():
        one.values.flat[5] += numpy.float32(0.5)
    made.write(folder / "decoded.safetensors", {name: made.store(one.values) for name, one in tensors.items()})
    rows = json.loads(run("diff", path, folder / "decoded.safetensors", "--json", code=1).stdout)["tensors"]
    assert all(row["equal"] == row["count"] - 1 and abs(row["max_abs"] - 0.5) < 1e-2 for row in rows), rows


def check_merge(folder, paths, models):
    out = folder / "out.safetensors"
    run("merge", *paths, "--linear", "--weight", "0.25,0.75", "--dtype", "f32", "-o", out)
    found, _ = read_safetensors(out)
    for name, one in models[0].items():
        wanted = (0.25 * one.values.astype("f8") + 0.75 * models[1][name].values.astype("f8")).astype("f4")
        assert found[name].tobytes() == wanted.tobytes(), name
    refused = run("merge", *paths, "--linear", "-o", folder / "out.gguf", code=1)
    assert "not written by this version" in refused.stdout + refused.stderr, refused
    assert not (folder / "out.gguf").exists()
    run("merge", paths[0], paths[0], "--linear", "-o", folder / "out.gguf")     # equal blocks stay blocks
    run("diff", paths[0], folder / "out.gguf", "--exact", "--quiet")
    check_copies(folder, models[0]["blk.q4_k"])


def check_copies(folder, one):
    """What is copied instead is copied whole, with fewer or with more rows than the others have."""
    row = len(one.data) // len(one.values)
    shorter = made.Stored(one.kind, (5, one.values.shape[1]), one.data[-5 * row:], None)
    pair = [folder / "long.gguf", folder / "short.gguf"]
    for path, tensor in zip(pair, (one, shorter)):
        made.write(path, {"w": tensor})
    for models in (pair, pair[::-1]):
        for rows in ("common", "lead", "longest"):
            run("merge", *models, "--linear", "--rows", rows, "--other", "copy", "--force", "-o", folder / "copied.gguf")
            run("diff", models[0], folder / "copied.gguf", "--exact", "--quiet")


def read_safetensors(path):
    data = path.read_bytes()
    length = int.from_bytes(data[:8], "little")
    header = json.loads(data[8:8 + length])
    metadata = header.pop("__metadata__", {})
    return {name: numpy.frombuffer(data[8 + length:][slice(*one["data_offsets"])], "<f4").reshape(one["shape"])
            for name, one in header.items()}, metadata


def main():
    generator = numpy.random.default_rng(20)
    models = [{f"blk.{kind.lower()}": random_blocks(generator, kind) for kind in KINDS} for _ in range(2)]
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        paths = [folder / "a.gguf", folder / "b.gguf"]
        for path, tensors in zip(paths, models):
            made.write(path, tensors)
            check_stats(path, tensors)
        check_merge(folder, paths, models)
        check_diff(folder, paths[0], models[0])
    print(f"{len(KINDS)} formats: stats, diff and merge agree with gguf and numpy {numpy.__version__}")


main()
