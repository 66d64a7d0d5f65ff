# SPDX-License-Identifier: Apache-2.0
"""stats_oracle.py COMMAND MODEL: `stats --json` of a real checkpoint agrees with float64 numpy for every tensor.

|mean difference| <= 1e-6 * mean|x|; std and l2 to 1e-6; counts, minimum and maximum exactly.  Exit 77: skipped.
"""
import json
import math
import os
import subprocess
import sys

SKIPPED = 77


def skip(reason):
    print(f"skipped: {reason}")
    sys.exit(SKIPPED)


try:
    import numpy
    from safetensors.numpy import load_file
except ImportError:
    skip("numpy and safetensors are missing: scripts/make-venv")


def oracle(values):
    x = values.astype(numpy.float64).ravel()
    finite = x[numpy.isfinite(x)]
    nothing = finite.size == 0
    tiny = numpy.finfo(values.dtype).smallest_normal
    return {
        "count": x.size, "nan": int(numpy.isnan(x).sum()), "pos_inf": int(numpy.isposinf(x).sum()),
        "neg_inf": int(numpy.isneginf(x).sum()), "zero": int((x == 0).sum()),
        "subnormal": int(((x != 0) & (numpy.abs(x) < tiny)).sum()),
        "min": None if nothing else finite.min(), "max": None if nothing else finite.max(),
        "abs_max": None if nothing else numpy.abs(finite).max(),
        "mean": None if nothing else math.fsum(finite) / finite.size,
        "std": None if nothing else finite.std(), "l2": math.sqrt(math.fsum(finite * finite)),
        "mean_abs": 0 if nothing else numpy.abs(finite).mean(),
    }


def differences(row, want):
    for key in ("count", "nan", "pos_inf", "neg_inf", "zero", "subnormal", "min", "max", "abs_max"):
        if row[key] != want[key]:
            yield f"{key}: {row[key]}, expected {want[key]}"
    if want["mean"] is None:
        return
    if abs(row["mean"] - want["mean"]) > 1e-6 * want["mean_abs"]:
        yield f"mean: {row['mean']}, expected {want['mean']}"
    for key in ("std", "l2"):
        if not math.isclose(row[key], want[key], rel_tol=1e-6, abs_tol=1e-300):
            yield f"{key}: {row[key]}, expected {want[key]}"


def main():
    command, model = sys.argv[1:]
    if not os.path.exists(model):
        skip(f"there is no {model}: scripts/fetch-model")
    output = subprocess.run([command, "stats", "--json", model], check=True, stdout=subprocess.PIPE).stdout
    rows = {row["name"]: row for row in json.loads(output)["tensors"]}
    tensors, failed = load_file(model), 0
    other = sorted(set(rows) ^ set(tensors))
    if other:
        print(f"{len(other)} tensors are not on both sides, the first is {other[0]}")
        failed += 1
    for name in sorted(set(rows) & set(tensors)):
        if tensors[name].dtype.kind != "f":
            continue
        for difference in differences(rows[name], oracle(tensors[name])):
            print(f"{name}: {difference}")
            failed += 1
    print(f"{len(rows)} tensors compared, {failed} difference(s)")
    return 1 if failed or not rows else 0


if __name__ == "__main__":
    sys.exit(main())
