// SPDX-License-Identifier: Apache-2.0
// sum and mean of floats, and mean of integers, in the canonical order (canonical_sum.h) and in f64, so bit for bit.
// `direct` makes a whole output where there is one superblock.  Else `lanes` makes the f64 of one lane of a superblock,
// `superblocks` adds up 16 of them, and `results` adds those exactly.  w: 16 lanes a superblock; then its sum in lane 0.

const SUPERBLOCK = 32768u;
const LANES = 16u;

fn term_of(place: i32) -> vec2<u32> { return wide_of_raw(raw_at(place)); }

fn lane_of(first: i32, superblock: u32, lane: u32) -> vec2<u32> {
  let begin = superblock * SUPERBLOCK;
  let end = begin + min(SUPERBLOCK, shape.terms - begin);
  var sum = WIDE_ZERO;
  for (var term = begin + lane; term < end; term += LANES) { sum = wide_add(sum, term_of(first + step_to(term))); }
  return sum;
}

fn finish(sum: vec2<u32>, place: i32) {
  var result = sum;
  if (OP == MEAN && shape.terms == 0u) { result = WIDE_NAN; }
  else if (OP == MEAN) { result = wide_divide(sum, wide_of_u32(shape.terms)); }
  if (Y_BYTES == 8u) { store_words(place, result); }
  else { store_raw(place, wide_to_narrow(result, Y_FRACTION_BITS, Y_EXPONENTS)); }
}

@compute @workgroup_size(WG) fn direct(@builtin(global_invocation_id) id: vec3<u32>,
                                       @builtin(num_workgroups) groups: vec3<u32>) {
  for (var output = id.x; output < shape.work; output += groups.x * WG) {
    let places = places_of(output);
    var quarter: array<vec2<u32>, 4>;
    for (var j = 0u; j < 4u; j++) {
      let low = wide_add(lane_of(places.x, 0u, j), lane_of(places.x, 0u, j + 4u));
      quarter[j] = wide_add(low, wide_add(lane_of(places.x, 0u, j + 8u), lane_of(places.x, 0u, j + 12u)));
    }
    finish(wide_add(wide_add(quarter[0], quarter[2]), wide_add(quarter[1], quarter[3])), places.y);
  }
}

@compute @workgroup_size(WG) fn lanes(@builtin(global_invocation_id) id: vec3<u32>,
                                      @builtin(num_workgroups) groups: vec3<u32>) {
  for (var item = id.x; item < shape.work; item += groups.x * WG) {
    let output = item / (LANES * shape.parts);
    let sum = lane_of(places_of(output).x, item / LANES % shape.parts, item % LANES);
    w[2u * item] = sum.x;
    w[2u * item + 1u] = sum.y;
  }
}

fn lane_at(first: u32, lane: u32) -> vec2<u32> {
  let word = 2u * (first * LANES + lane);
  return vec2<u32>(w[word], w[word + 1u]);
}

fn sum_of_lanes(superblock: u32) -> vec2<u32> {
  var quarter: array<vec2<u32>, 4>;
  for (var j = 0u; j < 4u; j++) {
    let low = wide_add(lane_at(superblock, j), lane_at(superblock, j + 4u));
    quarter[j] = wide_add(low, wide_add(lane_at(superblock, j + 8u), lane_at(superblock, j + 12u)));
  }
  return wide_add(wide_add(quarter[0], quarter[2]), wide_add(quarter[1], quarter[3]));
}

@compute @workgroup_size(WG) fn superblocks(@builtin(global_invocation_id) id: vec3<u32>,
                                            @builtin(num_workgroups) groups: vec3<u32>) {
  for (var item = id.x; item < shape.work; item += groups.x * WG) {
    let sum = sum_of_lanes(item);
    w[2u * item * LANES] = sum.x;
    w[2u * item * LANES + 1u] = sum.y;
  }
}

// The exact sum: digits of 32 bits in two's complement, the lowest bit of weight 2^-224.  The terms are f64 made of f32:
// not below 2^-149, so their last bits are not below 2^-201; below 2^144, and less than 2^32 of them.
const DIGITS = 14u;
const LOWEST = 224;

var<private> digits: array<u32, 14>;

fn digits_add(number: vec2<u32>) {
  let integer = vec2<u32>(number.x, (number.y & 0xfffffu) | 0x100000u);
  let position = u32(wide_exponent(number) - 1075 + LOWEST);
  let fill = select(0u, 0xffffffffu, (number.y >> 31u) == 1u);
  var carry = fill & 1u;
  let low = words_left(integer, position & 31u);
  let top = select((integer.y >> 1u) >> (31u - (position & 31u)), 0u, (position & 31u) == 0u);
  for (var i = position >> 5u; i < DIGITS; i++) {
    let place = i - (position >> 5u);
    let part = select(select(select(0u, top, place == 2u), low.y, place == 1u), low.x, place == 0u) ^ fill;
    let first = digits[i] + part;
    let second = first + carry;
    carry = select(0u, 1u, first < part || second < first);
    digits[i] = second;
    if (place >= 2u && carry == (fill & 1u)) { return; }
  }
}

fn digits_read() -> vec2<u32> {
  let sign = digits[DIGITS - 1u] & 0x80000000u;
  var carry = sign >> 31u;
  for (var i = 0u; i < DIGITS && sign != 0u; i++) {
    digits[i] = ~digits[i] + carry;
    carry = select(0u, carry, digits[i] == 0u);
  }
  var top = DIGITS - 1u;
  while (top > 0u && digits[top] == 0u) { top--; }
  if (top < 2u) { return wide_normalize(sign, 1085 - LOWEST, vec2<u32>(digits[0], digits[1])); }
  // The upper 64 bits from the leading one on, and whether anything lies below.
  let zeros = countLeadingZeros(digits[top]);
  let upper = words_left(vec2<u32>(digits[top - 1u], digits[top]), zeros);
  var below = digits[top - 2u] << zeros;
  let rest = select(0u, (digits[top - 2u] >> 1u) >> (31u - zeros), zeros != 0u);
  for (var i = 0u; i + 2u < top; i++) { below |= digits[i]; }
  let marked = vec2<u32>(upper.x | rest | select(0u, 1u, below != 0u), upper.y);
  return wide_normalize(sign, 1085 - LOWEST + 32 * i32(top - 1u) - i32(zeros), marked);
}

@compute @workgroup_size(WG) fn results(@builtin(global_invocation_id) id: vec3<u32>,
                                        @builtin(num_workgroups) groups: vec3<u32>) {
  for (var output = id.x; output < shape.work; output += groups.x * WG) {
    for (var i = 0u; i < DIGITS; i++) { digits[i] = 0u; }
    var special = WIDE_ZERO;
    for (var part = 0u; part < shape.parts; part++) {
      let number = lane_at(output * shape.parts + part, 0u);
      if (wide_exponent(number) == 0x7ff) { special = wide_add(special, number); }
      else if (wide_exponent(number) != 0) { digits_add(number); }
    }
    var sum = digits_read();
    if (wide_exponent(special) == 0x7ff) { sum = special; }
    finish(sum, places_of(output).y);
  }
}
