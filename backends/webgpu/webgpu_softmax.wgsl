// SPDX-License-Identifier: Apache-2.0
// softmax along an axis.  `parts` leaves the largest element of a part and the sum of exponentials relative to it in w,
// `lines` puts the parts together in its first record, `results` makes the elements; `direct` does it all for short lines.
// An exponential is taken of the exact difference, in fixed point: so its error does not grow with the difference.

const SMALLEST = 0xff800000u;   // -Inf, also where there is nothing
const SPECIAL = 1u;             // the line is NaN

struct Part {
  largest: u32,         // bits of f32
  sum: f32,
  special: u32,
}

// In the order of the numbers, as unsigned integers.
fn key_of(bits: u32) -> u32 { return select(bits | 0x80000000u, ~bits, (bits >> 31u) == 1u); }

struct Power {
  fraction: f32,        // in [1, 2]
  exponent: i32,
}

// 2^g, g in [0, 1): the polynomial is good to 2^-34, its last two roundings cost at most 2^-22.
fn power_of_fraction(g: f32) -> f32 {
  var sum = 1.4379508502e-4f + g * 2.1423700673e-5f;
  sum = 1.3418719172e-3f + g * sum;
  sum = 9.6143018454e-3f + g * sum;
  sum = 5.5505018681e-2f + g * sum;
  sum = 2.4022640288e-1f + g * sum;
  sum = 6.9314718246e-1f + g * sum;
  return 1.0f + g * sum;
}

// e^(x - largest); x is not above `largest`, both are finite.  A difference below -200 is no part of any f32 result.
fn exponential(x: u32, largest: u32) -> Power {
  let difference = wide_add(wide_of_f32(largest), wide_negate(wide_of_f32(x)));
  if (wide_exponent(difference) == 0) { return Power(1.0f, 0); }
  if (!wide_less(difference, vec2<u32>(0u, 0x40690000u))) { return Power(1.0f, -1000); }
  // With 32 bits behind the point; times log2(e), which is 0xb8aa3b29 * 2^-31.
  let fixed = words_right(wide_mantissa(difference), min(u32(1085 - 32 - wide_exponent(difference)), 63u));
  let above = words_left(words_multiply(fixed.y, 0xb8aa3b29u), 1u);
  let scaled = words_add(above, words_right(words_multiply(fixed.x, 0xb8aa3b29u), 31u));
  let rest = ~scaled.x + 1u;
  return Power(power_of_fraction(f32(rest) * 0x1p-32f), -i32(scaled.y) - select(1, 0, rest == 0u));
}

fn number_of(power: Power) -> f32 {
  if (power.exponent < -126) { return 0.0f; }
  return bitcast<f32>(bitcast<u32>(power.fraction) + (u32(power.exponent) << 23u));
}

fn put_record(at: u32, part: Part) {
  w[3u * at] = part.largest;
  w[3u * at + 1u] = bitcast<u32>(part.sum);
  w[3u * at + 2u] = part.special;
}

fn record_at(at: u32) -> Part { return Part(w[3u * at], bitcast<f32>(w[3u * at + 1u]), w[3u * at + 2u]); }

fn part_of(first: i32, begin: u32, stride: u32) -> Part {
  var part = Part(SMALLEST, 0.0f, 0u);
  for (var e = begin; e < p.length; e += stride) {
    let x = x_at(first, e);
    if ((x & 0x7fffffffu) > 0x7f800000u || x == 0x7f800000u) { part.special = SPECIAL; }
    else if (key_of(x) > key_of(part.largest)) { part.largest = x; }
  }
  if (part.largest == SMALLEST || part.special == SPECIAL) { return part; }
  for (var e = begin; e < p.length; e += stride) {
    let x = x_at(first, e);
    if (x != SMALLEST) { part.sum += number_of(exponential(x, part.largest)); }
  }
  return part;
}

@compute @workgroup_size(WG) fn parts(@builtin(global_invocation_id) id: vec3<u32>,
                                      @builtin(num_workgroups) groups: vec3<u32>) {
  for (var item = id.x; item < p.work; item += groups.x * WG) {
    put_record(item, part_of(places_of(item / p.parts).x, item % p.parts, p.parts));
  }
}

@compute @workgroup_size(WG) fn lines(@builtin(global_invocation_id) id: vec3<u32>,
                                      @builtin(num_workgroups) groups: vec3<u32>) {
  for (var line = id.x; line < p.work; line += groups.x * WG) {
    var whole = Part(SMALLEST, 0.0f, 0u);
    for (var i = 0u; i < p.parts; i++) {
      let part = record_at(line * p.parts + i);
      whole.special |= part.special;
      if (key_of(part.largest) > key_of(whole.largest)) { whole.largest = part.largest; }
    }
    for (var i = 0u; i < p.parts && whole.largest != SMALLEST; i++) {
      let part = record_at(line * p.parts + i);
      if (part.largest != SMALLEST) { whole.sum += part.sum * number_of(exponential(part.largest, whole.largest)); }
    }
    put_record(line * p.parts, whole);
  }
}

fn result_of(x: u32, whole: Part) -> vec2<u32> {
  if (whole.special == SPECIAL || whole.largest == SMALLEST) { return WIDE_NAN; }
  if (x == SMALLEST) { return WIDE_ZERO; }
  let power = exponential(x, whole.largest);
  if (power.exponent <= -1000) { return WIDE_ZERO; }
  let quotient = wide_of_f32(bitcast<u32>(power.fraction / whole.sum));
  return vec2<u32>(quotient.x, quotient.y - (u32(-power.exponent) << 20u));
}

@compute @workgroup_size(WG) fn results(@builtin(global_invocation_id) id: vec3<u32>,
                                        @builtin(num_workgroups) groups: vec3<u32>) {
  for (var item = id.x; item < p.work; item += groups.x * WG) {
    let line = item / p.length;
    let e = item % p.length;
    let places = places_of(line);
    store(places.y, e, result_of(x_at(places.x, e), record_at(line * p.parts)));
  }
}

@compute @workgroup_size(WG) fn direct(@builtin(global_invocation_id) id: vec3<u32>,
                                       @builtin(num_workgroups) groups: vec3<u32>) {
  for (var line = id.x; line < p.work; line += groups.x * WG) {
    let places = places_of(line);
    let whole = part_of(places.x, 0u, 1u);
    for (var e = 0u; e < p.length; e++) { store(places.y, e, result_of(x_at(places.x, e), whole)); }
  }
}
