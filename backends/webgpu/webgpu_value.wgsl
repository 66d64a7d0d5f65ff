// SPDX-License-Identifier: Apache-2.0
// Elements as the bits of an f32, which holds those of every narrower format exactly; and back, where no rounding is
// left to do.  Formats are numbers of types.h, known when the module is compiled.

const F32 = 2u;
const F16 = 3u;
const BF16 = 4u;
const F8_E4M3FN = 5u;
const F8_E5M2 = 6u;
const I8 = 18u;
const U8 = 19u;
const I16 = 20u;
const U16 = 21u;
const Q4_0 = 0x102u;
const Q8_0 = 0x108u;

// sign and magnitude of an integer below 2^24 times 2^exponent, as f32 bits; the result is normal or zero.
fn value_of_integer(sign: u32, integer: u32, exponent: i32) -> u32 {
  if (integer == 0u) { return sign; }
  let zeros = countLeadingZeros(integer);
  return sign | ((u32(158 + exponent - i32(zeros)) << 23u) + (((integer << zeros) >> 8u) & 0x7fffffu));
}

fn value_of_signed(integer: i32) -> u32 {
  return value_of_integer(select(0u, 0x80000000u, integer < 0), u32(abs(integer)), 0);
}

fn value_of_f16(raw: u32) -> u32 {
  let sign = (raw & 0x8000u) << 16u;
  let magnitude = raw & 0x7fffu;
  if (magnitude < 0x400u) { return value_of_integer(sign, magnitude, -24); }
  return sign | ((magnitude << 13u) + select(0x38000000u, 0x70000000u, magnitude >= 0x7c00u));
}

fn value_of_f8_e4m3fn(raw: u32) -> u32 {
  let sign = (raw & 0x80u) << 24u;
  let magnitude = raw & 0x7fu;
  if (magnitude < 8u) { return value_of_integer(sign, magnitude, -9); }
  return select(sign | ((magnitude << 20u) + 0x3c000000u), sign | 0x7fc00000u, magnitude == 0x7fu);
}

// `raw` holds the element in its low bits.
fn value_of(format: u32, raw: u32) -> u32 {
  switch format {
    case F16: { return value_of_f16(raw); }
    case BF16: { return raw << 16u; }
    case F8_E4M3FN: { return value_of_f8_e4m3fn(raw); }
    case F8_E5M2: { return value_of_f16(raw << 8u); }
    case I8: { return value_of_signed(i32(raw << 24u) >> 24u); }
    case I16: { return value_of_signed(i32(raw << 16u) >> 16u); }
    case U8, U16: { return value_of_integer(0u, raw, 0); }
    default: { return raw; }
  }
}

fn value_is_finite(bits: u32) -> bool { return (bits & 0x7f800000u) != 0x7f800000u; }
