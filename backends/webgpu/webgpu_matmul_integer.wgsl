// SPDX-License-Identifier: Apache-2.0
// i8 by i8 into i32, which wraps: exact.  With SCALES, the prologue's scale_word(input, i) gives words of the scales, and
// the sum, which then must not wrap, is multiplied by that of the row and that of the column, in f64.

fn finish(tile: Tile, i: u32, j: u32, sum: i32) {
  if (!SCALES) {
    store(tile, i, j, bitcast<u32>(sum));
    return;
  }
  let row = u32(p.scales.x + i32(min(tile.row + i, p.rows - 1u)) * p.scales.y);
  let column = u32(p.scales.z + i32(min(tile.column + j, p.columns - 1u)) * p.scales.w);
  let scale = wide_of_product(scale_word(0u, row), scale_word(1u, column));
  store(tile, i, j, wide_to_narrow(wide_multiply(scale, wide_of_i32(sum)), Y_FRACTION_BITS, Y_EXPONENTS));
}

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
