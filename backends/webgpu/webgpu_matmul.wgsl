// SPDX-License-Identifier: Apache-2.0
// Matrix products.  An invocation makes TILE_ROWS by 4 elements of y from registers, four steps of k at a time; the
// invocations of a workgroup make a block, 8 tiles wide.  The order of additions along k is fixed.
//
// The prologue declares x0 (a), x1 (b), y and w, and how four elements along k become vec4<u32>, bits of f32 or integers:
//   fn a_quad(at: u32, k: u32) -> vec4<u32>      at: element (of block formats byte) where the row of a (column of b) begins
//   fn b_quad(at: u32, k: u32) -> vec4<u32>

struct Product {
  rows: u32,
  columns: u32,
  depth: u32,
  blocks: u32,                  // of all batches; without tiles the elements of y
  row_blocks: u32,
  column_blocks: u32,
  batch_axes: u32,
  scans: u32,                   // workgroups of the pass before, which left extremes in w; without tiles parts of a sum
  first: vec4<i32>,             // of a, b, y
  a_step: vec2<i32>,            // along rows, along k; elements, of b's columns in block formats bytes, of y bytes
  b_step: vec2<i32>,            // along columns, along k
  y_step: vec2<i32>,            // along rows, along columns
  headroom: u32,                // log2 of the depth, rounded up
  unused: u32,
  batches: array<vec4<i32>, 6>, // extent, steps of a, b, y; the innermost first
  scales: vec4<i32>,            // of the integers' product: first word and step along rows, then along columns
}
@group(0) @binding(0) var<uniform> p: Product;

fn batch_places(batch: u32) -> vec3<i32> {
  var rest = batch;
  var places = p.first.xyz;
  for (var i = 0u; i < p.batch_axes; i++) {
    let extent = u32(p.batches[i].x);
    places += i32(rest % extent) * p.batches[i].yzw;
    rest /= extent;
  }
  return places;
}

struct Tile {
  a: array<u32, TILE_ROWS>,     // where the rows begin
  b: array<u32, 4>,
  row: u32,
  column: u32,
  y: i32,
}

// Rows and columns beyond the end stand for the last one, and are not stored.
fn tile_of(block: u32, local: u32) -> Tile {
  var tile: Tile;
  let places = batch_places(block / (p.row_blocks * p.column_blocks));
  let row_block = block / p.column_blocks % p.row_blocks;
  tile.row = (row_block * (WG / 8u) + local / 8u) * TILE_ROWS;
  tile.column = (block % p.column_blocks * 8u + local % 8u) * 4u;
  tile.y = places.z;
  for (var i = 0u; i < TILE_ROWS; i++) { tile.a[i] = u32(places.x + i32(min(tile.row + i, p.rows - 1u)) * p.a_step.x); }
  for (var j = 0u; j < 4u; j++) { tile.b[j] = u32(places.y + i32(min(tile.column + j, p.columns - 1u)) * p.b_step.x); }
  return tile;
}

fn mask_of(k: u32) -> vec4<bool> { return vec4<u32>(k, k + 1u, k + 2u, k + 3u) < vec4<u32>(p.depth); }

// The invocations that store parts of one word change nothing but their own bits of it.
fn store_at(first: i32, raw: u32) {
  let place = u32(first);
  if (Y_BYTES == 4u) {
    atomicStore(&y[place >> 2u], raw);
    return;
  }
  let shift = (place & 2u) * 8u;
  atomicXor(&y[place >> 2u], (atomicLoad(&y[place >> 2u]) ^ (raw << shift)) & (0xffffu << shift));
}

fn store(tile: Tile, i: u32, j: u32, raw: u32) {
  if (tile.row + i >= p.rows || tile.column + j >= p.columns) { return; }
  store_at(tile.y + i32(tile.row + i) * p.y_step.x + i32(tile.column + j) * p.y_step.y, raw);
}
