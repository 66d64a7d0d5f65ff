# SPDX-License-Identifier: Apache-2.0
"""What a hand-written WebGPU program reaches: 16 additions of f32 in a row on each adapter, beside bench_devices' pipeline.

usage: webgpu_by_hand.py [BYTES]      needs the wheel wgpu
"""
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
IN_A_ROW = 16
ROUNDS = 15


def measure(adapter, size):
    device = adapter.request_device_sync(required_limits={"max-storage-buffer-binding-size": size})
    usage = wgpu.BufferUsage.STORAGE | wgpu.BufferUsage.COPY_SRC
    buffers = [device.create_buffer(size=size, usage=usage) for _ in range(3)]
    module = device.create_shader_module(code=SHADER)
    pipeline = device.create_compute_pipeline(layout="auto", compute={"module": module, "entry_point": "main"})
    entries = [{"binding": i, "resource": {"buffer": b, "offset": 0, "size": size}} for i, b in enumerate(buffers)]
    group = device.create_bind_group(layout=pipeline.get_bind_group_layout(0), entries=entries)
    taken = []
    for _ in range(ROUNDS + 1):
        begin = time.perf_counter()
        encoder = device.create_command_encoder()
        for _ in range(IN_A_ROW):
            compute = encoder.begin_compute_pass()
            compute.set_pipeline(pipeline)
            compute.set_bind_group(0, group)
            compute.dispatch_workgroups(min(65535, -(-size // 256)))
            compute.end()
        device.queue.submit([encoder.finish()])
        device.queue.read_buffer(buffers[2], 0, 4)
        taken.append(time.perf_counter() - begin)
    return 3 * size * IN_A_ROW / statistics.median(taken[1:]) / 1e9


def main():
    size = int(sys.argv[1]) if len(sys.argv) > 1 else 64 << 20
    print(f"wgpu {wgpu.__version__}, {IN_A_ROW} additions of {size} bytes in a row")
    for adapter in wgpu.gpu.enumerate_adapters_sync():
        print(f"{adapter.info['device']}: {measure(adapter, size):.2f} GB/s")


main()
