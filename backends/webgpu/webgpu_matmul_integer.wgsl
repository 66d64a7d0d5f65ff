// SPDX-License-Identifier: Apache-2.0
// i8 by i8 into i32, which wraps: exact.

fn finish(tile: Tile, i: u32, j: u32, sum: i32) { store(tile, i, j, bitcast<u32>(sum)); }

@compute @workgroup_size(WG) fn multiply(@builtin(workgroup_id) group: vec3<u32>,
                                         @builtin(num_workgroups) groups: vec3<u32>,
                                         @builtin(local_invocation_index) local: u32) {
  for (var block = group.x; block < p.blocks; block += groups.x) {
    let tile = tile_of(block, local);
    if (tile.row >= p.rows || tile.column >= p.columns) { continue; }
    var sums: array<vec4<i32>, TILE_ROWS>;
    for (var k = 0u; k < p.depth; k += 4u) {
      let mask = mask_of(k);
      var b: array<vec4<i32>, 4>;
      for (var j = 0u; j < 4u; j++) { b[j] = select(vec4<i32>(0), bitcast<vec4<i32>>(b_quad(tile.b[j], k)), mask); }
      for (var i = 0u; i < TILE_ROWS; i++) {
        let a = bitcast<vec4<i32>>(a_quad(tile.a[i], k));
        sums[i] += vec4<i32>(dot(a, b[0]), dot(a, b[1]), dot(a, b[2]), dot(a, b[3]));
      }
    }
    for (var i = 0u; i < TILE_ROWS; i++) {
      for (var j = 0u; j < 4u; j++) { finish(tile, i, j, sums[i][j]); }
    }
  }
}
