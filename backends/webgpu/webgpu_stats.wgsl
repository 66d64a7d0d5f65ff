// SPDX-License-Identifier: Apache-2.0
// Statistics of a tensor, bit for bit: canonical_sum.h says in which order the sums are made.
//   blocks        whether a block of 512 elements is summed by chains of f32 (CHAINS only)
//   lanes         a record for each lane of each superblock
//   superblocks   the 16 records of a superblock into its first one
//   result        one workgroup: all superblocks into the result
// Values are bits of f32, which holds all formats here.  The prologue says x_value(e), CHAINS, GROUPS (blocks of 32
// elements with a scale) and SMALLEST_NORMAL, the bits of the format's.

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

// Words of a record; counts first, then extremes as keys, then two f64.
const ZERO = 3u;
const SUBNORMAL = 4u;
const MIN = 5u;
const MAX = 6u;
const ABS_MAX = 7u;
const SUM = 8u;
const SQUARES = 10u;
const RECORD = 12u;

const NO_MIN = 0xffffffffu;
const NO_MAX = 0u;

struct Counts {
  nan: u32,
  positive: u32,
  negative: u32,
  zero: u32,
  subnormal: u32,
  least: u32,
  most: u32,
  largest: u32,
}

// In the order of the numbers, as unsigned integers; -0 is +0.
fn key_of(bits: u32) -> u32 {
  if ((bits & 0x7fffffffu) == 0u) { return 0x80000000u; }
  return select(bits | 0x80000000u, ~bits, (bits >> 31u) == 1u);
}

// Returns the value where it is finite, else +0, which adds nothing.
fn classify(counts: ptr<function, Counts>, bits: u32) -> u32 {
  let magnitude = bits & 0x7fffffffu;
  if (magnitude >= 0x7f800000u) {
    (*counts).nan += select(0u, 1u, magnitude > 0x7f800000u);
    (*counts).positive += select(0u, 1u, bits == 0x7f800000u);
    (*counts).negative += select(0u, 1u, bits == 0xff800000u);
    return 0u;
  }
  (*counts).zero += select(0u, 1u, magnitude == 0u);
  (*counts).subnormal += select(0u, 1u, magnitude != 0u && magnitude < SMALLEST_NORMAL);
  (*counts).least = min((*counts).least, key_of(bits));
  (*counts).most = max((*counts).most, key_of(bits));
  (*counts).largest = max((*counts).largest, magnitude);
  return bits;
}

// ---- blocks ----

@compute @workgroup_size(WG) fn blocks(@builtin(global_invocation_id) id: vec3<u32>,
                                       @builtin(num_workgroups) groups: vec3<u32>) {
  for (var block = id.x; block < p.work; block += groups.x * WG) {
    let first = block * BLOCK;
    var largest = 0u;
    for (var e = first; e < first + min(BLOCK, p.elements - first); e++) {
      let magnitude = x_value(e) & 0x7fffffffu;
      largest = max(largest, select(0u, magnitude, magnitude < 0x7f800000u));
    }
    w[p.flags + block] = select(0u, 1u, largest >= 0x26800000u && largest < 0x5d800000u);
  }
}

// ---- lanes ----

struct Sums {
  sum: vec2<u32>,
  squares: vec2<u32>,
}

fn add_by_lane(counts: ptr<function, Counts>, sums: ptr<function, Sums>, first: u32, end: u32) {
  for (var e = first; e < end; e += LANES) {
    let bits = classify(counts, x_value(e));
    (*sums).sum = wide_add((*sums).sum, wide_of_f32(bits));
    (*sums).squares = wide_add((*sums).squares, wide_of_product(bits, bits));
  }
}

// f32 sums by way of f64: with more than twice the digits two roundings are one.
fn narrowed(a: vec2<u32>) -> vec2<u32> { return wide_of_f32(wide_to_narrow(a, 23u, 0xffu)); }

fn add_by_chains(counts: ptr<function, Counts>, sums: ptr<function, Sums>, first: u32, end: u32) {
  var sum = array<vec2<u32>, 2>(WIDE_ZERO, WIDE_ZERO);
  var squares = array<vec2<u32>, 2>(WIDE_ZERO, WIDE_ZERO);
  for (var i = 0u; first + i * LANES < end; i++) {
    let bits = classify(counts, x_value(first + i * LANES));
    sum[i & 1u] = narrowed(wide_add(sum[i & 1u], wide_of_f32(bits)));
    squares[i & 1u] = narrowed(wide_add(squares[i & 1u], wide_of_product(bits, bits)));
  }
  (*sums).sum = wide_add((*sums).sum, narrowed(wide_add(sum[0], sum[1])));
  (*sums).squares = wide_add((*sums).squares, narrowed(wide_add(squares[0], squares[1])));
}

// 32 elements of one scale are one term.
fn add_group(counts: ptr<function, Counts>, sums: ptr<function, Sums>, group: u32) {
  let block = group * BLOCK_BYTES;
  let scale = bits_from_f16(block_half(block));
  var sum = 0;
  var squares = 0;
  for (var e = 0u; e < 32u; e += 4u) {
    let values = block_quad(block, e);
    let quants = block_quants(block, e);
    for (var i = 0u; i < 4u; i++) { classify(counts, values[i]); }
    sum += dot(quants, vec4<i32>(1));
    squares += dot(quants, quants);
  }
  if ((scale & 0x7f800000u) == 0x7f800000u) { return; }
  (*sums).sum = wide_add((*sums).sum, wide_multiply(wide_of_f32(scale), wide_of_i32(sum)));
  (*sums).squares = wide_add((*sums).squares, wide_multiply(wide_of_product(scale, scale), wide_of_i32(squares)));
}

fn add_lane(counts: ptr<function, Counts>, sums: ptr<function, Sums>, superblock: u32, lane: u32) {
  let begin = superblock * SUPERBLOCK;
  let end = begin + min(SUPERBLOCK, p.elements - begin);
  if (GROUPS) {
    for (var group = begin / 32u + lane; group < end / 32u; group += LANES) { add_group(counts, sums, group); }
  } else if (CHAINS) {
    for (var block = begin; block < end; block += BLOCK) {
      let last = block + min(BLOCK, end - block);
      if (w[p.flags + block / BLOCK] == 1u) { add_by_chains(counts, sums, block + lane, last); }
      else { add_by_lane(counts, sums, block + lane, last); }
    }
  } else {
    add_by_lane(counts, sums, begin + lane, end);
  }
}

fn put_record(at: u32, counts: Counts, sums: Sums) {
  let words = array<u32, 12>(counts.nan, counts.positive, counts.negative, counts.zero, counts.subnormal, counts.least,
                             counts.most, counts.largest, sums.sum.x, sums.sum.y, sums.squares.x, sums.squares.y);
  for (var i = 0u; i < RECORD; i++) { w[at + i] = words[i]; }
}

@compute @workgroup_size(WG) fn lanes(@builtin(global_invocation_id) id: vec3<u32>,
                                      @builtin(num_workgroups) groups: vec3<u32>) {
  for (var item = id.x; item < p.work; item += groups.x * WG) {
    var counts = Counts(0u, 0u, 0u, 0u, 0u, NO_MIN, NO_MAX, 0u);
    var sums = Sums(WIDE_ZERO, WIDE_ZERO);
    add_lane(&counts, &sums, item / LANES, item % LANES);
    put_record(item * RECORD, counts, sums);
  }
}

// ---- superblocks ----

fn lane_at(superblock: u32, lane: u32, word: u32) -> vec2<u32> {
  let at = (superblock * LANES + lane) * RECORD + word;
  return vec2<u32>(w[at], w[at + 1u]);
}

fn sum_of_lanes(superblock: u32, word: u32) -> vec2<u32> {
  var quarter: array<vec2<u32>, 4>;
  for (var j = 0u; j < 4u; j++) {
    let low = wide_add(lane_at(superblock, j, word), lane_at(superblock, j + 4u, word));
    quarter[j] = wide_add(low, wide_add(lane_at(superblock, j + 8u, word), lane_at(superblock, j + 12u, word)));
  }
  return wide_add(wide_add(quarter[0], quarter[2]), wide_add(quarter[1], quarter[3]));
}

@compute @workgroup_size(WG) fn superblocks(@builtin(global_invocation_id) id: vec3<u32>,
                                            @builtin(num_workgroups) groups: vec3<u32>) {
  for (var superblock = id.x; superblock < p.work; superblock += groups.x * WG) {
    let first = superblock * LANES * RECORD;
    let sum = sum_of_lanes(superblock, SUM);
    let squares = sum_of_lanes(superblock, SQUARES);
    for (var lane = 1u; lane < LANES; lane++) {
      let other = first + lane * RECORD;
      for (var i = 0u; i <= SUBNORMAL; i++) { w[first + i] += w[other + i]; }
      w[first + MIN] = min(w[first + MIN], w[other + MIN]);
      w[first + MAX] = max(w[first + MAX], w[other + MAX]);
      w[first + ABS_MAX] = max(w[first + ABS_MAX], w[other + ABS_MAX]);
    }
    w[first + SUM] = sum.x;
    w[first + SUM + 1u] = sum.y;
    w[first + SQUARES] = squares.x;
    w[first + SQUARES + 1u] = squares.y;
  }
}

// ---- result ----

fn sum_term(sum: u32, i: u32) -> vec2<u32> { return lane_at(i, 0u, SUM + 2u * sum); }
fn sum_place(sum: u32) -> u32 { return 9u + 69u * sum; }

var<workgroup> totals: array<atomic<u32>, 8>;

fn wide_of_key(key: u32) -> vec2<u32> { return wide_of_f32(select(~key, key & 0x7fffffffu, (key >> 31u) == 1u)); }

fn put_figures() {
  put_word(0u, vec2<u32>(p.elements, 0u));
  for (var i = 0u; i <= SUBNORMAL; i++) { put_word(1u + i, vec2<u32>(atomicLoad(&totals[i]), 0u)); }
  let least = atomicLoad(&totals[MIN]);
  let most = atomicLoad(&totals[MAX]);
  put_word(6u, select(wide_of_key(least), WIDE_INFINITY, least == NO_MIN));
  put_word(7u, select(wide_of_key(most), vec2<u32>(0u, 0xfff00000u), most == NO_MAX));
  put_word(8u, wide_of_f32(atomicLoad(&totals[ABS_MAX])));
}

@compute @workgroup_size(WG) fn result(@builtin(local_invocation_index) local: u32) {
  if (local < 8u) { atomicStore(&totals[local], select(0u, NO_MIN, local == MIN)); }
  workgroupBarrier();
  for (var superblock = local; superblock < p.superblocks; superblock += WG) {
    let first = superblock * LANES * RECORD;
    for (var i = 0u; i <= SUBNORMAL; i++) { atomicAdd(&totals[i], w[first + i]); }
    atomicMin(&totals[MIN], w[first + MIN]);
    atomicMax(&totals[MAX], w[first + MAX]);
    atomicMax(&totals[ABS_MAX], w[first + ABS_MAX]);
  }
  workgroupBarrier();
  if (local == 0u) { put_figures(); }
  put_sums(local, p.superblocks);
}
