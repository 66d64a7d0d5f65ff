// SPDX-License-Identifier: Apache-2.0
// Products of floats in f32, which need not keep subnormal or infinite numbers.  So extremes of the operands decide:
//   PLAIN    no operand is subnormal, no product can be, and no sum can overflow
//   RAISED   operands times 2^24: subnormal ones become normal, and what products lose at 2^-126 weighs 2^-174
//   EXACT    there are very large numbers, infinities or NaN: in f64 on integers
// `scan` finds the extremes; with few rows the product itself watches out instead.

const PLAIN = 0u;
const RAISED = 1u;
const EXACT = 2u;
const RAISE = 24u;

// The least and the largest biased exponent of numbers that are not zero, of a and of b; 1 for subnormal ones less.
fn exponents_of(bits: vec4<u32>, so_far: vec2<u32>) -> vec2<u32> {
  let magnitude = bits & vec4<u32>(0x7fffffffu);
  let low = min(min(magnitude.x - 1u, magnitude.y - 1u), min(magnitude.z - 1u, magnitude.w - 1u));
  let high = max(max(magnitude.x, magnitude.y), max(magnitude.z, magnitude.w));
  return vec2<u32>(min(so_far.x, low), max(so_far.y, high));
}

fn path_of(a: vec2<u32>, b: vec2<u32>) -> u32 {
  let low = vec2<u32>(a.x + 1u, b.x + 1u) >> vec2<u32>(23u);
  let high = vec2<u32>(a.y, b.y) >> vec2<u32>(23u);
  if (max(high.x, high.y) == 0xffu) { return EXACT; }
  if (a.y == 0u || b.y == 0u) { return PLAIN; }
  let top = high.x + high.y + 2u + p.headroom;  // biased twice, by 254
  if (min(low.x, low.y) > 0u && low.x + low.y >= 254u - 126u && top < 254u + 127u) { return PLAIN; }
  return select(EXACT, RAISED, top + 2u * RAISE < 254u + 127u && max(high.x, high.y) < 254u - RAISE);
}

// Workgroups share the rows of a and the columns of b of all batches; each leaves its four extremes in w.
var<workgroup> found: array<vec4<u32>, WG>;

@compute @workgroup_size(WG) fn scan(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
                                     @builtin(local_invocation_index) local: u32) {
  let quads = (p.depth + 3u) / 4u;
  let batches = p.blocks / (p.row_blocks * p.column_blocks);
  var a = vec2<u32>(0xffffffffu, 0u);
  var b = vec2<u32>(0xffffffffu, 0u);
  for (var i = group.x * WG + local; i < batches * p.rows * quads; i += groups.x * WG) {
    let line = i / quads;
    let at = batch_places(line / p.rows).x + i32(line % p.rows) * p.a_step.x;
    let k = i % quads * 4u;
    a = exponents_of(select(vec4<u32>(0u), a_quad(u32(at), k), mask_of(k)), a);
  }
  for (var i = group.x * WG + local; i < batches * p.columns * quads; i += groups.x * WG) {
    let line = i / quads;
    let at = batch_places(line / p.columns).y + i32(line % p.columns) * p.b_step.x;
    let k = i % quads * 4u;
    b = exponents_of(select(vec4<u32>(0u), b_quad(u32(at), k), mask_of(k)), b);
  }
  found[local] = vec4<u32>(a, b);
  workgroupBarrier();
  if (local != 0u) { return; }
  var extremes = found[0];
  for (var i = 1u; i < WG; i++) { extremes = extremes_of(extremes, found[i]); }
  for (var i = 0u; i < 4u; i++) { w[4u * group.x + i] = extremes[i]; }
}

fn extremes_of(one: vec4<u32>, other: vec4<u32>) -> vec4<u32> {
  return select(max(one, other), min(one, other), vec4<bool>(true, false, true, false));
}

fn scanned_path() -> u32 {
  var extremes = vec4<u32>(0xffffffffu, 0u, 0xffffffffu, 0u);
  for (var i = 0u; i < p.scans; i++) {
    extremes = extremes_of(extremes, vec4<u32>(w[4u * i], w[4u * i + 1u], w[4u * i + 2u], w[4u * i + 3u]));
  }
  return path_of(extremes.xy, extremes.zw);
}

fn raised(bits: vec4<u32>) -> vec4<u32> {
  let fraction = bits & vec4<u32>(0x7fffffu);
  // f32(fraction) is fraction * 2^-149 raised by 149, of which RAISE stay.
  let integers = bitcast<vec4<u32>>(vec4<f32>(fraction)) - vec4<u32>((149u - RAISE) << 23u);
  let small = select(integers, vec4<u32>(0u), fraction == vec4<u32>(0u)) | (bits & vec4<u32>(0x80000000u));
  return select(bits + vec4<u32>(RAISE << 23u), small, (bits & vec4<u32>(0x7f800000u)) == vec4<u32>(0u));
}

fn store_value(tile: Tile, i: u32, j: u32, value: vec2<u32>) {
  store(tile, i, j, wide_to_narrow(value, Y_FRACTION_BITS, Y_EXPONENTS));
}

fn exact_sum(a_at: u32, b_at: u32) -> vec2<u32> {
  var sum = WIDE_ZERO;
  for (var k = 0u; k < p.depth; k += 4u) {
    let a = a_quad(a_at, k);
    let b = b_quad(b_at, k);
    sum = wide_add(sum, wide_of_product(a.x, b.x));
    if (k + 1u < p.depth) { sum = wide_add(sum, wide_of_product(a.y, b.y)); }
    if (k + 2u < p.depth) { sum = wide_add(sum, wide_of_product(a.z, b.z)); }
    if (k + 3u < p.depth) { sum = wide_add(sum, wide_of_product(a.w, b.w)); }
  }
  return sum;
}

fn multiply_exactly(tile: Tile) {
  for (var i = 0u; i < TILE_ROWS; i++) {
    for (var j = 0u; j < 4u; j++) { store_value(tile, i, j, exact_sum(tile.a[i], tile.b[j])); }
  }
}

fn lowered(sum: f32) -> vec2<u32> {
  let value = wide_of_f32(bitcast<u32>(sum));
  return select(vec2<u32>(value.x, value.y - ((2u * RAISE) << 20u)), WIDE_ZERO, wide_exponent(value) == 0);
}
