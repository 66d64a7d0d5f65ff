# SPDX-License-Identifier: Apache-2.0
"""check_oracle.py COMMAND SCRATCH: what `check --json` says of random tensors and blocks is what numpy finds in them.  Exit 77: skipped."""
import json
import pathlib
import shutil
import struct
import subprocess
import sys
import tempfile

SKIPPED = 77

try:
    import numpy
except ImportError:
    print("skipped: numpy is missing: scripts/make-venv")
    sys.exit(SKIPPED)

RANDOM = numpy.random.default_rng(5)
# GGUF type: elements and bytes of a block, offsets of its f16 scales
BLOCKS = {2: (32, 18, (0,)), 3: (32, 20, (0, 2)), 8: (32, 34, (0,)), 10: (256, 84, (80, 82)), 12: (256, 144, (0, 2)), 14: (256, 210, (208,))}


def random_shape():
    return tuple(int(n) for n in RANDOM.integers(1, 40, int(RANDOM.integers(1, 5))))


def finding(name, kind, hit):
    row = {"tensor": name, "kind": kind, "count": int(hit.sum()), "total": hit.size, "first": [int(i) for i in numpy.argwhere(hit)[0]]}
    if hit.ndim >= 3:
        row["slices"] = [int(i) for i in numpy.flatnonzero(hit.reshape(hit.shape[0], -1).any(1))]
    return row


def floats(path):
    header, body, expected = {}, b"", []
    for number in range(60):
        dtype, name = (("<f4", "F32"), ("<f2", "F16"), ("<f8", "F64"))[number % 3]
        values = RANDOM.standard_normal(random_shape()).astype(dtype)
        for special in (numpy.nan, numpy.inf, -numpy.inf):
            values[RANDOM.random(values.shape) < RANDOM.choice([0, 0, 0.001, 0.3])] = special
        header[f"t{number}"] = {"dtype": name, "shape": values.shape, "data_offsets": [len(body), len(body) + values.nbytes]}
        body += values.tobytes()
        expected += [finding(f"t{number}", kind, hit) for kind, hit in (("nan", numpy.isnan(values)), ("inf", numpy.isinf(values))) if hit.any()]
    text = json.dumps(header).encode()
    path.write_bytes(struct.pack("<Q", len(text)) + text + body)
    return expected


def blocks(path):
    infos, data, expected = b"", b"", []
    for number in range(30):
        kind = list(BLOCKS)[number % len(BLOCKS)]
        elements, size, offsets = BLOCKS[kind]
        shape = random_shape()
        content = RANDOM.integers(0, 256, (*shape, size), dtype=numpy.uint8)
        hit = numpy.zeros(shape, bool)
        for offset in offsets:
            scale = RANDOM.standard_normal(shape).astype("<f2")
            scale[RANDOM.random(shape) < RANDOM.choice([0, 0.01, 0.2])] = RANDOM.choice([numpy.nan, numpy.inf])
            content[..., offset : offset + 2] = scale.view(numpy.uint8).reshape(*shape, 2)
            hit |= ~numpy.isfinite(scale)
        name = f"blk.{number}".encode()
        dims = (*shape[:-1], shape[-1] * elements)
        infos += struct.pack("<Q", len(name)) + name + struct.pack(f"<I{len(dims)}Q", len(dims), *reversed(dims))
        infos += struct.pack("<IQ", kind, len(data))
        data += content.tobytes() + bytes(-content.size % 32)
        if hit.any():
            expected.append(finding(name.decode(), "block_scale", hit))
    head = struct.pack("<4sIQQ", b"GGUF", 3, 30, 0) + infos
    path.write_bytes(head + bytes(-len(head) % 32) + data)
    return expected


def main():
    command, scratch = sys.argv[1:]
    folder = pathlib.Path(tempfile.mkdtemp(dir=scratch))
    wrong = compared = 0
    try:
        for make, name in ((floats, "random.safetensors"), (blocks, "random.gguf")):
            expected = make(folder / name)
            compared += len(expected)
            for extra in ([], ["--threads", "1"], ["--device", "reference"]):
                done = subprocess.run([command, "check", folder / name, "--json", *extra], stdout=subprocess.PIPE, timeout=120,
                                      env={"HOME": str(folder)})
                rows = [row for row in json.loads(done.stdout)["rows"] if row["level"] == "finding"]
                found = [{key: row[key] for key in want} for row, want in zip(rows, expected)]
                if done.returncode != 1 or len(rows) != len(expected) or found != expected:
                    wrong += 1
                    print(f"{name} {extra}: exit code {done.returncode}, {len(rows)} findings, expected {len(expected)}")
                    print([pair for pair in zip(found, expected) if pair[0] != pair[1]][:1])
    finally:
        shutil.rmtree(folder)
    print(f"{compared} findings compared, {wrong} runs wrong")
    return wrong != 0 or compared < 40


if __name__ == "__main__":
    sys.exit(main())
