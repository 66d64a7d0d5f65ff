// SPDX-License-Identifier: Apache-2.0
// update of dense operands, seen as [outer, axis, words]: every word of y is looked up in the rows, or else in the state.

struct Update {
  items: u32,
  inner: u32,           // words
  extent: u32,
  rows: u32,
  is_list: u32,         // one index a row
  start_words: u32,
}
@group(0) @binding(0) var<uniform> p: Update;

fn start_at(row: u32) -> vec2<u32> {
  let low = x2[row * p.start_words];
  return vec2<u32>(low, select(select(0u, 0xffffffffu, (low >> 31u) == 1u), x2[row * p.start_words + p.start_words - 1u], p.start_words == 2u));
}

// The last row that goes to the place; p.rows if none does.
fn row_for(place: u32) -> u32 {
  if (p.is_list == 0u) {
    let row = words_subtract(vec2<u32>(place, 0u), start_at(0u));
    return select(p.rows, row.x, row.y == 0u && row.x < p.rows);
  }
  for (var row = p.rows; row > 0u; row--) {
    if (all(start_at(row - 1u) == vec2<u32>(place, 0u))) { return row - 1u; }
  }
  return p.rows;
}

@compute @workgroup_size(WG)
fn run(@builtin(global_invocation_id) id: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>) {
  for (var i = id.x; i < p.items; i += groups.x * WG) {
    let word = i % p.inner;
    let line = i / p.inner;
    let row = row_for(line % p.extent);
    if (row < p.rows) { y[i] = x1[((line / p.extent) * p.rows + row) * p.inner + word]; }
    else { y[i] = x0[i]; }
  }
}
