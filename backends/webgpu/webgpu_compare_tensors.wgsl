// SPDX-License-Identifier: Apache-2.0
// How far two tensors are apart, bit for bit: canonical_sum.h says in which order the sums are made.
//   blocks        which sums of a block of 512 pairs go by chains of f32 (CHAINS only)
//   lanes         a record for each lane of each superblock
//   superblocks   the 16 records of a superblock into its first one
//   result        one workgroup: all superblocks into the result
// Values are bits of f32, which holds all formats here.  The prologue says x_value(e) and z_value(e), and is_same(e),
// whether both have the same bits, and CHAINS.

struct Sizes {
  elements: u32,
  superblocks: u32,
  flags: u32,           // where the blocks' answers lie in w
  work: u32,
}
@group(0) @binding(0) var<uniform> p: Sizes;

const SUPERBLOCK = 32768u;
const BLOCK = 512u;
const LANES = 16u;

// Words of a record.
const EQUAL = 0u;
const NONFINITE = 1u;
const MAX_ABS = 2u;
const MAX_REL = 4u;
const FIRST_SUM = 6u;           // of (a - b)^2, a b, a^2, b^2
const RECORD = 14u;

const ONE = vec2<u32>(0u, 0x3ff00000u);

// sum + d^2 with one rounding; neither is negative.  Both as 128 bits with the leading one in bit 126, the smaller one
// shifted down.
fn add_square(sum: vec2<u32>, d: vec2<u32>) -> vec2<u32> {
  if (wide_exponent(d) == 0) { return sum; }
  let product = wide_fraction_product(d, d);
  let is_long = (product.w >> 9u) & 1u;         // bit 105
  let square = shifted_left(product, 22u - is_long);
  let square_exponent = 2 * wide_exponent(d) - 1023 + i32(is_long);
  if (wide_exponent(sum) == 0) { return rounded(square_exponent, square); }
  let mantissa = wide_mantissa(sum);
  let other = vec4<u32>(0u, 0u, mantissa);
  let distance = square_exponent - wide_exponent(sum);
  if (distance >= 0) { return rounded(square_exponent, added(square, shifted_right(other, u32(distance)))); }
  return rounded(wide_exponent(sum), added(other, shifted_right(square, u32(-distance))));
}

fn shifted_left(a: vec4<u32>, places: u32) -> vec4<u32> {
  return (a << vec4<u32>(places)) | (vec4<u32>(0u, a.xyz) >> vec4<u32>(32u - places));
}

// What falls out leaves a mark in the lowest bit.
fn shifted_right(a: vec4<u32>, count: u32) -> vec4<u32> {
  if (count >= 128u) { return vec4<u32>(1u, 0u, 0u, 0u); }
  var kept = a;
  var lost = 0u;
  if ((count & 64u) != 0u) {
    lost = kept.x | kept.y;
    kept = vec4<u32>(kept.zw, 0u, 0u);
  }
  if ((count & 32u) != 0u) {
    lost |= kept.x;
    kept = vec4<u32>(kept.yzw, 0u);
  }
  let places = count % 32u;
  if (places > 0u) {
    lost |= kept.x << (32u - places);
    kept = (kept >> vec4<u32>(places)) | (vec4<u32>(kept.yzw, 0u) << vec4<u32>(32u - places));
  }
  kept.x |= select(0u, 1u, lost != 0u);
  return kept;
}

fn added(a: vec4<u32>, b: vec4<u32>) -> vec4<u32> {
  let low = words_add(a.xy, b.xy);
  let high = words_add(a.zw, b.zw);
  return vec4<u32>(low, words_add(high, vec2<u32>(select(0u, 1u, wide_less(low, a.xy)), 0u)));
}

// The exponent is that of a leading one in bit 126.
fn rounded(exponent: i32, a: vec4<u32>) -> vec2<u32> {
  return wide_normalize(0u, exponent, vec2<u32>(a.z | select(0u, 1u, (a.x | a.y) != 0u), a.w));
}

// The larger of `most` and d / larger.  A product of the two that is above d needs no division: rounding keeps order.
fn most_relative(most: vec2<u32>, d: vec2<u32>, larger: vec2<u32>) -> vec2<u32> {
  if (wide_exponent(d) == 0) { return most; }
  let reached = wide_multiply(most, larger);
  if (wide_less(d, reached) || (all(d == reached) && all(most == ONE))) { return most; }
  let quotient = wide_divide(d, larger);
  return select(most, quotient, wide_less(most, quotient));
}

// The difference of two finite values, or its magnitude if it has two: in chains it is one of f32.
fn difference_of(a: u32, b: u32) -> vec2<u32> {
  let d = wide_add(wide_of_f32(a), wide_negate(wide_of_f32(b)));
  if (CHAINS) { return narrowed(d); }
  return d;
}

// f32 arithmetic by way of f64: with more than twice the digits two roundings are one.
fn narrowed(a: vec2<u32>) -> vec2<u32> { return wide_of_f32(wide_to_narrow(a, 23u, 0xffu)); }

struct State {
  equal: u32,
  nonfinite: u32,
  max_abs: vec2<u32>,
  max_rel: vec2<u32>,
  sums: array<vec2<u32>, 4>,
}

fn is_finite(bits: u32) -> bool { return (bits & 0x7f800000u) != 0x7f800000u; }

// A pair, zeros if a value is not finite, and the magnitude of their difference.
struct Pair {
  a: u32,
  b: u32,
  d: vec2<u32>,
}

fn look_at_pair(state: ptr<function, State>, e: u32) -> Pair {
  let a = x_value(e);
  let b = z_value(e);
  (*state).equal += select(0u, 1u, is_same(e));
  if (!is_finite(a) || !is_finite(b)) {
    (*state).nonfinite++;
    return Pair(0u, 0u, WIDE_ZERO);
  }
  let d = wide_magnitude(difference_of(a, b));
  let larger = wide_of_f32(max(a & 0x7fffffffu, b & 0x7fffffffu));
  if (wide_less((*state).max_abs, d)) { (*state).max_abs = d; }
  (*state).max_rel = most_relative((*state).max_rel, d, larger);
  return Pair(a, b, d);
}

// To the sums that have no bit in `chained`.
fn add_pair(state: ptr<function, State>, pair: Pair, chained: u32) {
  if ((chained & 1u) == 0u) { (*state).sums[0] = add_square((*state).sums[0], pair.d); }
  if ((chained & 2u) == 0u) { (*state).sums[1] = wide_add((*state).sums[1], wide_of_product(pair.a, pair.b)); }
  if ((chained & 4u) == 0u) { (*state).sums[2] = wide_add((*state).sums[2], wide_of_product(pair.a, pair.a)); }
  if ((chained & 8u) == 0u) { (*state).sums[3] = wide_add((*state).sums[3], wide_of_product(pair.b, pair.b)); }
}

// ---- chains ----

@compute @workgroup_size(WG) fn blocks(@builtin(global_invocation_id) id: vec3<u32>,
                                       @builtin(num_workgroups) groups: vec3<u32>) {
  for (var block = id.x; block < p.work; block += groups.x * WG) {
    w[p.flags + block] = chained_sums(block * BLOCK, block * BLOCK + min(BLOCK, p.elements - block * BLOCK));
  }
}

fn allows_chains(largest: u32) -> bool { return largest >= 0x26800000u && largest < 0x5d800000u; }

// A bit for each.
fn chained_sums(first: u32, end: u32) -> u32 {
  var largest = vec3<u32>(0u);
  for (var e = first; e < end; e++) {
    let a = x_value(e);
    let b = z_value(e);
    if (!is_finite(a) || !is_finite(b)) { continue; }
    let d = wide_to_narrow(wide_magnitude(difference_of(a, b)), 23u, 0xffu);
    largest = max(largest, vec3<u32>(d, a & 0x7fffffffu, b & 0x7fffffffu));
  }
  let squared = select(0u, 1u, allows_chains(largest.x));
  let norm_a = select(0u, 1u, allows_chains(largest.y));
  let norm_b = select(0u, 1u, allows_chains(largest.z));
  return squared | ((norm_a & norm_b) << 1u) | (norm_a << 2u) | (norm_b << 3u);
}

// The chain's next sums; squares of differences are rounded before they are added.
fn chain_pair(chain: array<vec2<u32>, 4>, pair: Pair) -> array<vec2<u32>, 4> {
  return array<vec2<u32>, 4>(narrowed(wide_add(chain[0], narrowed(wide_multiply(pair.d, pair.d)))),
                             narrowed(wide_add(chain[1], wide_of_product(pair.a, pair.b))),
                             narrowed(wide_add(chain[2], wide_of_product(pair.a, pair.a))),
                             narrowed(wide_add(chain[3], wide_of_product(pair.b, pair.b))));
}

// One lane over a block, whose sums with a bit in `chained` go by its two chains.
fn add_block(state: ptr<function, State>, first: u32, end: u32, chained: u32) {
  var even = array<vec2<u32>, 4>();
  var odd = array<vec2<u32>, 4>();
  for (var e = first; e < end; e += LANES) {
    let pair = look_at_pair(state, e);
    add_pair(state, pair, chained);
    if (chained == 0u) { continue; }
    if ((e & LANES) == 0u) { even = chain_pair(even, pair); }
    else { odd = chain_pair(odd, pair); }
  }
  for (var i = 0u; i < SUMS; i++) {
    if (((chained >> i) & 1u) == 1u) { (*state).sums[i] = wide_add((*state).sums[i], narrowed(wide_add(even[i], odd[i]))); }
  }
}

fn add_lane(state: ptr<function, State>, begin: u32, end: u32, lane: u32) {
  if (CHAINS) {
    for (var block = begin; block < end; block += BLOCK) {
      add_block(state, block + lane, block + min(BLOCK, end - block), w[p.flags + block / BLOCK]);
    }
    return;
  }
  for (var e = begin + lane; e < end; e += LANES) {
    let pair = look_at_pair(state, e);
    add_pair(state, pair, 0u);
  }
}

// ---- lanes ----

@compute @workgroup_size(WG) fn lanes(@builtin(global_invocation_id) id: vec3<u32>,
                                      @builtin(num_workgroups) groups: vec3<u32>) {
  for (var item = id.x; item < p.work; item += groups.x * WG) {
    let begin = item / LANES * SUPERBLOCK;
    let end = begin + min(SUPERBLOCK, p.elements - begin);
    var state: State;
    add_lane(&state, begin, end, item % LANES);
    let at = item * RECORD;
    w[at + EQUAL] = state.equal;
    w[at + NONFINITE] = state.nonfinite;
    put_wide(at + MAX_ABS, state.max_abs);
    put_wide(at + MAX_REL, state.max_rel);
    for (var i = 0u; i < SUMS; i++) { put_wide(at + FIRST_SUM + 2u * i, state.sums[i]); }
  }
}

fn put_wide(at: u32, number: vec2<u32>) {
  w[at] = number.x;
  w[at + 1u] = number.y;
}

fn wide_at(at: u32) -> vec2<u32> { return vec2<u32>(w[at], w[at + 1u]); }

fn lane_at(superblock: u32, lane: u32, word: u32) -> vec2<u32> {
  return wide_at((superblock * LANES + lane) * RECORD + word);
}

fn sum_of_lanes(superblock: u32, word: u32) -> vec2<u32> {
  var quarter: array<vec2<u32>, 4>;
  for (var j = 0u; j < 4u; j++) {
    let low = wide_add(lane_at(superblock, j, word), lane_at(superblock, j + 4u, word));
    quarter[j] = wide_add(low, wide_add(lane_at(superblock, j + 8u, word), lane_at(superblock, j + 12u, word)));
  }
  return wide_add(wide_add(quarter[0], quarter[2]), wide_add(quarter[1], quarter[3]));
}

fn larger_of(a: vec2<u32>, b: vec2<u32>) -> vec2<u32> { return select(a, b, wide_less(a, b)); }

@compute @workgroup_size(WG) fn superblocks(@builtin(global_invocation_id) id: vec3<u32>,
                                            @builtin(num_workgroups) groups: vec3<u32>) {
  for (var superblock = id.x; superblock < p.work; superblock += groups.x * WG) {
    let first = superblock * LANES * RECORD;
    for (var lane = 1u; lane < LANES; lane++) {
      let other = first + lane * RECORD;
      w[first + EQUAL] += w[other + EQUAL];
      w[first + NONFINITE] += w[other + NONFINITE];
      put_wide(first + MAX_ABS, larger_of(wide_at(first + MAX_ABS), wide_at(other + MAX_ABS)));
      put_wide(first + MAX_REL, larger_of(wide_at(first + MAX_REL), wide_at(other + MAX_REL)));
    }
    for (var i = 0u; i < SUMS; i++) { put_wide(first + FIRST_SUM + 2u * i, sum_of_lanes(superblock, FIRST_SUM + 2u * i)); }
  }
}

fn sum_term(sum: u32, i: u32) -> vec2<u32> { return lane_at(i, 0u, FIRST_SUM + 2u * sum); }
fn sum_place(sum: u32) -> u32 { return 5u + 69u * sum; }

// One of the five figures, each by an invocation of its own.
fn put_figure(figure: u32) {
  var counted = 0u;
  var most = WIDE_ZERO;
  for (var superblock = 0u; superblock < p.superblocks; superblock++) {
    let first = superblock * LANES * RECORD;
    if (figure <= 2u) { counted += select(w[first + NONFINITE], w[first + EQUAL], figure == 1u); }
    else { most = larger_of(most, wide_at(first + select(MAX_REL, MAX_ABS, figure == 3u))); }
  }
  if (figure == 0u) { put_word(0u, vec2<u32>(p.elements, 0u)); }
  else if (figure <= 2u) { put_word(figure, vec2<u32>(counted, 0u)); }
  else { put_word(figure, most); }
}

@compute @workgroup_size(WG) fn result(@builtin(local_invocation_index) local: u32) {
  if (local < 5u) { put_figure(local); }
  put_sums(local, p.superblocks);
}
