# SPDX-License-Identifier: Apache-2.0
"""What a hand-written WebGPU program reaches on each adapter, beside bench_devices' lines `pipeline` and `matmul`: 16 additions
of f32 in a row, and a product of 512 x 512 matrices of f32, in tiles of 4 x 4 that stay in registers.

Its `+` may round either way and flush; that of the backend gives the reference's bits on any adapter (docs/decisions/009).

usage: webgpu_by_hand.py [BYTES]      needs the wheel wgpu
"""
import array
import statistics
import sys
import time

import wgpu

SHADER = """
@group(0) @binding(0) var<storage, read> a: array<f32>;
@group(0) @binding(1) var<storage, read> b: array<f32>;
@group(0) @binding(2) var<storage, read_write> y: array<f32>;
@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3u, @builtin(num_workgroups) groups: vec3u) {
  for (var i = id.x; i < arrayLength(&y); i += groups.x * 64u) { y[i] = a[i] + b[i]; }
}
"""
PRODUCT = """
const SIDE = 512u;
@group(0) @binding(0) var<storage, read> a: array<vec4f>;
@group(0) @binding(1) var<storage, read> b: array<vec4f>;
@group(0) @binding(2) var<storage, read_write> y: array<vec4f>;
@compute @workgroup_size(8, 8)
fn main(@builtin(global_invocation_id) id: vec3u) {
  const QUADS = SIDE / 4u;
  let row = 4u * id.y;
  var sums: array<vec4f, 4>;
  for (var k = 0u; k < QUADS; k++) {
    let b0 = b[(4u * k) * QUADS + id.x];
    let b1 = b[(4u * k + 1u) * QUADS + id.x];
    let b2 = b[(4u * k + 2u) * QUADS + id.x];
    let b3 = b[(4u * k + 3u) * QUADS + id.x];
    for (var i = 0u; i < 4u; i++) {
      let x = a[(row + i) * QUADS + k];
      sums[i] += x.x * b0 + x.y * b1 + x.z * b2 + x.w * b3;
    }
  }
  for (var i = 0u; i < 4u; i++) { y[(row + i) * QUADS + id.x] = sums[i]; }
}
"""
SIDE = 512
IN_A_ROW = 16
ROUNDS = 15
FEWEST_ROUNDS = 3
MOST_SECONDS = 2


def prepare(adapter, shader, size):
    """A device, its pipeline, and a group of three buffers of `size` bytes; the last one is the result."""
    device = adapter.request_device_sync(required_limits={"max-storage-buffer-binding-size": size})
    usage = wgpu.BufferUsage.STORAGE | wgpu.BufferUsage.COPY_SRC | wgpu.BufferUsage.COPY_DST
    buffers = [device.create_buffer(size=size, usage=usage) for _ in range(3)]
    module = device.create_shader_module(code=shader)
    pipeline = device.create_compute_pipeline(layout="auto", compute={"module": module, "entry_point": "main"})
    entries = [{"binding": i, "resource": {"buffer": b, "offset": 0, "size": size}} for i, b in enumerate(buffers)]
    group = device.create_bind_group(layout=pipeline.get_bind_group_layout(0), entries=entries)
    return device, pipeline, group, buffers


def median_seconds(prepared, groups, in_a_row):
    """Of so many dispatches in one submission, until a word of the result is read."""
    device, pipeline, group, buffers = prepared
    taken = []
    while len(taken) <= FEWEST_ROUNDS or (len(taken) <= ROUNDS and sum(taken) < MOST_SECONDS):
        begin = time.perf_counter()
        encoder = device.create_command_encoder()
        for _ in range(in_a_row):
            compute = encoder.begin_compute_pass()
            compute.set_pipeline(pipeline)
            compute.set_bind_group(0, group)
            compute.dispatch_workgroups(*groups)
            compute.end()
        device.queue.submit([encoder.finish()])
        device.queue.read_buffer(buffers[2], 0, 4)
        taken.append(time.perf_counter() - begin)
    return statistics.median(taken[1:])


def additions(adapter, size):
    """Bytes a nanosecond."""
    prepared = prepare(adapter, SHADER, size)
    return 3 * size * IN_A_ROW / median_seconds(prepared, [min(65535, -(-size // 256))], IN_A_ROW) / 1e9


def product(adapter):
    """Seconds; the result is checked."""
    prepared = prepare(adapter, PRODUCT, 4 * SIDE * SIDE)
    device, _, _, buffers = prepared
    for buffer in buffers[:2]:
        device.queue.write_buffer(buffer, 0, array.array("f", [0.5] * SIDE * SIDE))
    seconds = median_seconds(prepared, [SIDE // 32, SIDE // 32], 1)
    assert set(device.queue.read_buffer(buffers[2]).cast("f")) == {0.25 * SIDE}
    return seconds


def main():
    size = int(sys.argv[1]) if len(sys.argv) > 1 else 64 << 20
    print(f"wgpu {wgpu.__version__}, {IN_A_ROW} additions of {size} bytes in a row")
    for adapter in wgpu.gpu.enumerate_adapters_sync():
        seconds = product(adapter)
        print(f"{adapter.info['device']}: {additions(adapter, size):.2f} GB/s; matmul {SIDE} f32 {seconds * 1e3:.3f} ms, "
              f"{2 * SIDE ** 3 / seconds / 1e9:.2f} Gflop/s")


main()
