# SPDX-License-Identifier: Apache-2.0
"""Merges against numpy, bit for bit:  merges_numpy.py RUNNER

Everything is computed in float64, in the order and with the factors that merge.h states, and rounded once.
"""
import itertools
import json
import math
import pathlib
import sys

try:
    import numpy
    import gguf  # noqa: F401  read_gguf wants it
except ImportError as missing:
    print(f"skipped: {missing} (scripts/make-venv)")
    sys.exit(77)

import merge_files as files

RUNNER = sys.argv[1]
UNIT = 2.0 ** 28
SHAPES = {"wide": (130, 64), "long": (1100, 96), "bias": (32,), "one": (1, 32), "none": (0, 32)}


def rounded(weight):
    return numpy.rint(weight * UNIT) / UNIT


def normalized(weights, on_grid=True):
    """Values of more than 24 bits have no use for the grid."""
    total = 0.0
    for weight in weights:
        total += weight
    if not on_grid:
        return [weight / total for weight in weights]
    units = [rounded(weight / total) for weight in weights]
    units[units.index(max(units))] += 1 - sum(units)
    return units


def weighted_sum(values, weights):
    result = values[0] * weights[0]
    for value, weight in zip(values[1:], weights[1:]):
        result = result + value * weight
    return result


def difference(x, base):
    return numpy.where(x == base, 0.0, x - base)


# ---- made models ----

def made(seed, kind, scale=1.0, shapes=None):
    generator = numpy.random.default_rng(seed)
    return {name: files.make(kind, generator.standard_normal(shape) * scale) for name, shape in (shapes or SHAPES).items()}


def write(folder, name, tensors):
    is_gguf = any(tensor.kind.startswith("q") for tensor in tensors.values())
    return (files.write_gguf(folder / f"{name}.gguf", tensors) if is_gguf
            else files.write_safetensors(folder / f"{name}.safetensors", tensors, {"made_by": "a test"}))


def same(found, wanted, what):
    assert list(found) == list(wanted), (what, list(found), list(wanted))
    for name, tensor in wanted.items():
        assert found[name].kind == tensor.kind and found[name].shape == tensor.shape, (what, name, found[name].kind, found[name].shape)
        if found[name].data == tensor.data:
            continue
        a, b = found[name].values().ravel(), tensor.values().ravel()
        differ = numpy.flatnonzero((a != b) & ~(numpy.isnan(a) & numpy.isnan(b)))
        if len(differ) == 0:
            continue
        raise AssertionError(f"{what}, {name}: {len(differ)} of {a.size} differ, the first at {differ[0]}: {a[differ[0]]!r}, "
                             f"expected {b[differ[0]]!r}")


def result(kinds, function, *models):
    """function over the values of tensors of one name, in the format of the first."""
    return {name: files.make(kinds or tensor.kind, function(name, *(model[name].values() for model in models)))
            for name, tensor in models[0].items()}


# ---- methods ----

def check_linear(folder):
    for number, kinds in enumerate([("f32", "f32"), ("bf16", "bf16", "bf16"), ("f16", "f32"), ("f32", "bf16", "f16"), ("f64", "f32"),
                                    ("q8_0", "q8_0"), ("f32", "q8_0")]):
        models = [made(10 * number + i, kind) for i, kind in enumerate(kinds)]
        if kinds[0] == "f32" and "q8_0" in kinds:
            models[0] = {name: tensor for name, tensor in models[0].items()}
        paths = [write(folder, f"linear{number}.{i}", model) for i, model in enumerate(models)]
        weights = [0.5, 0.2, 0.9][:len(models)]
        order = sorted(range(len(models)), key=lambda i: (weights[i], str(paths[i])))
        factors = normalized([weights[i] for i in order], "f64" not in kinds)
        out = folder / f"linear{number}.out{'.gguf' if kinds[0] == 'q8_0' else '.safetensors'}"
        sets = [f"w:{i}:{weight}" for i, weight in enumerate(weights)]
        found, metadata = files.merged(RUNNER, "linear", out, paths, sets=sets)
        same(found, result(None, lambda _, *x: weighted_sum([x[i] for i in order], factors), *models), f"linear of {kinds}")
        recipe = json.loads(metadata["tensormorph.merge"])
        assert recipe["method"] == "linear" and [m["weight"] for m in recipe["models"]] == weights, recipe
        assert all(int(m["hash"], 16) != 0 for m in recipe["models"]), recipe
        for permuted in itertools.islice(itertools.permutations(range(len(models))), 1, 4):
            again = folder / f"again{out.suffix}"
            sets = [f"w:{place}:{weights[i]}" for place, i in enumerate(permuted)]
            if kinds[permuted[0]] != kinds[0]:
                sets.append(f"f:-:{ {'f32': 2, 'f16': 3, 'bf16': 4, 'f64': 1, 'q8_0': 0x108}[kinds[0]]}")
            other, _ = files.merged(RUNNER, "linear", again, [paths[i] for i in permuted], sets=sets)
            same(other, found, f"linear of {kinds}, in the order {permuted}")


def check_equal_weights(folder):
    """Neither folders, nor names, nor ways to write them, nor the order matter: 1e20 - 1e20 + 1 is not 1e20 + 1 - 1e20."""
    contents = [numpy.full((4, 32), value) for value in (1e20, 1.0, -1e20)]
    # the same in all samples, so that only the whole tells one from the other
    near = [numpy.zeros((200, 64)) for _ in range(3)]
    for number, array in enumerate(near):
        array[40, number] = (1e20, 1.0, -1e20)[number]
        array[50, 1] = (1e20, 1.0, -1e20)[number]
    for case, arrays in (("far", contents), ("near", near)):
        results = set()
        for turn, names in enumerate((("a", "b", "c"), ("c", "a", "b"), ("z/m", "y/m", "x/m"), ("x/m", "../equal/z/m", "y/m"))):
            own = folder / case / str(turn) / "equal"
            paths = []
            for name, array in zip(names, arrays):
                path = own / f"{name}.safetensors"
                path.parent.mkdir(parents=True, exist_ok=True)
                paths.append(files.write_safetensors(path, {"w": files.make("f32", array)}))
            for order in itertools.islice(itertools.permutations(range(3)), 6 if turn == 0 else 1):
                found, metadata = files.merged(RUNNER, "linear", own / "out.safetensors", [paths[i] for i in order])
                results.add(found["w"].data)
                recorded = [model["path"] for model in json.loads(metadata["tensormorph.merge"])["models"]]
                assert len(set(recorded)) == 3, recorded
        assert len(results) == 1, f"{case}: {len(results)} results of equal weights"


def recorded_hashes(metadata):
    record = json.loads(metadata["tensormorph.merge"])
    return [model["hash"] for model in record["models"]]


def check_hashes(folder):
    """One checkpoint has one hash, however often it is named."""
    paths = [write(folder, f"hashes.{i}", made(90 + i, "f32")) for i in range(3)]
    out = folder / "hashes.out.safetensors"
    alone = recorded_hashes(files.merged(RUNNER, "linear", out, [paths[0], paths[1]])[1])
    twice = recorded_hashes(files.merged(RUNNER, "linear", out, [paths[0], paths[1], paths[0]])[1])
    assert twice == [alone[0], alone[1], alone[0]], (alone, twice)
    twice = recorded_hashes(files.merged(RUNNER, "ties", out, [paths[0], paths[1], paths[0]], base=paths[2], sets=["d:0:0.3"])[1])
    assert twice == [alone[0], alone[1], alone[0]], (alone, twice)
    # further rows that are taken over: they begin within a piece, or with one, or are all there are
    for case, (few, many, kinds) in enumerate(((3001, 9400, ("f32", "bf16")), (4096, 9000, ("f64", "f16")), (1, 7, ("bf16", "f64")),
                                               (0, 4100, ("f16", "f32")), (1111, 2222, ("q8_0", "q8_0")))):
        models = [write(folder, f"rows{case}.{i}", {"x": files.make(kind, numpy.random.default_rng(i).standard_normal((rows, 32)))})
                  for i, (kind, rows) in enumerate(zip(kinds, (few, many)))]
        whole = recorded_hashes(files.merged(RUNNER, "linear", out, [models[1]], sets=["f:-:2"])[1])
        for number, keys in enumerate(({}, {"map": 1}, {"memory": 4 << 20, "threads": 1})):
            for order in (models, models[::-1])[number % 2:]:
                hashes = recorded_hashes(files.merged(RUNNER, "linear", out, order, rows=3, sets=["f:-:2"], **keys)[1])
                assert hashes[order.index(models[1])] == whole[0], (case, keys, hashes, whole)


def check_equal_inputs(folder):
    for kind in ("f32", "bf16", "f16"):
        model = made(77, kind)
        paths = [write(folder, f"equal.{kind}.{i}", model) for i in range(5)]
        for count, weights in ((3, [1, 1, 1]), (5, [0.1, 0.3, 7, 0.2, 1e-3]), (2, [0.3, 0.7])):
            sets = [f"w:{i}:{weight}" for i, weight in enumerate(weights)]
            found, _ = files.merged(RUNNER, "linear", folder / "equal.out.safetensors", paths[:count], sets=sets)
            assert all(found[name].data == model[name].data for name in model), f"{count} equal {kind} models are not what each is"
        for t in (0, 0.25, 1):
            found, _ = files.merged(RUNNER, "slerp", folder / "equal.out.safetensors", paths[:2], sets=[f"t:-:{t}"])
            assert all(found[name].data == model[name].data for name in model), f"slerp of {kind} with itself at {t}"
        for method in ("task", "ties", "dare") if kind != "f16" else ():
            found, _ = files.merged(RUNNER, method, folder / "equal.out.safetensors", paths[1:3], base=paths[0], sets=["d:-:0.4", "s:-:1.7"])
            assert all(found[name].data == model[name].data for name in model), f"{method} of the base itself, {kind}"
    found, metadata = files.merged(RUNNER, "linear", folder / "equal.out.safetensors", [paths[0], paths[0]])
    assert all(found[name].data == model[name].data for name in model), "a model with itself"
    _, computed = files.merged(RUNNER, "linear", folder / "equal.out.safetensors", paths[:2])
    hashes = [json.loads(one["tensormorph.merge"])["models"][0]["hash"] for one in (metadata, computed)]
    assert hashes[0] == hashes[1], "the hash of a model depends on what is done with it"


def every_value(kind):
    """All bits that are no NaN, or many of them, among these those that are easily missed: zeros, infinities, subnormals."""
    if kind in ("f32", "f64"):
        bits, real = (numpy.uint32, numpy.float32) if kind == "f32" else (numpy.uint64, numpy.float64)
        drawn = numpy.random.default_rng(4).integers(0, numpy.iinfo(bits).max, 70_000, bits).view(real)
        tiny, near = numpy.arange(1999, dtype=bits).view(real), numpy.array([1], real).view(bits) + numpy.arange(999, dtype=bits)
        special = numpy.array([-0.0, math.inf, -math.inf, numpy.finfo(real).max, numpy.finfo(real).min], real)
        data = numpy.concatenate([drawn, tiny, near.view(real), special])
        data = data[~numpy.isnan(data)]
    elif kind in ("f16", "bf16"):
        data = numpy.arange(65536, dtype=numpy.uint16)
        data = data[(data & 0x7fff) <= (0x7c00 if kind == "f16" else 0x7f80)]
    else:
        data = numpy.arange(256, dtype=numpy.uint8)
        data = data[(data & 0x7f) <= (0x7e if kind == "f8_e4m3" else 0x7c)]
    return files.Tensor(kind, data.shape, data.tobytes())


def check_laws(folder):
    """lerp(A, A, t) = A, slerp(A, A, t) = A, t = 0 gives A, t = 1 gives B: for all floats, bit for bit."""
    out = folder / "out.safetensors"
    for kind in ("f64", "f32", "f16", "bf16", "f8_e4m3", "f8_e5m2"):
        a = {"x": every_value(kind)}
        size = files.SIZES[files.SAFETENSORS[kind]]
        b = {"x": files.Tensor(kind, a["x"].shape, a["x"].data[size:] + a["x"].data[:size])}
        one, same, other = (files.write_safetensors(folder / f"{name}.safetensors", tensors) for name, tensors in
                            (("one", a), ("same", a), ("other", b)))
        for weights in ((0.3, 0.7), (1e-9, 1), (2, -1)):
            found, _ = files.merged(RUNNER, "linear", out, [one, same], sets=[f"w:{i}:{weight}" for i, weight in enumerate(weights)])
            assert found["x"].data == a["x"].data, f"{kind} with itself, weights {weights}"
        found, _ = files.merged(RUNNER, "slerp", out, [one, same], sets=["t:-:0.1"])
        assert found["x"].data == a["x"].data, f"slerp of {kind} with itself"
        for t, end in ((0, a), (1, b)):
            found, _ = files.merged(RUNNER, "slerp", out, [one, other], sets=[f"t:-:{t}"])
            assert found["x"].data == end["x"].data, f"slerp of {kind} at {t}"
            found, _ = files.merged(RUNNER, "linear", out, [one, other], sets=[f"w:0:{1 - t}", f"w:1:{t}"])
            assert found["x"].data == end["x"].data, f"linear of {kind} at {t}"


def check_wide_mixtures(folder):
    """Where one of several is f64, what all have alike is rounded once, and weights have all their digits."""
    narrow = numpy.random.default_rng(8).standard_normal(40_000).astype(numpy.float32).astype(float)
    wide = numpy.random.default_rng(9).standard_normal(40_000)
    paths = [write(folder, name, {"x": files.make(kind, values)}) for name, kind, values in
             (("f32", "f32", narrow), ("f64", "f64", narrow), ("a", "f64", wide), ("b", "f64", wide), ("c", "f64", wide[::-1]))]
    for models, wanted in ((paths[:2], files.make("f32", narrow)), (paths[1::-1], files.make("f64", narrow))):
        found, _ = files.merged(RUNNER, "linear", folder / "out.safetensors", models, sets=["w:0:0.3", "w:1:0.7"])
        assert found["x"].data == wanted.data, wanted.kind
    found, _ = files.merged(RUNNER, "linear", folder / "out.safetensors", paths[2:4], sets=["w:0:0.3", "w:1:0.7", "f:-:2"])
    assert found["x"].data == files.make("f32", wide).data
    found, _ = files.merged(RUNNER, "linear", folder / "out.safetensors", [paths[2], paths[4]], sets=["w:0:0.3", "w:1:0.7"])
    assert numpy.all(numpy.abs(found["x"].values() - (0.3 * wide + 0.7 * wide[::-1])) <= 1e-15 * (abs(wide) + abs(wide[::-1])))


def slerp(a, b, t):
    squares = math.fsum((a * a).ravel()), math.fsum((b * b).ravel())
    cosine = math.fsum((a * b).ravel()) / (math.sqrt(squares[0]) * math.sqrt(squares[1])) if squares[0] and squares[1] else math.nan
    if abs(cosine) <= 0.9995:
        angle = math.acos(cosine)
        return weighted_sum([a, b], [math.sin((1 - t) * angle) / math.sin(angle), math.sin(t * angle) / math.sin(angle)])
    return weighted_sum([a, b], [1 - rounded(t), rounded(t)])


def check_slerp(folder):
    for kind in ("f32", "bf16"):
        a, b = made(1, kind), made(2, kind, 3.0)
        b["wide"] = files.make(kind, a["wide"].values() * 1.25)         # parallel
        b["one"] = files.make(kind, numpy.zeros((1, 32)))               # without a direction
        paths = write(folder, "slerp.a", a), write(folder, "slerp.b", b)
        for t in (0.1, 0.5, 0.75):
            found, _ = files.merged(RUNNER, "slerp", folder / "slerp.out.safetensors", paths, sets=[f"t:-:{t}"])
            same(found, result(None, lambda _, x, y, t=t: slerp(x, y, t), a, b), f"slerp of {kind} at {t}")
        for t, end in ((0, a), (1, b)):
            found, _ = files.merged(RUNNER, "slerp", folder / "slerp.out.safetensors", paths, sets=[f"t:-:{t}"])
            assert all(found[name].data == end[name].data for name in end), f"slerp of {kind} at {t}"


def task(base, models, weights, scale):
    y = base
    for model, weight in zip(models, weights):
        d = difference(model, base)
        y = numpy.where(d == 0, y, y + (weight * scale) * d)
    return y


def check_task(folder):
    for kind in ("f32", "bf16", "q8_0"):
        base, models = made(20, kind), [made(21 + i, kind, 1.0 + i) for i in range(3)]
        suffix = ".gguf" if kind == "q8_0" else ".safetensors"
        paths = [write(folder, f"task.{i}", model) for i, model in enumerate([base, *models])]
        weights = [0.7, -0.25, 1.1]
        order = sorted(range(3), key=lambda i: weights[i])
        sets = [f"w:{i}:{weight}" for i, weight in enumerate(weights)] + ["s:-:0.8"]
        found, _ = files.merged(RUNNER, "task", folder / f"task.out{suffix}", paths[1:], base=paths[0], sets=sets)
        wanted = result(None, lambda _, b, *x, order=order: task(b, [x[i] for i in order], [weights[i] for i in order], 0.8), base, *models)
        same(found, wanted, f"task of {kind}")
        dare, _ = files.merged(RUNNER, "dare", folder / f"dare.out{suffix}", paths[1:], base=paths[0], sets=sets + ["d:-:1"])
        same(dare, found, "dare with a density of 1")
        nothing, _ = files.merged(RUNNER, "task", folder / f"task.out{suffix}", paths[1:], base=paths[0], sets=["s:-:0"])
        same(nothing, base, "task with a scale of 0")


def threshold(d, density):
    magnitudes = numpy.sort(numpy.abs(d.astype(numpy.float32)).ravel())[::-1]
    if density == 1 or magnitudes.size == 0:
        return 0.0
    kept = max(1, math.ceil(density * magnitudes.size * (1 - 2.0 ** -50)))
    return float(magnitudes[kept - 1])


def ties(base, models, weights, densities, scale, is_sum):
    products, weight_sum, total = [], 0, 0
    for model, weight, density in zip(models, weights, densities):
        d = difference(model, base)
        d = numpy.where(numpy.abs(d.astype(numpy.float32)).astype(numpy.float64) < threshold(d, density), 0.0, d)
        products.append(weight * d)
    elected = products[0]
    for product in products[1:]:
        elected = elected + product
    for product, weight in zip(products, weights):
        agrees = (product != 0) & ((product > 0) == (elected > 0))
        total = total + numpy.where(agrees, product, 0.0)
        weight_sum = weight_sum + numpy.where(agrees, abs(weight), 0.0)
    with numpy.errstate(invalid="ignore", divide="ignore"):
        mean = total if is_sum else total / weight_sum
    return numpy.where(elected == 0, base, base + scale * mean)


def check_ties(folder):
    for kind in ("f32", "bf16"):
        base, models = made(30, kind), [made(31 + i, kind) for i in range(3)]
        paths = [write(folder, f"ties.{i}", model) for i, model in enumerate([base, *models])]
        weights, densities = [0.7, 0.25, 1.1], [0.3, 1, 0.55]
        order = sorted(range(3), key=lambda i: weights[i])
        sets = [f"w:{i}:{weight}" for i, weight in enumerate(weights)] + [f"d:{i}:{density}" for i, density in enumerate(densities)]
        for flags in (0, 4):
            found, _ = files.merged(RUNNER, "ties", folder / "ties.out.safetensors", paths[1:], base=paths[0], sets=sets + ["s:-:0.9"],
                                    flags=flags)
            pick = lambda items, order=order: [items[i] for i in order]
            wanted = result(None, lambda _, b, *x, flags=flags: ties(b, pick(x), pick(weights), pick(densities), 0.9, flags != 0), base,
                            *models)
            same(found, wanted, f"ties of {kind}, flags {flags}")


# ---- the masks of dare, by the published definitions alone ----

def philox(counter, key):
    """Philox4x32-10: four words, each an array or a number, and two words of key; lowest words first."""
    x, low = [numpy.asarray(word, numpy.uint64) for word in counter], numpy.uint64(0xffffffff)
    k = [numpy.uint64(word) for word in key]
    for _ in range(10):
        a, b = x[0] * numpy.uint64(0xd2511f53), x[2] * numpy.uint64(0xcd9e8d57)
        x = [(b >> numpy.uint64(32)) ^ x[1] ^ k[0], b & low, (a >> numpy.uint64(32)) ^ x[3] ^ k[1], a & low]
        k = [(k[0] + numpy.uint64(0x9e3779b9)) & low, (k[1] + numpy.uint64(0xbb67ae85)) & low]
    return x


def xxh3(data, seed):
    """XXH3 of 64 bits of 4 to 8 bytes."""
    def bits(number):
        return number & (1 << 64) - 1
    length, prime = len(data), 0x9fb21c651e98df25
    secret = (int.from_bytes(bytes.fromhex("7c01812cf721ad1c"), "little") ^ int.from_bytes(bytes.fromhex("ded46de9839097db"), "little"))
    seed ^= int.from_bytes((seed & 0xffffffff).to_bytes(4, "little"), "big") << 32
    mixed = (int.from_bytes(data[-4:], "little") + (int.from_bytes(data[:4], "little") << 32)) ^ bits(secret - seed)
    mixed ^= bits(mixed << 49 | mixed >> 15) ^ bits(mixed << 24 | mixed >> 40)
    mixed = bits(mixed * prime)
    mixed = bits((mixed ^ (mixed >> 35) + length) * prime)
    return mixed ^ mixed >> 28


def dare_mask(shape, seed, name, place, density):
    key = xxh3(name.encode(), xxh3(place.to_bytes(4, "little"), seed))
    elements = numpy.arange(math.prod(shape), dtype=numpy.uint64)
    counter, nothing = elements >> numpy.uint64(2), numpy.zeros_like(elements)
    words = numpy.stack(philox((counter & numpy.uint64(0xffffffff), counter >> numpy.uint64(32), nothing, nothing),
                               (key & 0xffffffff, key >> 32)))
    chosen = words[(elements & numpy.uint64(3)).astype(int), elements.astype(int)]
    return (chosen < math.floor(density * 2.0 ** 32)).reshape(shape)


def check_generator(_):
    """The known answers that the authors of Philox publish."""
    for counter, key, words in (([0] * 4, [0] * 2, [0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8]),
                                ([0xffffffff] * 4, [0xffffffff] * 2, [0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd]),
                                ([0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344], [0xa4093822, 0x299f31d0],
                                 [0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1])):
        assert [int(word) for word in philox(counter, key)] == words, (counter, key)


def check_dare_masks(folder):
    shapes = {"large": (700, 96), "w.123": (5, 32), "lm.head": (67, 1)}
    base, models = made(43, "f32", shapes=shapes), [made(44 + i, "f32", shapes=shapes) for i in range(3)]
    paths = [write(folder, f"masks.{i}", tensors) for i, tensors in enumerate([base, *models])]
    weights, densities, scale = [0.7, 0.25, 1.1], [0.3, 0.5, 1 / 3], 0.8
    order = sorted(range(3), key=lambda i: weights[i])
    sets = [f"w:{i}:{weight}" for i, weight in enumerate(weights)] + [f"d:{i}:{density!r}" for i, density in enumerate(densities)]

    def merged(name, b, *x, seed):
        y = b
        for i in order:
            kept = dare_mask(b.shape, seed, name, i, densities[i]) & (x[i] != b)
            y = numpy.where(kept, y + (weights[i] * scale) * ((1 / densities[i]) * (x[i] - b)), y)
        return y
    for seed in (0, 1, 0x0123456789abcdef, 2 ** 64 - 1):
        found, _ = files.merged(RUNNER, "dare", folder / "dare.out.safetensors", paths[1:], base=paths[0], sets=sets + [f"s:-:{scale}"],
                                seed=seed)
        same(found, result(None, lambda name, *x, seed=seed: merged(name, *x, seed=seed), base, *models), f"dare with the seed {seed}")


def check_dare(folder):
    shapes = {"large": (700, 96), "small": (5, 32)}
    base, model = made(40, "f32", shapes=shapes), made(41, "f32", shapes=shapes)
    paths = [write(folder, f"dare.{i}", tensors) for i, tensors in enumerate((base, model))]
    density = 0.3
    for flags, factor in ((0, 1 / density), (2, 1.0)):
        runs = {}
        for seed in (1, 2):
            found, _ = files.merged(RUNNER, "dare", folder / "dare.out.safetensors", [paths[1]], base=paths[0], sets=[f"d:-:{density}"],
                                    seed=seed, flags=flags)
            b, x, y = base["large"].values(), model["large"].values(), found["large"].values()
            kept = (b + factor * (x - b)).astype(numpy.float32).astype(numpy.float64)
            assert numpy.all((y == b) | (y == kept)), "an element that is neither the base's nor its kept difference"
            runs[seed] = y != b
            assert abs(runs[seed].mean() - density) < 0.01, runs[seed].mean()
        agreeing = (runs[1] == runs[2]).mean()
        assert abs(agreeing - (density ** 2 + (1 - density) ** 2)) < 0.02, "masks of two seeds are not independent"
    two, _ = files.merged(RUNNER, "dare", folder / "dare.out.safetensors", [paths[1], write(folder, "dare.2", model)], base=paths[0],
                          sets=["d:-:0.5"], flags=2)
    y = two["large"].values()
    counts = [float((numpy.abs(y - (b + n * (x - b))) < 1e-5).mean()) for n in range(3)]
    assert all(abs(count - wanted) < 0.02 for count, wanted in zip(counts, (0.25, 0.5, 0.25))), f"masks of two models: {counts}"


def check_formats(folder):
    a, b = made(50, "f32"), made(51, "f32")
    paths = write(folder, "formats.a", a), write(folder, "formats.b", b)
    for kind, number in (("f64", 1), ("f16", 3), ("bf16", 4), ("q8_0", 0x108)):
        out = folder / f"formats.out{'.gguf' if kind == 'q8_0' else '.safetensors'}"
        run = files.merge(RUNNER, "linear", out, paths, sets=[f"f:-:{number}", "f:-:2:b*"])
        assert run.code == 0, run.text()
        found, _ = (files.read_gguf if kind == "q8_0" else files.read_safetensors)(out)
        wanted = result(kind, lambda _, x, y: weighted_sum([x, y], [0.5, 0.5]), a, b)
        wanted["bias"] = files.make("f32", weighted_sum([a["bias"].values(), b["bias"].values()], [0.5, 0.5]))
        same(found, wanted, f"linear to {kind}")
        rows = run.rows()
        if kind == "q8_0":
            exact = weighted_sum([a["wide"].values(), b["wide"].values()], [0.5, 0.5]).astype(numpy.float32).astype(numpy.float64)
            error = numpy.linalg.norm(found["wide"].values() - exact) / numpy.linalg.norm(exact)
            assert math.isclose(float(rows["wide"]["error_rel"]), error, rel_tol=1e-9), (rows["wide"], error)
        assert rows["bias"]["error_rel"] == "", rows["bias"]
        change = numpy.linalg.norm(found["long"].values() - a["long"].values())
        assert math.isclose(float(rows["long"]["change_l2"]), change, rel_tol=1e-9), (rows["long"], change)


def check_large(folder):
    """More tiles than one, in every way to cut and run them."""
    shapes = {"large": (3000, 640)}
    base, models = made(60, "f32", shapes=shapes), [made(61 + i, "f32", shapes=shapes) for i in range(2)]
    paths = [write(folder, f"large.{i}", model) for i, model in enumerate([base, *models])]
    for method in ("linear", "slerp", "task", "ties", "dare"):
        rest = {} if method in ("linear", "slerp") else {"base": paths[0]}
        files_written = set()
        for keys in ({}, {"map": 1}, {"threads": 1}, {"memory": 12_000_000}, {"without": "cpu", "map": 1}):
            out = folder / "large.out.safetensors"
            run = files.merge(RUNNER, method, out, paths[1:], sets=["d:-:0.2"], seed=9, **keys, **rest)
            assert run.code == 0, run.text()
            if "memory" in keys:
                peak = int(dict(cell.split("=") for cell in run.of("end")[0])["peak"])
                assert peak <= keys["memory"], (method, peak)
            files_written.add(out.read_bytes())
        assert len(files_written) == 1, f"{method}: {len(files_written)} different results"


def main():
    checks = [check_linear, check_equal_weights, check_hashes, check_equal_inputs, check_laws, check_wide_mixtures, check_slerp, check_task, check_ties, check_generator,
              check_dare_masks, check_dare, check_formats, check_large]
    for check in checks:
        with files.folder() as folder:
            check(pathlib.Path(folder))
        print(f"{check.__name__}: as numpy has it")
    return 0


if __name__ == "__main__":
    sys.exit(main())
