// SPDX-License-Identifier: Apache-2.0
// q8_0 and q4_0 into floats.  An invocation makes four elements.

struct Sizes { quads: u32 }
@group(0) @binding(0) var<uniform> p: Sizes;

@compute @workgroup_size(WG) fn run(@builtin(global_invocation_id) id: vec3<u32>,
                                    @builtin(num_workgroups) groups: vec3<u32>) {
  for (var quad = id.x; quad < p.quads; quad += groups.x * WG) {
    let values = block_quad(quad / 8u * BLOCK_BYTES, quad % 8u * 4u);
    if (Y_BYTES == 4u) {
      for (var i = 0u; i < 4u; i++) { y[4u * quad + i] = values[i]; }
    } else {
      y[2u * quad] = narrow(values.x) | (narrow(values.y) << 16u);
      y[2u * quad + 1u] = narrow(values.z) | (narrow(values.w) << 16u);
    }
  }
}
