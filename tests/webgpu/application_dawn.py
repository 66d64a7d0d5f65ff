# SPDX-License-Identifier: Apache-2.0
"""An application that carries a WebGPU of its own: it hands the entry point in, and runs operations there.

    application_dawn.py LIBTENSORMORPH [--none]

With --none there is nothing to run on, and no device may be listed: not even the one that does no work.
"""
import ctypes
import random
import sys

import dawn

P, U32, U64 = ctypes.c_void_p, ctypes.c_uint32, ctypes.c_uint64
F32, F16, BF16, I32 = 2, 3, 4, 22
CAST, ADD, MUL, DIV, SQRT, EXP, RELU = 6, 16, 18, 19, 34, 35, 42
BYTES = {F32: 4, F16: 2, BF16: 2, I32: 4}
COUNT = 10007


class Error(ctypes.Structure):
    _fields_ = [("struct_size", U32), ("code", ctypes.c_int32), ("native_code", ctypes.c_int64), ("text", ctypes.c_char * 1008)]


class Pointer(ctypes.Structure):
    _fields_ = [("backend", ctypes.c_char_p), ("name", ctypes.c_char_p), ("pointer", P)]


class Options(ctypes.Structure):
    _fields_ = [("struct_size", U32), ("flags", U32), ("thread_count", U32), ("max_open_files", U32), ("max_memory_bytes", U64),
                ("max_header_bytes", U64), ("worst_numerics_plus_one", U32), ("plugin_path_count", U32), ("plugin_paths", P),
                ("devices", P), ("excluded_devices", P), ("device_count", U32), ("excluded_device_count", U32), ("settings", P),
                ("pointers", P), ("setting_count", U32), ("pointer_count", U32), ("alloc", P), ("free", P),
                ("allocator_context", P), ("log", P), ("log_context", P), ("state_folder", P)]


class Description(ctypes.Structure):
    _fields_ = [("struct_size", U32), ("state", U32), ("backend", U32), ("memory_count", U32), ("name", ctypes.c_char_p),
                ("rest", ctypes.c_char * 72)]


class Report(ctypes.Structure):
    _fields_ = [("struct_size", U32), ("device", U32), ("level", U32), ("numerics", U32), ("expected_ns", U64),
                ("measured_ns", U64), ("retries", U32), ("fell_back", U32)]


class RunOptions(ctypes.Structure):
    _fields_ = [("struct_size", U32), ("worst_numerics", U32), ("device_plus_one", U32), ("run_to_run", U32), ("report", P)]


class Application:
    def __init__(self, library):
        self.library = ctypes.CDLL(library)
        self.library.tm_tensor_data.restype = P
        self.error = Error(struct_size=ctypes.sizeof(Error))
        pointer = Pointer(b"webgpu", b"proc_address", dawn.proc_address())
        options = Options(struct_size=ctypes.sizeof(Options), pointers=ctypes.addressof(pointer), pointer_count=1)
        self.context = P()
        self.check(self.library.tm_context_create(ctypes.byref(options), ctypes.byref(self.context), ctypes.byref(self.error)))
        self.devices = {}
        description = Description(struct_size=ctypes.sizeof(Description))
        while self.library.tm_device_describe(self.context, U32(len(self.devices)), ctypes.byref(description)) == 0:
            self.devices[description.name.decode()] = len(self.devices)

    def check(self, status):
        if status != 0:
            raise SystemExit(f"status {status}: {self.error.text.decode()}")

    def tensor(self, form, data=None):
        tensor, dims = P(), (U64 * 1)(COUNT)
        self.check(self.library.tm_tensor_create(self.context, U32(form), U32(1), dims, ctypes.byref(tensor),
                                                 ctypes.byref(self.error)))
        if data is not None:
            ctypes.memmove(P(self.library.tm_tensor_data(tensor)), data, len(data))
        return tensor

    def run(self, op, inputs, form, device):
        output, report = self.tensor(form), Report(struct_size=ctypes.sizeof(Report))
        options = RunOptions(ctypes.sizeof(RunOptions), 4, self.devices[device] + 1, 0, ctypes.addressof(report))
        self.check(self.library.tm_run(self.context, U32(op), None, U32(0), (P * len(inputs))(*inputs), U32(len(inputs)),
                                       (P * 1)(output), U32(1), ctypes.byref(options), ctypes.byref(self.error)))
        data = ctypes.string_at(self.library.tm_tensor_data(output), COUNT * BYTES[form])
        self.library.tm_tensor_destroy(output)
        return data, report


def steps_apart(a, b, width):
    """The largest distance in numbers of the format, of values that are finite in both."""
    def place(data, i):
        bits = int.from_bytes(data[i:i + width], "little")
        sign = 1 << (8 * width - 1)
        return -(bits & (sign - 1)) if bits & sign else bits
    return max(abs(place(a, i) - place(b, i)) for i in range(0, len(a), width))


def main():
    application = Application(sys.argv[1])
    name = next((name for name in application.devices if name.startswith("webgpu")), None)
    if "--none" in sys.argv:
        print(f"devices: {sorted(application.devices)}")
        return 1 if name else 0
    if name is None:
        raise SystemExit(f"no device of Dawn among {sorted(application.devices)}")
    source, failures = random.Random(1), 0
    cases = [(ADD, F32, F32, 2, 0), (MUL, F16, F16, 2, 0), (DIV, I32, I32, 2, 0), (SQRT, F32, F32, 1, 0), (CAST, F32, BF16, 1, 0),
             (CAST, BF16, F32, 1, 0), (RELU, BF16, BF16, 1, 0), (EXP, F32, F32, 1, 8)]
    for op, form, result, count, allowed in cases:
        mask = {F32: 0x3fffffff, F16: 0x3bff, BF16: 0x3fff, I32: 0xffffffff}[form]       # no NaN: its payload is nobody's promise
        words = [[source.getrandbits(32) & mask for _ in range(COUNT)] for _ in range(count)]
        inputs = [application.tensor(form, b"".join(w.to_bytes(4, "little")[:BYTES[form]] for w in some)) for some in words]
        here, report = application.run(op, inputs, result, name)
        there, _ = application.run(op, inputs, result, "reference:0")
        apart = steps_apart(here, there, BYTES[result])
        good = apart <= allowed and report.device == application.devices[name] and report.fell_back == 0
        failures += not good
        print(f"op {op} of format {form} to {result} on {name}: {apart} steps apart, {'ok' if good else 'FAILED'}")
        for tensor in inputs:
            application.library.tm_tensor_destroy(tensor)
    application.library.tm_context_destroy(application.context)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
