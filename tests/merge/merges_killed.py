# SPDX-License-Identifier: Apache-2.0
"""A merge that is killed at any moment leaves the old file whole or the new one whole, and nothing in the way of the next merge:
merges_killed.py RUNNER.  A few moments; with TM_NIGHTLY=1 two hundred.  Every other one is in the middle of writing."""
import os
import pathlib
import random
import signal
import subprocess
import sys
import time

try:
    import numpy
except ImportError as missing:
    print(f"skipped: {missing} (scripts/make-venv)")
    sys.exit(77)

import merge_files as files

RUNNER = sys.argv[1]
MOMENTS = 200 if os.environ.get("TM_NIGHTLY") == "1" else 14
SHAPE = (512, 1024)


def contents(folder, names):
    return {name: (folder / name).read_bytes() for name in names if (folder / name).exists()}


def command(out, paths, shard):
    arguments = [RUNNER, "linear", out, "model", paths[0], "model", paths[1]] + (["shard", shard] if shard else [])
    return [str(argument) for argument in arguments]


def has_parts(folder):
    return any(path.name.endswith(".part") for path in folder.iterdir())


def kill_at(arguments, seconds):
    with subprocess.Popen(arguments, stdout=subprocess.DEVNULL) as process:
        time.sleep(seconds)
        process.send_signal(signal.SIGKILL)
        process.wait(60)


def kill_while_it_writes(arguments, folder):
    with subprocess.Popen(arguments, stdout=subprocess.DEVNULL) as process:
        while process.poll() is None and not has_parts(folder):
            time.sleep(0.0002)
        process.send_signal(signal.SIGKILL)
        process.wait(60)


def whole_outputs(folder, inputs):
    return {path.name for path in folder.iterdir() if path not in inputs}


def check(folder, shard):
    generator = numpy.random.default_rng(5)
    paths = [files.write_safetensors(folder / f"{name}.safetensors",
                                     {f"w{i}": files.make("f32", generator.standard_normal(SHAPE)) for i in range(4)}) for name in "ab"]
    out = folder / "out.safetensors"
    begin = time.monotonic()
    subprocess.run(command(out, paths, shard), check=True, stdout=subprocess.DEVNULL, timeout=60)
    usual = time.monotonic() - begin
    names = whole_outputs(folder, paths)
    new = contents(folder, names)
    old_model = {"w0": files.make("f32", numpy.zeros((4, 4)))}
    randomness = random.Random(3)
    replaced = moment = amid_count = 0
    while moment < MOMENTS // 2 or (amid_count == 0 and moment < 100):      # under load one may come too late for the files
        for name in whole_outputs(folder, paths):
            (folder / name).unlink()
        files.write_safetensors(out, old_model)
        old = {out.name: out.read_bytes()}
        if moment % 2 == 0:
            kill_while_it_writes(command(out, paths, shard), folder)
        else:
            kill_at(command(out, paths, shard), randomness.uniform(0, usual * 1.1))
        amid_count += has_parts(folder)
        left = contents(folder, whole_outputs(folder, paths))
        standing = {name: data for name, data in left.items() if not name.endswith((".part", ".whole"))}
        if standing != old:
            # of a set everything may be there but the index, which the next writer puts in its place
            assert all(new[name] == data for name, data in standing.items()), f"moment {moment}: {sorted(standing)}"
            assert shard or standing == new, f"moment {moment}: {sorted(standing)}"
            replaced += 1
        subprocess.run(command(out, paths, shard), check=True, stdout=subprocess.DEVNULL, timeout=60)
        assert contents(folder, whole_outputs(folder, paths)) == new, f"moment {moment}: the merge after it is not what it would be"
        moment += 1
    assert amid_count != 0, f"none of {moment} kills fell while files were being written"
    print(f"{moment} kills{' of a set' if shard else ''}, {amid_count} of them while files were written, "
          f"{replaced} after they were there")


def main():
    for shard in (0, 5_000_000):
        with files.folder() as folder:
            check(pathlib.Path(folder), shard)
    return 0


if __name__ == "__main__":
    sys.exit(main())
