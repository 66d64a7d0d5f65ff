// SPDX-License-Identifier: Apache-2.0
// Tiles of four rows, after a scan.

fn add_products(tile: Tile, k: u32, is_raised: bool, mask: vec4<bool>, sums: ptr<function, array<vec4<f32>, 4>>) {
  var b: array<vec4<f32>, 4>;
  for (var j = 0u; j < 4u; j++) {
    var bits = select(vec4<u32>(0u), b_quad(tile.b[j], k), mask);
    if (is_raised) { bits = raised(bits); }
    b[j] = bitcast<vec4<f32>>(bits);
  }
  for (var i = 0u; i < 4u; i++) {
    var bits = select(vec4<u32>(0u), a_quad(tile.a[i], k), mask);
    if (is_raised) { bits = raised(bits); }
    let a = bitcast<vec4<f32>>(bits);
    (*sums)[i] += vec4<f32>(dot(a, b[0]), dot(a, b[1]), dot(a, b[2]), dot(a, b[3]));
  }
}

// `is_raised` is a constant where this is called, so that each way has its own loop.
fn multiply_tile(tile: Tile, is_raised: bool) {
  var sums: array<vec4<f32>, 4>;
  let whole = p.depth & ~3u;
  for (var k = 0u; k < whole; k += 4u) { add_products(tile, k, is_raised, vec4<bool>(true), &sums); }
  if (whole < p.depth) { add_products(tile, whole, is_raised, mask_of(whole), &sums); }
  for (var i = 0u; i < 4u; i++) {
    for (var j = 0u; j < 4u; j++) {
      if (is_raised) { store_value(tile, i, j, lowered(sums[i][j])); }
      else { store_value(tile, i, j, wide_of_f32(bitcast<u32>(sums[i][j]))); }
    }
  }
}

@compute @workgroup_size(WG) fn multiply(@builtin(workgroup_id) group: vec3<u32>,
                                         @builtin(num_workgroups) groups: vec3<u32>,
                                         @builtin(local_invocation_index) local: u32) {
  let path = scanned_path();
  for (var block = group.x; block < p.blocks; block += groups.x) {
    let tile = tile_of(block, local);
    if (tile.row >= p.rows || tile.column >= p.columns) { continue; }
    if (path == EXACT) { multiply_exactly(tile); }
    else if (path == RAISED) { multiply_tile(tile, true); }
    else { multiply_tile(tile, false); }
  }
}
