// SPDX-License-Identifier: Apache-2.0
// Floats into q8_0 and q4_0, as the reference does it in f32: each quotient, product and sum is made in f64 on integers and
// rounded once more, which with more than twice the digits is the same as rounding once.
// An invocation makes two blocks, because those fill whole words.

struct Sizes {
  pairs: u32,
  blocks: u32,
}
@group(0) @binding(0) var<uniform> p: Sizes;

fn x_bits(e: u32) -> u32 {
  if (X_BYTES == 4u) { return from_x(x0[e]); }
  return from_x((x0[e >> 1u] >> ((e & 1u) * 16u)) & 0xffffu);
}

fn f32_product(a: u32, b: u32) -> u32 { return wide_to_narrow(wide_of_product(a, b), 23u, 0xffu); }
fn f32_quotient(a: u32, b: u32) -> u32 { return wide_to_narrow(wide_divide(wide_of_f32(a), wide_of_f32(b)), 23u, 0xffu); }
fn is_zero(bits: u32) -> bool { return (bits & 0x7fffffffu) == 0u; }
fn is_finite(bits: u32) -> bool { return (bits & 0x7f800000u) != 0x7f800000u; }

// The element with the largest magnitude, the first of equal ones; the first NaN, without its sign.
fn extreme_of(first: u32) -> u32 {
  var extreme = 0u;
  for (var i = 0u; i < 32u; i++) {
    let bits = x_bits(first + i);
    if ((bits & 0x7fffffffu) > 0x7f800000u) { return bits & 0x7fffffffu; }
    if ((bits & 0x7fffffffu) > (extreme & 0x7fffffffu)) { extreme = bits; }
  }
  return extreme;
}

// Halves away from zero; beyond a byte the ends; NaN is 0.
fn quant_q8_0(quotient: u32) -> u32 {
  let magnitude = quotient & 0x7fffffffu;
  if (magnitude > 0x7f800000u) { return 0u; }
  let is_negative = quotient != magnitude;
  if (magnitude >= 0x43000000u) { return select(127u, 0x80u, is_negative); }
  let rounded = i32(floor_half_up(magnitude));
  return u32(select(min(rounded, 127), -rounded, is_negative)) & 0xffu;
}

// A number below 2^23 that is not negative, plus a half, rounded down.
fn floor_half_up(magnitude: u32) -> u32 {
  let exponent = magnitude >> 23u;
  if (exponent < 126u) { return 0u; }
  let doubled = ((magnitude & 0x7fffffu) | 0x800000u) >> (149u - exponent);
  return (doubled + 1u) >> 1u;
}

fn quant_q4_0(quotient: u32) -> u32 {
  let shifted = wide_to_narrow(wide_add(wide_of_f32(quotient), wide_of_f32(0x41080000u)), 23u, 0xffu);
  if (shifted > 0x7f800000u) { return 0u; }
  if (shifted >= 0x41700000u) { return 15u; }
  let exponent = shifted >> 23u;
  return select(0u, ((shifted & 0x7fffffu) | 0x800000u) >> (150u - exponent), exponent >= 127u);
}

struct Scale {
  inverse: u32,
  stored: u32,          // f16
  is_finite: bool,
}

fn scale_of(first: u32) -> Scale {
  let extreme = extreme_of(first);
  var scale = extreme;
  if (extreme > 0x7f800000u && extreme < 0x80000000u) { scale |= 0x400000u; }
  else if (BLOCK_BYTES == 34u) { scale = f32_quotient(extreme & 0x7fffffffu, 0x42fe0000u); }
  else { scale = f32_quotient(select(extreme, 0u, is_zero(extreme)), 0xc1000000u); }
  var inverse = 0u;
  if (!is_zero(scale)) { inverse = f32_quotient(0x3f800000u, scale); }
  return Scale(inverse, f16_from_bits(scale), is_finite(scale));
}

fn quant_of(e: u32, scale: Scale) -> u32 {
  if (!scale.is_finite) { return select(8u, 0u, BLOCK_BYTES == 34u); }
  let quotient = f32_product(x_bits(e), scale.inverse);
  if (BLOCK_BYTES == 34u) { return quant_q8_0(quotient); }
  return quant_q4_0(quotient);
}

// Four bytes of quants, `i` counting words of them.
fn quant_word(first: u32, i: u32, scale: Scale) -> u32 {
  var word = 0u;
  for (var j = 0u; j < 4u; j++) {
    let e = first + 4u * i + j;
    var byte = quant_of(e, scale);
    if (BLOCK_BYTES != 34u) { byte |= quant_of(e + 16u, scale) << 4u; }
    word |= byte << (8u * j);
  }
  return word;
}

@compute @workgroup_size(WG) fn run(@builtin(global_invocation_id) id: vec3<u32>,
                                    @builtin(num_workgroups) groups: vec3<u32>) {
  const WORDS = (BLOCK_BYTES - 2u) / 4u;
  for (var pair = id.x; pair < p.pairs; pair += groups.x * WG) {
    let at = pair * (BLOCK_BYTES / 2u);
    let first = pair * 64u;
    let one = scale_of(first);
    var carried = one.stored;
    for (var i = 0u; i < WORDS; i++) {
      let word = quant_word(first, i, one);
      y[at + i] = carried | (word << 16u);
      carried = word >> 16u;
    }
    if (2u * pair + 1u == p.blocks) {
      y[at + WORDS] = carried;
      continue;
    }
    let two = scale_of(first + 32u);
    y[at + WORDS] = carried | (two.stored << 16u);
    for (var i = 0u; i < WORDS; i++) { y[at + WORDS + 1u + i] = quant_word(first + 32u, i, two); }
  }
}
