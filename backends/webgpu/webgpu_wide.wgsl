// SPDX-License-Identifier: Apache-2.0
// f64 in integers.  WGSL has no f64, and its f32 may round either way, flush, reorder and fuse; integers it computes
// exactly, so what is computed here is what IEEE 754 says, bit for bit.  A number is vec2(low word, high word) of its f64
// bits.  Operands are zero, normal, infinite or NaN, and so are results: subnormal f64 cannot come of sums and products of
// f32 and narrower numbers.

const WIDE_ZERO = vec2<u32>(0u, 0u);
const WIDE_NAN = vec2<u32>(0u, 0x7ff80000u);
const WIDE_INFINITY = vec2<u32>(0u, 0x7ff00000u);

fn wide_less(a: vec2<u32>, b: vec2<u32>) -> bool { return a.y < b.y || (a.y == b.y && a.x < b.x); }

fn wide_magnitude(a: vec2<u32>) -> vec2<u32> { return vec2<u32>(a.x, a.y & 0x7fffffffu); }

fn words_add(a: vec2<u32>, b: vec2<u32>) -> vec2<u32> {
  let low = a.x + b.x;
  return vec2<u32>(low, a.y + b.y + select(0u, 1u, low < a.x));
}

fn words_subtract(a: vec2<u32>, b: vec2<u32>) -> vec2<u32> {
  return vec2<u32>(a.x - b.x, a.y - b.y - select(0u, 1u, a.x < b.x));
}

// Shifts by 0 to 63.
fn words_left(a: vec2<u32>, count: u32) -> vec2<u32> {
  let places = count & 31u;
  let carried = select((a.x >> 1u) >> (31u - places), 0u, places == 0u);
  let near = vec2<u32>(a.x << places, (a.y << places) | carried);
  return select(near, vec2<u32>(0u, near.x), count >= 32u);
}

fn words_right(a: vec2<u32>, count: u32) -> vec2<u32> {
  let places = count & 31u;
  let carried = select((a.y << 1u) << (31u - places), 0u, places == 0u);
  let near = vec2<u32>((a.x >> places) | carried, a.y >> places);
  return select(near, vec2<u32>(near.y, 0u), count >= 32u);
}

// Shifts right by any count; what falls out leaves a mark in the lowest bit.
fn words_right_marked(a: vec2<u32>, count: u32) -> vec2<u32> {
  let places = min(count, 63u);
  let kept = words_right(a, places);
  let back = words_left(kept, places);
  let lost = any(back != a) || (count > 63u && any(a != vec2<u32>(0u)));
  return vec2<u32>(select(kept.x, select(0u, kept.x, count <= 63u) | 1u, lost), select(0u, kept.y, count <= 63u));
}

fn words_leading_zeros(a: vec2<u32>) -> u32 {
  return select(countLeadingZeros(a.y), 32u + countLeadingZeros(a.x), a.y == 0u);
}

fn words_multiply(a: u32, b: u32) -> vec2<u32> {
  let low = (a & 0xffffu) * (b & 0xffffu);
  let middle = (a >> 16u) * (b & 0xffffu) + (low >> 16u);
  let other = (a & 0xffffu) * (b >> 16u) + (middle & 0xffffu);
  return vec2<u32>((other << 16u) | (low & 0xffffu), (a >> 16u) * (b >> 16u) + (middle >> 16u) + (other >> 16u));
}

// The number sign * mantissa * 2^(exponent - 1085), rounded to nearest, ties to even; the mantissa's leading bit is bit 62,
// so that exponent is the biased one of the result.
fn wide_round(sign: u32, exponent: i32, mantissa: vec2<u32>) -> vec2<u32> {
  let odd = (mantissa.x >> 10u) & 1u;
  let raised = words_add(mantissa, vec2<u32>(0x1ffu + odd, 0u));
  let fraction = vec2<u32>((raised.x >> 10u) | (raised.y << 22u), raised.y >> 10u);
  return vec2<u32>(fraction.x, (sign | (u32(exponent - 1) << 20u)) + fraction.y);
}

// The same for a mantissa with its leading bit anywhere, which is then brought to bit 62; zero gives +0.
fn wide_normalize(sign: u32, exponent: i32, mantissa: vec2<u32>) -> vec2<u32> {
  let zeros = words_leading_zeros(mantissa);
  if (zeros == 64u) { return WIDE_ZERO; }
  if (zeros == 0u) { return wide_round(sign, exponent + 1, words_right_marked(mantissa, 1u)); }
  return wide_round(sign, exponent + 1 - i32(zeros), words_left(mantissa, zeros - 1u));
}

// With the leading bit in place 62, of a number that is not zero.
fn wide_mantissa(a: vec2<u32>) -> vec2<u32> {
  return vec2<u32>(a.x << 10u, (((a.y & 0xfffffu) | 0x100000u) << 10u) | (a.x >> 22u));
}

fn wide_exponent(a: vec2<u32>) -> i32 { return i32((a.y >> 20u) & 0x7ffu); }

fn wide_add(a: vec2<u32>, b: vec2<u32>) -> vec2<u32> {
  let swapped = wide_less(wide_magnitude(a), wide_magnitude(b));
  let large = select(a, b, swapped);
  let small = select(b, a, swapped);
  let exponent = wide_exponent(large);
  if (exponent == 0x7ff) {
    let cancels = all(wide_magnitude(small) == WIDE_INFINITY) && small.y != large.y;
    return select(large, WIDE_NAN, cancels);
  }
  if (wide_exponent(small) == 0) { return select(large, WIDE_ZERO, exponent == 0); }
  let sign = large.y & 0x80000000u;
  let addend = words_right_marked(wide_mantissa(small), u32(exponent - wide_exponent(small)));
  if (((a.y ^ b.y) & 0x80000000u) != 0u) {
    return wide_normalize(sign, exponent, words_subtract(wide_mantissa(large), addend));
  }
  let sum = words_add(wide_mantissa(large), addend);
  let is_long = sum.y >> 31u;
  let fitted = vec2<u32>(select(sum.x, (sum.x >> 1u) | (sum.x & 1u) | (sum.y << 31u), is_long == 1u), sum.y >> is_long);
  return wide_round(sign, exponent + i32(is_long), fitted);
}

// The 106 bits of the product of two fractions with their leading ones, in four words.
fn wide_fraction_product(a: vec2<u32>, b: vec2<u32>) -> vec4<u32> {
  let high = vec2<u32>((a.y & 0xfffffu) | 0x100000u, (b.y & 0xfffffu) | 0x100000u);
  let low = words_multiply(a.x, b.x);
  let middle = words_add(words_multiply(a.x, high.y), words_multiply(high.x, b.x));
  let carried = words_add(middle, vec2<u32>(low.y, 0u));
  let top = words_add(words_multiply(high.x, high.y), vec2<u32>(carried.y, 0u));
  return vec4<u32>(low.x, carried.x, top);
}

fn wide_multiply(a: vec2<u32>, b: vec2<u32>) -> vec2<u32> {
  let sign = (a.y ^ b.y) & 0x80000000u;
  let is_zero = wide_exponent(a) == 0 || wide_exponent(b) == 0;
  if (max(wide_exponent(a), wide_exponent(b)) == 0x7ff) {
    let is_nan = is_zero || wide_less(WIDE_INFINITY, wide_magnitude(a)) || wide_less(WIDE_INFINITY, wide_magnitude(b));
    return select(vec2<u32>(0u, sign | WIDE_INFINITY.y), WIDE_NAN, is_nan);
  }
  if (is_zero) { return vec2<u32>(0u, sign); }
  // The upper 64 bits; the leading one is bit 104 or 105 of the product.
  let product = wide_fraction_product(a, b);
  let below = product.x | (product.y << 22u);
  let upper = vec2<u32>((product.y >> 10u) | (product.z << 22u), (product.z >> 10u) | (product.w << 22u));
  let marked = vec2<u32>(upper.x | select(0u, 1u, below != 0u), upper.y);
  return wide_normalize(sign, wide_exponent(a) + wide_exponent(b) - 1023, marked);
}

fn wide_negate(a: vec2<u32>) -> vec2<u32> { return vec2<u32>(a.x, a.y ^ 0x80000000u); }

// An integer of 32 bits without a sign.
fn wide_of_u32(value: u32) -> vec2<u32> { return wide_normalize(0u, 1085, vec2<u32>(value, 0u)); }

fn wide_of_i32(value: i32) -> vec2<u32> {
  return wide_normalize(u32(value) & 0x80000000u, 1085, vec2<u32>(u32(abs(value)), 0u));
}

// An f32, by its bits.
fn wide_of_f32(bits: u32) -> vec2<u32> {
  let exponent = (bits >> 23u) & 0xffu;
  let sign = bits & 0x80000000u;
  if (exponent == 0u) {
    if ((bits & 0x7fffffu) == 0u) { return vec2<u32>(0u, sign); }
    return wide_normalize(sign, 1085 - 149, vec2<u32>(bits & 0x7fffffu, 0u));
  }
  let raised = select(0x38000000u, 0x70000000u, exponent == 0xffu);
  return vec2<u32>(bits << 29u, sign | (((bits & 0x7fffffffu) >> 3u) + raised));
}

// The product of two f32, by their bits; it is exact.
fn wide_of_product(a: u32, b: u32) -> vec2<u32> {
  let a_exponent = (a >> 23u) & 0xffu;
  let b_exponent = (b >> 23u) & 0xffu;
  if (max(a_exponent, b_exponent) == 0xffu) {
    let is_nan = max(a & 0x7fffffffu, b & 0x7fffffffu) > 0x7f800000u || min(a & 0x7fffffffu, b & 0x7fffffffu) == 0u;
    return select(vec2<u32>(0u, WIDE_INFINITY.y | ((a ^ b) & 0x80000000u)), WIDE_NAN, is_nan);
  }
  let a_integer = (a & 0x7fffffu) | select(0u, 0x800000u, a_exponent != 0u);
  let b_integer = (b & 0x7fffffu) | select(0u, 0x800000u, b_exponent != 0u);
  let exponent = i32(max(a_exponent, 1u) + max(b_exponent, 1u)) - 300 + 1085;
  return wide_normalize((a ^ b) & 0x80000000u, exponent, words_multiply(a_integer, b_integer));
}

// Rounds to an f32 or a narrower float of `fraction_bits` and a largest exponent of `exponent_mask`, and gives its bits
// with the sign on top of them.  Takes every f64.
fn wide_to_narrow(a: vec2<u32>, fraction_bits: u32, exponent_mask: u32) -> u32 {
  let exponent_bits = countOneBits(exponent_mask);
  let sign = (a.y >> 31u) << (fraction_bits + exponent_bits);
  let infinity = exponent_mask << fraction_bits;
  let exponent = wide_exponent(a);
  if (exponent == 0x7ff) {
    return sign | infinity | select(0u, 1u << (fraction_bits - 1u), ((a.y & 0xfffffu) | a.x) != 0u);
  }
  if (exponent == 0) { return sign; }
  let biased = exponent - 1023 + i32(exponent_mask >> 1u);
  if (biased >= i32(exponent_mask)) { return sign | infinity; }
  let dropped = 62u - fraction_bits + u32(max(1 - biased, 0));
  let mantissa = wide_mantissa(a);
  let kept = words_right(mantissa, min(dropped, 63u)).x;
  let rest = select(words_left(mantissa, 64u - dropped), vec2<u32>(mantissa.x, 0u), dropped > 63u);
  let half = vec2<u32>(0u, 0x80000000u);
  let up = dropped <= 63u && (wide_less(half, rest) || (all(rest == half) && (kept & 1u) == 1u));
  let integer = select(kept, 0u, dropped > 63u) + select(0u, 1u, up);
  return sign | ((u32(max(biased, 1) - 1) << fraction_bits) + integer);
}

struct Division {
  rest: vec2<u32>,
  quotient: vec2<u32>,
}

// One bit of a quotient.
fn divide_once(so_far: Division, divisor: vec2<u32>) -> Division {
  let fits = !wide_less(so_far.rest, divisor);
  let rest = select(so_far.rest, words_subtract(so_far.rest, divisor), fits);
  return Division(words_left(rest, 1u), words_left(so_far.quotient, 1u) | vec2<u32>(select(0u, 1u, fits), 0u));
}

// a / b, rounded.  b is not zero, and not both are infinite.  Eight bits a turn, because some implementations count turns.
fn wide_divide(a: vec2<u32>, b: vec2<u32>) -> vec2<u32> {
  let sign = (a.y ^ b.y) & 0x80000000u;
  if (wide_exponent(a) == 0) { return vec2<u32>(0u, sign); }
  if (wide_exponent(a) == 0x7ff) { return vec2<u32>(a.x, a.y ^ (b.y & 0x80000000u)); }
  if (wide_exponent(b) == 0x7ff) { return select(b, vec2<u32>(0u, sign), all(wide_magnitude(b) == WIDE_INFINITY)); }
  let divisor = wide_mantissa(b);
  var so_far = Division(wide_mantissa(a), vec2<u32>(0u));
  for (var i = 0u; i < 7u; i++) {
    so_far = divide_once(divide_once(divide_once(divide_once(so_far, divisor), divisor), divisor), divisor);
    so_far = divide_once(divide_once(divide_once(divide_once(so_far, divisor), divisor), divisor), divisor);
  }
  let marked = so_far.quotient | vec2<u32>(select(0u, 1u, any(so_far.rest != vec2<u32>(0u))), 0u);
  // The first bit weighs 2^0 relative to the exponents' difference and stands in place 55.
  return wide_normalize(sign, wide_exponent(a) - wide_exponent(b) + 1023 + 7, marked);
}

// The root of a number that is not negative, rounded: one bit of it at a time.
fn wide_sqrt(a: vec2<u32>) -> vec2<u32> {
  let exponent = wide_exponent(a);
  if (exponent == 0 || exponent == 0x7ff) { return a; }
  // Two bits of the fraction enter the rest at a time, beginning with its integer part; what is left of the exponent is even.
  let is_odd = u32(exponent & 1);
  var left = words_left(vec2<u32>(a.x, (a.y & 0xfffffu) | 0x100000u), 11u - is_odd);
  var rest = vec2<u32>(0u);
  var root = vec2<u32>(0u);
  for (var i = 0u; i < 56u; i++) {
    rest = words_left(rest, 2u) | vec2<u32>(left.y >> 30u, 0u);
    left = words_left(left, 2u);
    let trial = words_left(root, 2u) | vec2<u32>(1u, 0u);
    root = words_left(root, 1u);
    if (!wide_less(rest, trial)) {
      rest = words_subtract(rest, trial);
      root.x |= 1u;
    }
  }
  root.x |= select(0u, 1u, any(rest != vec2<u32>(0u)));
  return wide_normalize(0u, (exponent - 1023 - 1 + i32(is_odd)) / 2 + 1023 + 7, root);
}
