// SPDX-License-Identifier: Apache-2.0
// Bytes from anywhere to anywhere: an invocation writes one word of the destination, and keeps the bytes of it that lie
// outside.

struct Parameters {
  word_count: u32,
  to: u32,                              // first byte written, in the binding
  from: u32,                            // first byte read
  byte_count: u32,
}
@group(0) @binding(0) var<uniform> p: Parameters;
@group(0) @binding(1) var<storage, read> x: array<u32>;
@group(0) @binding(2) var<storage, read_write> y: array<u32>;

@compute @workgroup_size(WG)
fn run(@builtin(global_invocation_id) id: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>) {
  for (var i = id.x; i < p.word_count; i += groups.x * WG) {
    let word = (p.to >> 2u) + i;
    var bits = y[word];
    for (var k = 0u; k < 4u; k++) {
      let byte = word * 4u + k;
      if (byte >= p.to && byte - p.to < p.byte_count) {
        let source = byte - p.to + p.from;
        let value = (x[source >> 2u] >> ((source & 3u) * 8u)) & 0xffu;
        bits = (bits & ~(0xffu << (k * 8u))) | (value << (k * 8u));
      }
    }
    y[word] = bits;
  }
}
