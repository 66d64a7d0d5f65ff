# SPDX-License-Identifier: Apache-2.0
"""The references against the node tests of ONNX: their inputs, their outputs, nothing computed here.

ops_onnx.py RUNNER FOLDER...   the first folder that exists holds test_*/model.onnx; exit 77 if none does.
"""
import math
import os
import struct
import sys

import op_client as client

# ---- protobuf, as far as ONNX needs it ----


def fields(data):
    """(number, value) of a message: integers, or bytes of fixed and length-delimited fields."""
    at = 0

    def varint():
        nonlocal at
        value = shift = 0
        while True:
            byte = data[at]
            at += 1
            value |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return value

    while at < len(data):
        key = varint()
        kind = key & 7
        if kind == 0:
            yield key >> 3, varint()
            continue
        size = {1: 8, 5: 4}[kind] if kind != 2 else varint()
        yield key >> 3, data[at:at + size]
        at += size


def signed(value):
    return value - (1 << 64) if value >> 63 else value


def integers(value):
    """A repeated integer field: one value, or packed ones."""
    if isinstance(value, int):
        return [signed(value)]
    return [signed(item) for _, item in fields(b"".join(b"\x08" + part for part in split_varints(value)))]


def split_varints(data):
    start = 0
    for i, byte in enumerate(data):
        if byte < 128:
            yield data[start:i + 1]
            start = i + 1


FORMATS = {1: "f32", 2: "u8", 3: "i8", 4: "u16", 5: "i16", 6: "i32", 7: "i64", 9: "bool", 10: "f16", 11: "f64", 12: "u32",
           13: "u64", 16: "bf16"}
INTEGER_BYTES = {"u8": 1, "i8": 1, "u16": 2, "i16": 2, "i32": 4, "bool": 1, "f16": 2, "bf16": 2, "i64": 8, "u32": 4, "u64": 8}


def read_tensor(data):
    """TensorProto -> (format, dims, bytes); None for what has no format here."""
    dims, numbers, raw, kind = [], [], b"", 0
    for number, value in fields(data):
        if number == 1:
            dims += integers(value)
        elif number == 2:
            kind = value
        elif number in (5, 7, 11):
            numbers += integers(value)
        elif number in (4, 10, 9):
            raw += value
    if kind not in FORMATS:
        return None
    name = FORMATS[kind]
    if numbers:
        size = INTEGER_BYTES[name]
        raw = b"".join((item & ((1 << 8 * size) - 1)).to_bytes(size, "little") for item in numbers)
    return name, tuple(dims), raw


def read_attribute(data):
    name, value = "", None
    for number, item in fields(data):
        if number == 1:
            name = item.decode()
        elif number == 2:
            value = struct.unpack("<f", item)[0]
        elif number == 3:
            value = signed(item)
        elif number == 4:
            value = item
        elif number == 8:
            value = (value or []) + integers(item)
    return name, value


def child(data, *numbers):
    """The field reached through nested messages; None where one is missing."""
    for wanted in numbers:
        data = next((value for number, value in fields(data) if number == wanted), None) if data is not None else None
    return data


def read_values(graph, wanted):
    """Inputs (11) or outputs (12) of a graph: names and element types; None for what is no tensor."""
    infos = [value for number, value in fields(graph) if number == wanted]
    return [(child(info, 1).decode(), child(info, 2, 1, 1)) for info in infos]


def read_node(model):
    """A model of one node: (type, attributes, input names, graph inputs, graph outputs); None if there are several."""
    graph = child(model, 7)
    nodes = [value for number, value in fields(graph) if number == 1]
    if len(nodes) != 1:
        return None
    inputs = [value.decode() for number, value in fields(nodes[0]) if number == 1]
    attributes = dict(read_attribute(value) for number, value in fields(nodes[0]) if number == 5)
    return child(nodes[0], 4).decode(), attributes, inputs, read_values(graph, 11), read_values(graph, 12)


# ---- how ONNX operations are said here ----

EXACT = {"add", "sub", "mul", "div", "neg", "abs", "sqrt", "relu", "copy", "clamp", "where", "compare", "min", "max", "argmax",
         "transpose", "gather", "cast", "update"}

SAME = {"Add": "add", "Sub": "sub", "Mul": "mul", "Div": "div", "Neg": "neg", "Abs": "abs", "Sqrt": "sqrt", "Exp": "exp",
        "Log": "log", "Tanh": "tanh", "Sigmoid": "sigmoid", "Erf": "erf", "Relu": "relu", "Where": "where", "Identity": "copy"}
COMPARE = {"Equal": "equal", "Less": "less", "LessOrEqual": "less_equal", "Greater": "greater", "GreaterOrEqual": "greater_equal"}
REDUCE = {"ReduceSum": "sum", "ReduceMean": "mean", "ReduceMin": "min", "ReduceMax": "max"}
KNOWN = {*SAME, *COMPARE, *REDUCE, "Clip", "ArgMax", "MatMul", "Softmax", "LayerNormalization", "Transpose", "Gather", "Cast", "ScatterND"}


def unpack_integers(tensor):
    code = {"i32": "i", "i64": "q"}[tensor[0]]
    return list(struct.unpack(f"<{math.prod(tensor[1])}{code}", tensor[2]))


def limits(name):
    """The lowest and highest value of a format, as bytes."""
    floats = {"f32": "f", "f64": "d", "f16": "e"}
    if name in floats:
        return [struct.pack("<" + floats[name], sign * math.inf) for sign in (-1, 1)]
    size = client.BYTES[name]
    low, high = (0, (1 << 8 * size) - 1) if name[0] == "u" else (-(1 << 8 * size - 1), (1 << 8 * size - 1) - 1)
    return [(value & ((1 << 8 * size) - 1)).to_bytes(size, "little") for value in (low, high)]


def clamp(inputs):
    x = inputs[0]
    ends = [tensor or (x[0], (), limit) for tensor, limit in zip((inputs + [None, None])[1:3], limits(x[0]))]
    return "clamp", [x, *ends], b"", "-"


def reduce(kind, attributes, inputs):
    rank = len(inputs[0][1])
    given = attributes.get("axes") or (unpack_integers(inputs[1]) if len(inputs) > 1 and inputs[1] else [])
    if not given and not attributes.get("noop_with_empty_axes"):
        given = list(range(rank))
    axes = [axis % rank for axis in given]
    return REDUCE[kind], inputs[:1], client.reduce_attributes(axes, attributes.get("keepdims", 1)), inputs[0][0]


# Casts to bf16 in this release of the test data cut the lower half off instead of rounding.
TRUNCATED = {"test_cast_FLOAT_to_BFLOAT16", "test_castlike_FLOAT_to_BFLOAT16_expanded"}


def translate(kind, attributes, inputs):
    """-> (operation, inputs, attributes, output format), or None where there is no counterpart."""
    rank = len(inputs[0][1])
    if kind in SAME:
        return SAME[kind], inputs, b"", "-"
    if kind in COMPARE:
        return "compare", inputs, client.compare_attributes(COMPARE[kind]), "-"
    if kind in REDUCE:
        return reduce(kind, attributes, inputs)
    if kind == "Clip":
        return clamp(inputs)
    if kind == "ArgMax" and not attributes.get("select_last_index"):
        return "argmax", inputs, client.reduce_attributes([attributes.get("axis", 0) % rank], attributes.get("keepdims", 1)), "-"
    if kind == "MatMul" and min(len(tensor[1]) for tensor in inputs) >= 2:
        return "matmul", inputs, client.matmul_attributes(), "-"
    if kind == "Softmax":
        return "softmax", inputs, client.axis_attributes(attributes.get("axis", -1) % rank), "-"
    if kind == "LayerNormalization" and attributes.get("axis", -1) % rank == rank - 1 and len(inputs) == 3:
        return "layer_norm", inputs, client.norm_attributes(attributes.get("epsilon", 1e-5)), "-"
    if kind == "Transpose":
        return "transpose", inputs, client.transpose_attributes(attributes.get("perm") or range(rank)[::-1]), "-"
    if kind == "Gather" and all(index >= 0 for index in unpack_integers(inputs[1])):
        return "gather", inputs, client.axis_attributes(attributes.get("axis", 0) % rank), "-"
    if kind == "ScatterND" and inputs[1][1][1:] == (1,) and attributes.get("reduction", b"none") == b"none":
        state, places, rows = inputs
        return "update", [state, rows, (places[0], places[1][:1], places[2])], client.axis_attributes(0), "-"
    if kind == "Cast" and attributes["to"] in FORMATS:
        return "cast", inputs, client.switch_attributes(0), FORMATS[attributes["to"]]
    return None


# ---- comparison ----


def values(tensor):
    name, dims, data = tensor
    count = math.prod(dims)
    if name == "bf16":
        return [struct.unpack("<f", b"\0\0" + data[2 * i:2 * i + 2])[0] for i in range(count)]
    code = {"f64": "d", "f32": "f", "f16": "e", "i8": "b", "u8": "B", "i16": "h", "u16": "H", "i32": "i", "u32": "I", "i64": "q",
            "u64": "Q", "bool": "?"}[name]
    return struct.unpack(f"<{count}{code}", data)


def differs(operation, found, expected):
    if found[:2] != expected[:2]:
        return f"{found[0]} {found[1]}, expected {expected[0]} {expected[1]}"
    relative = {"f64": 1e-7, "f32": 1e-5, "f16": 2e-3}.get(found[0], 0) if operation not in EXACT else 0
    for i, (a, b) in enumerate(zip(values(found), values(expected))):
        if a == b or (a != a and b != b):
            continue
        if not abs(a - b) <= relative * max(abs(b), 1):
            return f"element {i} is {a!r}, expected {b!r}"
    return None


def load(folder, kind, infos):
    """input_0.pb .. of a test by name; None for a tensor that has no format here.  bf16 is stored as u16."""
    tensors = {}
    for i, (name, element) in enumerate(infos):
        with open(f"{folder}/test_data_set_0/{kind}_{i}.pb", "rb") as file:
            tensor = read_tensor(file.read()) if element is not None else None
        is_bf16 = tensor is not None and tensor[0] == "u16" and FORMATS.get(element) == "bf16"
        tensors[name] = ("bf16", *tensor[1:]) if is_bf16 else tensor
    return tensors


def run_case(runner, folder):
    """'' for a pass, None for no counterpart, else what is wrong."""
    with open(f"{folder}/model.onnx", "rb") as file:
        node = read_node(file.read())
    if node is None or node[0] not in KNOWN:
        return None
    kind, attributes, names, input_infos, output_infos = node
    by_name = load(folder, "input", input_infos)
    inputs = [by_name[name] if name else None for name in names]
    if inputs[0] is None or any(name and by_name[name] is None for name in names):
        return None
    said = translate(kind, attributes, inputs)
    expected = load(folder, "output", output_infos)[output_infos[0][0]]
    if said is None or expected is None:
        return None
    try:
        found = runner.run(*said)
    except client.Refused as refusal:
        return f"refused: {refusal}"
    return differs(said[0], found, expected) or ""


def main():
    folders = [folder for folder in sys.argv[2:] if os.path.isdir(folder)]
    if not folders:
        print("skipped: no ONNX node tests (package libonnx-testdata)")
        return 77
    runner = client.Runner(sys.argv[1])
    passed = failed = other = 0
    for name in sorted(set(os.listdir(folders[0])) - TRUNCATED):
        result = run_case(runner, f"{folders[0]}/{name}")
        passed += result == ""
        other += result is None
        if result:
            failed += 1
            print(f"{name}: {result}")
    print(f"{passed} of the node tests agree, {failed} do not, {other} have no counterpart")
    return 1 if failed or passed == 0 else 0


if __name__ == "__main__":
    sys.exit(main())
