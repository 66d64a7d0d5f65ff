# SPDX-License-Identifier: Apache-2.0
"""The same file, byte for byte, by the cores, by the reference, and by a backend: linear and slerp by it alone, others with the reference:

merges_devices.py RUNNER BACKEND [SETTING]...       SETTING: BACKEND:NAME:VALUE
"""
import pathlib
import sys

try:
    import numpy
except ImportError as missing:
    print(f"skipped: {missing} (scripts/make-venv)")
    sys.exit(77)

import merge_files as files

RUNNER, BACKEND = sys.argv[1:3]
SETTINGS = sys.argv[3:]
SHAPES = {"large": (900, 640), "bias": (640,), "one": (1,)}


def made(seed, kind):
    generator = numpy.random.default_rng(seed)
    return {name: files.make(kind, generator.standard_normal(shape)) for name, shape in SHAPES.items()}


def run(method, paths, out, **keys):
    base = {} if method in ("linear", "slerp") else {"base": paths[0]}
    result = files.merge(RUNNER, method, out, paths[1:], sets=["d:-:0.4", "w:0:0.3"], seed=3, limit=300, **keys, **base)
    assert result.code == 0, result.text()
    return result, out.read_bytes()


def main():
    used = 0
    with files.folder() as name:
        folder = pathlib.Path(name)
        for kind in ("f32", "bf16"):
            paths = [files.write_safetensors(folder / f"{kind}.{i}.safetensors", made(i, kind)) for i in range(3)]
            for method in ("linear", "slerp", "task", "ties", "dare"):
                _, wanted = run(method, paths, folder / "cores.safetensors", only="cpu")
                _, found = run(method, paths, folder / "reference.safetensors", without="cpu")
                assert found == wanted, f"{method} of {kind}: the reference differs"
                alone = {"without": "reference"} if method in ("linear", "slerp") else {}
                result, found = run(method, paths, folder / "backend.safetensors", only=BACKEND, setting=SETTINGS, **alone)
                assert found == wanted, f"{method} of {kind}: {BACKEND} differs"
                used += sum(line[0].startswith(BACKEND) for line in result.of("device"))
    if used == 0:
        print(f"skipped: {BACKEND} has no device, or none that was worth it")
        return 77
    print(f"{used} of 10 merges were made with {BACKEND}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
