# SPDX-License-Identifier: Apache-2.0
"""What does not match, what cannot be, and what goes wrong:  merges_bad_input.py RUNNER"""
import json
import os
import pathlib
import resource
import struct
import subprocess
import sys
import tempfile

try:
    import numpy
except ImportError as missing:
    print(f"skipped: {missing} (scripts/make-venv)")
    sys.exit(77)

import merge_files as files

RUNNER = sys.argv[1]
MISSING = {"fail": 0, "available": 1, "copy": 2, "skip": 3}
ROWS = {"fail": 0, "common": 1, "lead": 2, "longest": 3}
OTHER = {"fail": 0, "copy": 1, "skip": 2}


def values(shape, seed=0):
    return numpy.random.default_rng(seed).standard_normal(shape)


def write(folder, name, tensors):
    return files.write_safetensors(folder / f"{name}.safetensors", {key: files.make(*given) for key, given in tensors.items()})


def mean(*arrays):
    return files.make("f32", sum(array.astype(numpy.float32).astype(float) / len(arrays) for array in arrays)).data


def plan_of(run, name):
    return run.rows("planned")[name]


def refused(folder, method, models, message, **keys):
    """The plan says no, and nothing is there."""
    before = sorted(path.name for path in folder.iterdir())
    run = files.merge(RUNNER, method, folder / "out.safetensors", models, **keys)
    assert run.code == 1 and message in run.text(), (message, run.code, run.text())
    assert sorted(path.name for path in folder.iterdir()) == before, "a refused plan left something"
    return run


def fails(folder, method, models, message, out=None, **keys):
    before = {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()}
    run = files.merge(RUNNER, method, out or folder / "out.safetensors", models, **keys)
    assert run.code == 3 and message in run.text(), (message, run.code, run.text())
    after = {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()}
    assert before == after, "a merge that failed left something"
    return run


def works(folder, method, models, **keys):
    out = folder / "out.safetensors"
    run = files.merge(RUNNER, method, out, models, **keys)
    assert run.code == 0, run.text()
    tensors, _ = files.read_safetensors(out)
    out.unlink()
    return run, tensors


# ---- what does not match ----

def check_missing(folder):
    a, b, c = values((3, 4), 1), values((3, 4), 2), values((3, 4), 3)
    first = write(folder, "first", {"w": ("f32", a), "only.first": ("f32", c)})
    second = write(folder, "second", {"w": ("f32", b), "only.second": ("f32", b)})
    run = refused(folder, "linear", [first, second], "2 tensors are not in all models")
    assert plan_of(run, "only.first")["action"] == "refuse" and plan_of(run, "only.first")["mismatch"] == "missing"
    assert "not in second.safetensors" in plan_of(run, "only.first")["message"], run.text()
    for policy in ("available", "copy"):
        _, found = works(folder, "linear", [first, second], missing=MISSING[policy], sets=["w:0:3"])
        assert list(found) == ["w", "only.first", "only.second"], list(found)
        assert found["only.first"].data == files.make("f32", c).data and found["only.second"].data == files.make("f32", b).data
    run, found = works(folder, "linear", [first, second], missing=MISSING["skip"])
    assert list(found) == ["w"] and found["w"].data == mean(a, b)
    assert list(run.rows("planned"))[-2:] == ["only.first", "only.second"] and plan_of(run, "only.first")["action"] == "skip"
    base = write(folder, "base", {"w": ("f32", a), "only.first": ("f32", a)})
    refused(folder, "task", [first, second], "not in second.safetensors", base=base)
    _, found = works(folder, "task", [first, second], base=base, missing=MISSING["available"])
    exact = files.make("f32", a).values() + (files.make("f32", c).values() - files.make("f32", a).values())
    assert found["only.first"].data == files.make("f32", exact).data, "who lacks it adds no difference"
    assert found["only.second"].data == files.make("f32", b).data
    # a model of weight 0 takes no part, so nothing of it can be missing
    _, found = works(folder, "linear", [first, second], sets=["w:1:0:only.first", "w:0:0:only.second"])
    assert found["only.first"].data == files.make("f32", c).data


def check_rows(folder):
    a, b = values((6, 4), 1), values((8, 4), 2)
    first, second = write(folder, "first", {"emb": ("f32", a)}), write(folder, "second", {"emb": ("f32", b)})
    run = refused(folder, "linear", [first, second], "[6,4] in first.safetensors; [8,4] in second.safetensors")
    assert plan_of(run, "emb")["mismatch"] == "rows"
    common = mean(a, b[:6])
    for policy, models, wanted in (("common", [first, second], common), ("lead", [first, second], common),
                                   ("longest", [first, second], common + files.make("f32", b[6:]).data),
                                   ("lead", [second, first], common + files.make("f32", b[6:]).data),
                                   ("common", [second, first], common)):
        _, found = works(folder, "linear", models, rows=ROWS[policy])
        assert found["emb"].data == wanted and found["emb"].shape == (len(wanted) // 16, 4), (policy, found["emb"].shape)
    third = write(folder, "third", {"emb": ("f32", values((7, 4), 3))})
    run, _ = works(folder, "linear", [first, second, third], rows=ROWS["longest"])
    said = plan_of(run, "emb")["message"]
    assert "[6,4] in first.safetensors; [8,4] in second.safetensors; [7,4] in third.safetensors" in said, said
    assert said.endswith("taken from second.safetensors, and not from third.safetensors"), said
    none = write(folder, "none", {"emb": ("f32", values((0, 4)))})
    for order in ([none, first], [first, none]):
        _, found = works(folder, "linear", order, rows=ROWS["longest"])
        assert found["emb"].shape == (6, 4) and found["emb"].data == files.make("f32", a).data
        for policy in ("lead", "common"):
            _, found = works(folder, "linear", order, rows=ROWS[policy])
            assert found["emb"].shape == (6 if policy == "lead" and order[0] == first else 0, 4), (policy, found["emb"].shape)
    base = write(folder, "base", {"emb": ("f32", values((5, 4), 3))})
    for method in ("task", "ties", "dare"):
        _, found = works(folder, method, [first, second], base=base, rows=ROWS["longest"], sets=["d:-:0.5"])
        assert found["emb"].shape == (8, 4) and found["emb"].data[80:] == files.make("f32", b[5:]).data, method
    _, found = works(folder, "slerp", [first, second], rows=ROWS["lead"])
    assert found["emb"].shape == (6, 4)
    large = [write(folder, f"large{i}", {"emb": ("f32", values((rows, 640), i))}) for i, rows in enumerate((300, 411))]
    one, _ = works(folder, "linear", large, rows=ROWS["longest"])
    assert one.rows()["emb"]["shape"] == "411,640"


def check_shapes_and_types(folder):
    first = write(folder, "first", {"w": ("f32", values((3, 4))), "ids": ("i64", numpy.arange(4)), "same": ("i64", numpy.arange(9))})
    second = write(folder, "second", {"w": ("f32", values((4, 3))), "ids": ("i64", numpy.arange(4) + 1), "same": ("i64", numpy.arange(9))})
    run = refused(folder, "linear", [first, second], "[3,4] in first.safetensors; [4,3] in second.safetensors")
    assert plan_of(run, "w")["mismatch"] == "shape" and plan_of(run, "ids")["mismatch"] == "type"
    assert plan_of(run, "same")["action"] == "copy" and plan_of(run, "same")["mismatch"] == ""
    run, found = works(folder, "linear", [first, second], other=OTHER["copy"])
    assert found["ids"].data == files.make("i64", numpy.arange(4)).data and found["w"].shape == (3, 4)
    _, found = works(folder, "linear", [first, second], other=OTHER["skip"])
    assert list(found) == ["same"]
    # a format for results is none for integers
    _, found = works(folder, "linear", [first], sets=["f:-:4"])
    assert found["ids"].kind == "i64" and found["w"].kind == "bf16"


def check_no_numbers(folder):
    """What cannot be computed with is copied whatever its weight, be it alone or equal in all."""
    ids = write(folder, "ids", {"w": ("i64", numpy.arange(4)), "x": ("f32", values(4))})
    header = json.dumps({"w": {"dtype": "Z9", "shape": [4], "data_offsets": [0, 16]}}).encode()
    unknown = folder / "unknown.safetensors"
    unknown.write_bytes(struct.pack("<Q", len(header)) + header + bytes(range(16)))
    for model in (ids, unknown):
        run = files.merge(RUNNER, "linear", folder / "out.safetensors", [model], sets=["w:-:0.5"], flags=1)
        assert run.code == 0 and run.rows()["w"]["action"] == "copy", run.text()
    assert (folder / "out.safetensors").read_bytes()[-16:] == bytes(range(16))
    (folder / "out.safetensors").unlink()
    x = write(folder, "x", {"x": ("f32", values(4, 1))})
    _, found = works(folder, "linear", [x, ids], sets=["w:1:0.5"], missing=MISSING["available"], flags=1)
    assert found["w"].data == files.make("i64", numpy.arange(4)).data
    _, found = works(folder, "linear", [ids, ids], sets=["w:-:0.3"], flags=1)
    assert found["w"].data == files.make("i64", numpy.arange(4)).data
    large = numpy.arange(70_001)
    same, other, first = (write(folder, name, {"w": ("i64", array), "x": ("f32", values(4))}) for name, array in
                          (("same", large), ("other", numpy.append(large[:-1], 0)), ("first", large)))
    for mapped in (0, 1):
        run, _ = works(folder, "linear", [first, same], map=mapped)
        assert run.rows()["w"]["action"] == "copy", run.text()
        refused(folder, "linear", [first, same, other], "which cannot be computed with, and not equal in all", map=mapped)
    run, found = works(folder, "task", [x], base=ids, missing=MISSING["available"], sets=["w:0:0.5"])
    assert run.rows()["w"]["action"] == "copy", run.text()


def check_copies_in_another_format(folder):
    """What is copied by a policy and changes its format is computed, of one input, whatever the method."""
    c = values((3, 4), 3)
    first = write(folder, "first", {"w": ("f32", values(4)), "only": ("f32", c), "s": ("f32", c)})
    second = write(folder, "second", {"w": ("f32", values(4, 1)), "s": ("f32", c.T)})
    for method in ("linear", "slerp", "task", "ties", "dare"):
        models, base = ([first, second], None) if method in ("linear", "slerp") else ([second], first)
        _, found = works(folder, method, models, base=base, missing=MISSING["copy"], other=OTHER["copy"], sets=["f:-:4", "d:-:0.5"])
        for name in ("only", "s"):
            wanted = files.encode("bf16", files.make("f32", c).values())
            assert found[name].kind == "bf16" and found[name].data == wanted, (method, name)


def check_weights_as_they_are(folder):
    a, b = (write(folder, name, {"w": ("f32", numpy.array([1e9, 3.0]))}) for name in "ab")
    _, found = works(folder, "linear", [a, b], sets=["w:-:1e-9"], flags=1)
    x = files.make("f32", numpy.array([1e9, 3.0])).values() * 1e-9
    assert found["w"].data == files.make("f32", x + x).data, found["w"].values()
    _, found = works(folder, "linear", [a], sets=["w:-:0.1"], flags=1)
    assert found["w"].data == files.make("f32", files.make("f32", numpy.array([1e9, 3.0])).values() * 0.1).data


def check_lead(folder):
    """The checkpoint that leads does so whatever its weight, and where it lacks a tensor, the first that has it."""
    lead, one, two = values((4, 8), 1), values((2, 8), 2), values((3, 8), 3)
    models = [write(folder, name, {"emb": ("f32", emb), "ids": ("i64", numpy.arange(3) + i), "s": ("f32", values((2, 3 + i), i))})
              for i, (name, emb) in enumerate((("lead", lead), ("one", one), ("two", two)))]
    run, found = works(folder, "linear", models, sets=["w:0:0"], rows=ROWS["lead"], other=OTHER["copy"])
    assert found["emb"].data == mean(one, two[:2]) + files.make("f32", lead[2:]).data, found["emb"].shape
    assert found["ids"].data == files.make("i64", numpy.arange(3)).data and found["s"].shape == (2, 3), run.text()
    assert run.rows()["emb"]["change_max"] == "", "values of the leading model take no part"
    for order, wanted in (([0, 1], files.make("f32", one).data + files.make("f32", lead[2:]).data),
                          ([1, 0], files.make("f32", lead[:2]).data)):
        _, found = works(folder, "linear", [models[i] for i in order], sets=["w:0:0:emb"], rows=ROWS["lead"], other=OTHER["skip"])
        assert found["emb"].data == wanted, (order, found["emb"].shape)
    _, found = works(folder, "linear", models, sets=["w:0:0"], rows=ROWS["common"], other=OTHER["skip"])
    assert found["emb"].data == mean(one, two[:2])
    bare = write(folder, "bare", {"x": ("f32", values(8))})
    kinds = [write(folder, kind, {"x": ("f32", values(8)), "y": (kind, values(8))}) for kind in ("f32", "bf16")]
    for weights in ((0.7, 0.3), (0.3, 0.7)):
        _, found = works(folder, "linear", [bare, *kinds], sets=[f"w:{i + 1}:{weight}" for i, weight in enumerate(weights)],
                         missing=MISSING["available"])
        assert found["y"].kind == "f32", weights


def check_weightless(folder):
    """What only models without weight have is not of the result, whatever is done with what is missing."""
    a = write(folder, "a", {"w": ("f32", values(4))})
    b = write(folder, "b", {"w": ("f32", values(4, 1)), "only": ("f32", values(3))})
    for policy in MISSING.values():
        for models, base, method, sets in (([a, b], None, "linear", ["w:1:0"]), ([b, a], None, "linear", ["w:0:0"]),
                                           ([a, b], None, "slerp", ["t:-:0"]), ([a, b], a, "task", ["w:1:0"])):
            run, found = works(folder, method, models, base=base, sets=sets, missing=policy)
            assert list(found) == ["w"], list(found)
            row = plan_of(run, "only")
            assert (row["action"], row["mismatch"]) == ("skip", ""), row
            assert "only in b.safetensors, which takes no part" in row["message"], row


def check_blocks_of_scalars(folder):
    """Rows that are scalars may end within a block, of an input too."""
    plain = write(folder, "plain", {"n": ("f32", values(50))})
    blocks = files.write_gguf(folder / "blocks.gguf", {"n": files.make("q8_0", values(64, 1))})
    longer = write(folder, "longer", {"n": ("f32", values(96))})
    for policy in ("common", "lead", "longest"):
        run = refused(folder, "linear", [plain, blocks], "no whole number of blocks", rows=ROWS[policy], sets=["f:-:2"])
        assert plan_of(run, "n")["mismatch"] == "rows"
    for policy, extent in (("common", 64), ("lead", 64), ("longest", 96)):
        _, found = works(folder, "linear", [blocks, longer], rows=ROWS[policy], sets=["f:-:2"])
        assert found["n"].shape == (extent,), (policy, found["n"].shape)


def check_long_names(folder):
    """Texts of rows are whole, so that what differs looks different."""
    names = ["ä" * 100 + str(i) for i in range(9)]
    models = [write(folder, name, {"w": ("f32", values((2, 2), i)), "v": ("f32", values((2, 2), i))}) for i, name in enumerate(names)]
    run, _ = works(folder, "linear", models, sets=["w:8:0:v"])
    for name in "vw":
        found = plan_of(run, name)["models"].split(", ")
        assert sorted(found) == [f"{one}.safetensors" for one in names[:9 if name == "w" else 8]], found
        assert len(plan_of(run, name)["weights"].split(", ")) == len(found)


def check_formats(folder):
    blocks = files.write_gguf(folder / "blocks.gguf", {"w": files.make("q8_0", values((4, 64)))})
    refused(folder, "linear", [blocks, blocks], "safetensors has no such type")
    mixed = files.write_gguf(folder / "mixed.gguf", {name: files.make("q8_0", values((4, 64))) for name in "vw"})
    run = refused(folder, "linear", [mixed, blocks], "2 tensors cannot be written; the first is 'v': q8_0: safetensors has no such type",
                  missing=MISSING["available"])
    assert plan_of(run, "w")["mismatch"] == "format", run.text()
    unnamed = [files.write_gguf(folder / f"unnamed{i}.gguf", {"w\udcff": files.make("f32", values((4, 64), i))}) for i in range(2)]
    run = refused(folder, "linear", unnamed, "its name is not UTF-8")
    assert run.of("problem") and run.of("planned"), run.text()
    run = files.merge(RUNNER, "linear", folder / "out.gguf", unnamed)
    assert run.code == 0, run.text()
    (folder / "out.gguf").unlink()
    odd = write(folder, "odd", {"w": ("f32", values((4, 33)))})
    run = files.merge(RUNNER, "linear", folder / "out.gguf", [odd], sets=[f"f:-:{0x108}"])
    assert run.code == 1 and "its last dimension, 33, is no multiple of the 32 elements of a block" in run.text(), run.text()
    even = write(folder, "even", {"w": ("f32", values((4, 32))), "odd": ("f32", values((4, 33))), "bytes": ("u8", numpy.ones(3))})
    run = files.merge(RUNNER, "linear", folder / "out.gguf", [even], sets=[f"f:-:{0x108}"], other=OTHER["skip"])
    assert run.code == 0 and list(files.read_gguf(folder / "out.gguf")[0]) == ["w"], run.text()
    assert plan_of(run, "bytes")["message"] == "u8: GGUF has no such type, but safetensors has; left out", run.text()
    (folder / "out.gguf").unlink()
    _, found = works(folder, "linear", [blocks, blocks], sets=["f:-:2"])
    assert found["w"].kind == "f32" and numpy.array_equal(found["w"].values(), files.make("q8_0", values((4, 64))).values())
    typed = files.write_gguf(folder / "typed.gguf", {"w": files.make("f32", values((4, 64)))}, {"general.file_type": "0"})
    run = files.merge(RUNNER, "linear", folder / "out.gguf", [typed], sets=["f:-:3"])
    assert run.code == 0 and "general.file_type among the metadata" in run.text(), run.text()
    fails(folder, "linear", [odd], "results can be of any float format", sets=["f:-:24"])
    fails(folder, "linear", [odd], "results can be of any float format", sets=[f"f:-:{0x10c}"])


# ---- what cannot be ----

def check_arguments(folder):
    a = write(folder, "a", {"model.layers.0.weight": ("f32", values((3, 4), 1)), "model.norm": ("f32", values(4, 1))})
    b = write(folder, "b", {"model.layers.0.weight": ("f32", values((3, 4), 2)), "model.norm": ("f32", values(4, 2))})
    other = write(folder, "other", {"encoder.weight": ("f32", values((3, 4)))})
    run = fails(folder, "linear", [a, b], "no tensor matches 'model.layer.0.weight'", sets=["w:0:2:model.layer.0.weight"])
    assert "did you mean 'model.layers.0.weight'?" in run.text()
    for rule, message in (("w:0:nan", "a weight must be a finite number"), ("w:0:inf", "a weight must be a finite number"),
                          ("d:0:0", "a density of 0; it must be above 0 and at most 1"), ("d:-:1.5", "a density of 1.5"),
                          ("d:0:nan", "a density of"), ("t:-:-0.1", "a t of -0.1; it must be from 0 to 1"), ("t:-:nan", "a t of"),
                          ("s:-:inf", "a scale must be a finite number"), ("w:2:1", "a rule for a model that is not there"),
                          ("t:1:0.5", "what is set is of no model"), ("f:1:2", "what is set is of no model"),
                          ("w:0:nan:model.norm", "(for 'model.norm')")):
        fails(folder, "linear", [a, b], message, sets=[rule])
    fails(folder, "linear", [a, b], "the weights sum to 0", sets=["w:0:1", "w:1:-1"])
    fails(folder, "linear", [a, b], "tensor 'model.norm': the weights sum to 0", sets=["w:0:1:model.norm", "w:1:-1:model.norm"])
    fails(folder, "linear", [a, b], "tensor 'model.layers.0.weight': all models have a weight of 0", sets=["w:-:0"])
    fails(folder, "linear", [a, b], "the weights sum to 0 (or nearly", sets=["w:0:1e9", "w:1:-999999999"])
    run, found = works(folder, "linear", [a, b], sets=["w:0:1e-12"])
    assert "the weight of a.safetensors is too small" in plan_of(run, "model.norm")["message"], run.text()
    assert found["model.norm"].data == files.make("f32", values(4, 2)).data
    fails(folder, "linear", [a, b], "or to infinity", sets=["w:-:1.5e308"])
    fails(folder, "task", [b], "is no finite number", base=a, sets=["w:-:1e300", "s:-:1e300"])
    _, found = works(folder, "linear", [a, b], sets=["w:0:1", "w:1:-1"], flags=1)
    wanted = files.make("f32", values(4, 1)).values() - files.make("f32", values(4, 2)).values()
    assert found["model.norm"].data == files.make("f32", wanted).data, "weights as they are"
    fails(folder, "linear", [a, other], "have no tensor of the same name")
    fails(folder, "slerp", [a], "slerp is between two models")
    fails(folder, "slerp", [a, b, b], "slerp is between two models")
    fails(folder, "task", [a, b], "adds up differences from a base, and none is given")
    fails(folder, "linear", [a, b], "a base is given", base=a)
    fails(folder, "linear", [], "0 models")
    fails(folder, "linear", [a] * 14, "14 models, expected 1 to 13")
    fails(folder, "nothing", [a, b], "there is no method 0")
    fails(folder, "linear", [a, b], "policy", missing=9)
    fails(folder, "linear", [a, folder / "missing.safetensors"], "cannot be opened")


def check_targets(folder):
    a, b = write(folder, "a", {"w": ("f32", values((3, 4), 1))}), write(folder, "b", {"w": ("f32", values((3, 4), 2))})
    fails(folder, "linear", [a, b], "is an input too", out=a)
    (folder / "link.safetensors").symlink_to(b)
    fails(folder, "linear", [a, b], "is an input too", out=folder / "link.safetensors")
    os.link(a, folder / "hard.safetensors")
    fails(folder, "linear", [a, b], "is an input too", out=folder / "hard.safetensors")
    fails(folder, "task", [b], "is an input too", out=a, base=a)
    fails(folder, "linear", [a, b], "No such file or directory", out=folder / "nowhere" / "out.safetensors")
    (folder / "folder").mkdir()
    fails(folder, "linear", [a, b], "folder", out=folder / "folder")
    with tempfile.TemporaryDirectory(dir="/dev/shm" if os.path.isdir("/dev/shm") else None) as elsewhere:
        out = pathlib.Path(elsewhere) / "out.safetensors"
        tensors, _ = files.merged(RUNNER, "linear", out, [a, b])
        assert tensors["w"].data == mean(values((3, 4), 1), values((3, 4), 2)), "on another file system"


def check_sets(folder):
    shapes = {f"layer.{i}": ("f32", values((16, 32), i)) for i in range(6)}
    a = write(folder, "a", shapes)
    b = write(folder, "b", {name: (kind, array + 1) for name, (kind, array) in shapes.items()})
    single, metadata = files.merged(RUNNER, "linear", folder / "one.safetensors", [a, b])
    run = files.merge(RUNNER, "linear", folder / "set.safetensors", [a, b], shard=6000)
    assert run.code == 0 and run.of("plan")[0][8] == "files=4", run.text()
    parts = {}
    for path in sorted(folder.glob("set-*.safetensors")):
        tensors, own = files.read_safetensors(path)
        record = json.loads(own["tensormorph.merge"])
        assert record.pop("shard_size") == 6000, record
        assert record == json.loads(metadata["tensormorph.merge"]) and own.keys() == metadata.keys(), "every shard says how it was made"
        parts.update(tensors)
    assert parts == single
    again, _ = files.merged(RUNNER, "linear", folder / "again.safetensors", [folder / "set.safetensors.index.json", a], sets=["w:1:0"])
    assert again == single, "a set as an input"


# ---- what goes wrong ----

def check_little_memory(folder):
    a, b = (write(folder, name, {"w": ("f32", values((64, 1024), i))}) for i, name in enumerate("ab"))
    refused(folder, "linear", [a, b], "memory: the merge takes", memory=1_100_000)
    # a plan that is accepted is carried out, also where much is copied from files that are not mapped
    large = {f"t{i}": ("i64", numpy.arange(200_000) + i) for i in range(2)}
    mixed = write(folder, "mixed", {**large, "w": ("f32", values((64, 1024))), "bytes": ("u8", numpy.ones(50_000))})
    for method, models in (("linear", [mixed]), ("linear", [mixed, mixed]), ("linear", [mixed, write(folder, "same", {**large,
                           "w": ("f32", values((64, 1024), 1)), "bytes": ("u8", numpy.ones(50_000))})])):
        codes = set()
        for memory in range(1_000_000, 5_000_000, 250_000):
            run = files.merge(RUNNER, method, folder / "out.safetensors", models, memory=memory)
            codes.add(run.code)
            assert run.code == 0 or (run.code == 1 and "memory: the merge takes" in run.text()), (memory, run.text())
            if run.code == 0:
                assert int(dict(cell.split("=") for cell in run.of("end")[0])["peak"]) <= memory
        assert codes == {0, 1}, codes


def check_nonfinite(folder):
    array = values((8, 8))
    array[1, 2], array[3, 3] = numpy.nan, numpy.inf
    a, b = write(folder, "a", {"w": ("f32", array)}), write(folder, "b", {"w": ("f32", values((8, 8), 1))})
    run, found = works(folder, "linear", [a, b])
    assert numpy.isnan(found["w"].values()[1, 2]) and numpy.isinf(found["w"].values()[3, 3])
    assert "2 elements in 1 tensor are NaN or infinite" in run.text(), run.text()
    large = write(folder, "large", {"w": ("f32", numpy.full((8, 8), 3e38))})
    run, _ = works(folder, "linear", [large, large, b], sets=["f:-:3"])
    assert "64 elements in 1 tensor are NaN or infinite" in run.text(), run.text()
    for lead, sets in ((b, ["w:0:0"]), (write(folder, "bare", {"v": ("f32", values(3))}), [])):
        large = write(folder, "large", {"w": ("f32", numpy.full((8, 8), 3e38)), "v": ("f32", values(3))})
        other = write(folder, "other", {"w": ("f32", numpy.full((8, 8), 2e38)), "v": ("f32", values(3))})
        run, _ = works(folder, "linear", [lead, large, other], sets=["f:-:3", *sets], missing=MISSING["available"])
        assert "64 elements in 1 tensor are NaN or infinite" in run.text(), run.text()
        assert run.rows()["w"]["change_rel"] == "", "there is nothing to compare with"


def nans(kind, count):
    """Signalling and quiet ones, of both signs and with all sorts of payloads, and some numbers."""
    word, exponent = {"f32": (numpy.uint32, 0x7F800000), "f16": (numpy.uint16, 0x7C00), "bf16": (numpy.uint16, 0x7F80),
                      "f64": (numpy.uint64, 0x7FF0000000000000)}[kind]
    generator = numpy.random.default_rng(9)
    bits = generator.integers(1, 64, count, numpy.uint64) | numpy.uint64(exponent)
    bits |= generator.integers(0, 2, count, numpy.uint64) << numpy.uint64(8 * word().itemsize - 1)
    bits[::3] = numpy.frombuffer(files.encode(kind, values(len(bits[::3]))), word)
    return bits.astype(word), word


def check_nans(folder):
    one = {"f32": 0x7FC00000, "f16": 0x7E00, "bf16": 0x7FC0, "f64": 0x7FF8000000000000}
    for kind, quiet in one.items():
        bits, word = nans(kind, 40_000)
        base = files.write_safetensors(folder / "base.safetensors", {"w": files.Tensor(kind, (40_000,), bits.tobytes())})
        a, b = (write(folder, name, {"w": (kind, values(40_000, i))}) for i, name in enumerate("ab"))
        noisy = files.write_safetensors(folder / "noisy.safetensors", {"w": files.Tensor(kind, (40_000,), numpy.roll(bits, 1).tobytes())})
        for method, models, keys in (("dare", [a, noisy], {"base": base, "sets": ["d:-:0.3"]}), ("task", [a, b], {"base": base}),
                                     ("ties", [a, noisy], {"base": base, "sets": ["d:-:0.3"]}), ("linear", [base, noisy], {}),
                                     ("linear", [base, noisy], {"sets": ["f:-:2"]}), ("linear", [a, noisy], {}),
                                     ("linear", [a, noisy, base], {})):
            found = set()
            for way in ({"threads": 1}, {"threads": 2}, {"only": "reference"}, {"threads": 1, "memory": 8_000_000}):
                _, tensors = works(folder, method, models, **keys, **way)
                found.add(tensors["w"].data)
            assert len(found) == 1, (kind, method, "the bits of NaN depend on who computes")
            made = numpy.frombuffer(found.pop(), word if "f:-:2" not in keys.get("sets", ()) else numpy.uint32)
            exponent, nan = (0x7F800000, one["f32"]) if "f:-:2" in keys.get("sets", ()) else (quiet & (quiet << 1), quiet)
            magnitudes = made & made.dtype.type(~(1 << 8 * made.itemsize - 1) & (1 << 8 * made.itemsize) - 1)
            are_nan = magnitudes > made.dtype.type(exponent)
            assert are_nan.any() and (made[are_nan] == nan).all(), (kind, method)
        _, tensors = works(folder, "linear", [base])
        assert tensors["w"].data == bits.tobytes(), "a copy keeps all bits"
        found = set()           # in the scale of a block, too
        for way in ({"threads": 1}, {"only": "reference"}):
            run = files.merge(RUNNER, "linear", folder / "out.gguf", [base, noisy], sets=[f"f:-:{0x108}"], **way)
            assert run.code == 0, run.text()
            found.add(files.read_gguf(folder / "out.gguf")[0]["w"].data)
        scales = numpy.frombuffer(found.pop(), numpy.uint16).reshape(-1, 17)[:, 0]
        assert not found and set(scales[(scales & 0x7fff) > 0x7c00]) == {0x7e00}, (kind, "blocks of NaN")
        (folder / "out.gguf").unlink()


def check_small_ties(folder):
    """Thresholds of small tensors are found on the way, those of large ones by passes of their own: a tensor and thrice the same."""
    for kind in ("f32", "bf16", "f64"):
        models = []
        for seed in range(3):
            tensors = {}
            for count in (2, 30, 1024, 8192):
                array = numpy.round(values(count, seed + count) * 64) / 64      # many that are equal
                if count > 30:
                    array[:5] = numpy.nan, numpy.inf, -numpy.inf, 0, -0.0
                tensors[f"small.{count}"], tensors[f"large.{count}"] = (kind, array), (kind, numpy.tile(array, 12288 // count * 3))
            models.append(write(folder, f"ties.{seed}", tensors))
        run, found = works(folder, "ties", models[1:], base=models[0], sets=["d:-:0.5"])
        for count in (2, 30, 1024, 8192):
            times = 12288 // count * 3
            assert found[f"large.{count}"].data == found[f"small.{count}"].data * times, (kind, count)
        for path in models:
            tensors, _ = files.read_safetensors(path)
            files.write_safetensors(path, {name: tensor for name, tensor in tensors.items() if name.startswith("small")})
        totals = {density: dict(cell.split("=") for cell in works(folder, "ties", models[1:], base=models[0],
                                sets=[f"d:-:{density}"])[0].of("end")[0])["total"] for density in (0.5, 1)}
        assert totals[0.5] == totals[1], "small tensors are read once"


def check_file_limit(folder):
    a, b = (write(folder, name, {"w": ("f32", values((64, 1024), i))}) for i, name in enumerate("ab"))
    before = sorted(path.name for path in folder.iterdir())
    result = subprocess.run([RUNNER, "linear", folder / "out.safetensors", "model", a, "model", b], capture_output=True, text=True,
                            timeout=60, restore_signals=False, check=False,
                            preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000)))
    assert result.returncode == 3 and "error\tinput/output error" in result.stdout, result.stdout
    assert sorted(path.name for path in folder.iterdir()) == before, "a merge without room left something"


def check_truncated(folder):
    a, b = (write(folder, name, {"w": ("f32", values((64, 1024), i))}) for i, name in enumerate("ab"))
    b.write_bytes(b.read_bytes()[:-100])
    fails(folder, "linear", [a, b], "corrupt")


def main():
    checks = [check_missing, check_rows, check_shapes_and_types, check_no_numbers, check_copies_in_another_format,
              check_weights_as_they_are, check_lead, check_weightless, check_blocks_of_scalars, check_long_names, check_formats,
              check_arguments, check_targets, check_sets, check_little_memory, check_nonfinite, check_nans, check_small_ties,
              check_file_limit, check_truncated]
    for check in checks:
        with files.folder() as folder:
            check(pathlib.Path(folder))
        print(f"{check.__name__}: as it should be")
    return 0


if __name__ == "__main__":
    sys.exit(main())
