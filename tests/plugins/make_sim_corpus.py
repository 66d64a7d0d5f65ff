#!/usr/bin/env -S python3 -B
# SPDX-License-Identifier: Apache-2.0
"""make_sim_corpus.py FOLDER: writes the corpus of fuzz_sim_description: one description that is good, and one for each way
in which a description can be wrong.  (name, edit, words that the complaint must have) are also what plugin_commands.py tests."""
import copy
import json
import pathlib
import sys

GOOD = {
    "name": "tiny",
    "queues": 2,
    "memory": {"bytes": 65536, "alignment": 64},
    "link": {"bytes_per_second": 1e9, "latency_ns": 10},
    "operations": [
        {
            "names": ["matmul"],
            "formats": ["i8", "i8", "i32"],
            "quantize_from": ["f32"],
            "rank_max": 2,
            "k_multiple": 32,
            "n_multiple": 16,
            "k_max": 64,
            "packs_b": True,
            "flops_per_second": 1e9,
            "bytes_per_second": 1e9,
        },
        {"names": ["add", "relu"], "formats": ["f16"], "flops_per_second": 1e9, "bytes_per_second": 1e9},
    ],
}
REMOVED = object()


def edited(path, value):
    """GOOD with another value at a path of keys and indices."""
    document = copy.deepcopy(GOOD)
    place = document
    for key in path[:-1]:
        place = place[key]
    if value is REMOVED:
        del place[path[-1]]
    else:
        place[path[-1]] = value
    return json.dumps(document)


def op(key, value):
    return edited(("operations", 0, key), value)


def text(path, spelling):
    """A value that no JSON writer would write."""
    return edited(path, "@").replace('"@"', spelling)


# name: (the file, what the complaint says)
BAD = {
    "negative": (op("k_multiple", -3), ["operations[0].k_multiple", "from 1 to 65536", "found -3"]),
    "zero-rate": (op("flops_per_second", 0), ["operations[0].flops_per_second", "found 0"]),
    "fraction": (op("rank_max", 1.5), ["operations[0].rank_max", "a whole number", "found 1.5"]),
    "nan": (text(("link", "bytes_per_second"), "NaN"), ["line 1", "expected JSON"]),
    "infinity": (text(("link", "bytes_per_second"), "1e999"), ["expected JSON", "overflow"]),
    "huge-integer": (text(("memory", "bytes"), "9" * 30), ["expected JSON", "too big"]),
    "huge-memory": (edited(("memory", "bytes"), 1 << 60), ["memory.bytes", "found 1152921504606846976"]),
    "huge-rate": (edited(("link", "bytes_per_second"), 1e300), ["link.bytes_per_second", "found 1"]),
    "wrong-type": (edited(("queues",), "two"), ["queues", 'found "two"']),
    "flag-number": (op("packs_b", 1), ["operations[0].packs_b", "true or false", "found 1"]),
    "null": (edited(("name",), None), ["name", "found null"]),
    "empty-name": (edited(("name",), ""), ["name", "1 to 63", 'found ""']),
    "long-name": (edited(("name",), "x" * 64), ["name", "1 to 63"]),
    "escape-name": (edited(("name",), "a\x1b[2Jb"), ["name", "printable"]),
    "list-root": ("[1]", ["device.json", "an object", "a list of 1"]),
    "number-root": ("3", ["expected JSON"]),
    "empty": ("", ["expected JSON"]),
    "text": ("hello", ["expected JSON"]),
    "cut": (json.dumps(GOOD)[:-40], ["expected JSON"]),
    "trailing": (json.dumps(GOOD) + "}", ["expected JSON"]),
    "twice": (json.dumps(GOOD)[:-1] + ', "name": "again"}', ["expected JSON", "duplicate"]),
    "nul": (json.dumps(GOOD).replace("tiny", "ti\\u0000ny"), ["expected JSON"]),
    "bad-utf8": (json.dumps(GOOD).replace("tiny", "ti\udcffny"), ["expected JSON", "0xff"]),
    "unknown-key": (edited(("cores",), 7), ["expected one of the keys", "exclusive_process", '"cores"']),
    "unknown-inner-key": (op("k_mutliple", 7), ["operations[0]", "k_multiple", '"k_mutliple"']),
    "escape-key": (edited(("\x1b]0;x\x07",), 7), ["expected one of the keys", "\\u001B"]),
    "missing-memory": (edited(("memory",), REMOVED), ["memory", "expected it to be there"]),
    "missing-formats": (op("formats", REMOVED), ["operations[0].formats", "found nothing"]),
    "no-operations": (edited(("operations",), []), ["operations", "not empty"]),
    "object-operations": (edited(("operations",), {}), ["operations", "found an object"]),
    "number-operation": (edited(("operations", 1), 5), ["operations[1]", "an object", "found 5"]),
    "unknown-operation": (op("names", ["matmull"]), ["operations[0].names", "matmul", '"matmull"']),
    "convert": (op("names", ["convert"]), ["operations[0].names", '"convert"']),
    "no-names": (op("names", []), ["operations[0].names"]),
    "too-many": (edited(("operations", 1, "names"), ["add"] * 200), ["at most 128"]),
    "unknown-format": (op("formats", ["i8", "i8", "i33"]), ["operations[0].formats", '"i33"']),
    "two-formats": (op("formats", ["i8", "i8"]), ["operations[0].formats", "3 for the operands of matmul", "a list of 2"]),
    "wrong-formats": (op("formats", ["i8", "i8", "f32"]), ["operations[0].formats", "i8, i8, i32"]),
    "integer-add": (edited(("operations", 1, "formats"), ["i8"]), ["operations[1].formats", "floats"]),
    "product-limits": (edited(("operations", 1, "k_max"), 64), ["operations[1].k_max", "nothing but for a matmul"]),
    "odd-k-max": (op("k_max", 65), ["operations[0].k_max", "a multiple of k_multiple"]),
    "rank-3-packed": (op("rank_max", 3), ["operations[0].rank_max", "2 with packs_b"]),
    "odd-tile": (op("n_multiple", 8), ["operations[0].n_multiple", "a multiple of 16"]),
    "stronger": (op("numerics", {"class": "N7"}), ["operations[0].numerics.class", '"N7"']),
    "no-bound": (op("numerics", {"class": "N2"}), ["operations[0].numerics.bound", "be there"]),
    "odd-growth": (op("numerics", {"class": "N2", "bound": 1, "growth": "n2"}), ["numerics.growth", '"n2"']),
    "odd-alignment": (edited(("memory", "alignment"), 48), ["memory.alignment", "a power of two", "found 48"]),
    "odd-granule": (edited(("memory", "offset_granule"), 128), ["memory.offset_granule", "found 128"]),
    "number-profile": (edited(("profile",), 5), ["profile", "an object", "found 5"]),
    "half-profile": (edited(("profile",), {"file": "x"}), ["profile.device", "be there"]),
    "empty-profile": (edited(("profile",), {"file": "", "device": "x"}), ["profile.file", "a path of 1 to 1023 bytes"]),
    "deep": ('{"comment":' + "[" * 3000 + "]" * 3000 + "}", ["expected JSON", "depth"]),
    "deep-value": ('{"name":' + "[" * 2000 + "]" * 2000 + "}", ["name", "a list of 1"]),
}


def bytes_of(document):
    return document.encode("utf-8", "surrogateescape")


def main():
    folder = pathlib.Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "good").write_bytes(bytes_of(json.dumps(GOOD)))
    for name, (document, _) in BAD.items():
        (folder / name).write_bytes(bytes_of(document))
    print(f"{len(BAD) + 1} inputs")


if __name__ == "__main__":
    main()
