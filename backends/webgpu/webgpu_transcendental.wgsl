// SPDX-License-Identifier: Apache-2.0
// exp, log, tanh, sigmoid, erf, gelu, silu from additions and multiplications of normal numbers, whose accuracy WGSL
// promises; its own functions are far less exact.  What is not finite, zero, tiny or subnormal is told apart, and put
// together, by bits.  Coefficients: least maximum of the relative error on the interval, fitted in extended precision.

const ONE: u32 = 0x3f800000u;
const TINY: f32 = 2.44140625e-4;        // below it x + x^3 / 3 rounds to x

fn number(v: u32) -> f32 { return bitcast<f32>(v); }
fn bits(v: f32) -> u32 { return bitcast<u32>(v); }
fn is_negative(v: u32) -> bool { return (v & F32_SIGN) != 0u; }

// p * 2^n, p near 1.
struct Power { p: f32, n: i32 }

// e^(x + rest), |rest| small against ln 2; |x| below 200.
fn power_of(x: f32, rest: f32) -> Power {
  let n = floor(x * 1.4426950408889634 + 0.5);
  let r = ((x - n * 0.693359375) + n * 2.12194440e-4) + rest;
  let q = 0.5 + r * (0.16666512191295624 + r * (0.0416661873459816 + r * (0.008369598537683487 + r * 0.0013951719738543034)));
  return Power(1.0 + (r + r * r * q), i32(n));
}

fn exp_of(x: f32) -> u32 {
  if (x > 89.0) { return F32_INFINITY; }
  if (x < -104.0) { return 0u; }
  let e = power_of(x, 0.0);
  return scaled(bits(e.p), e.n);
}

fn exp_bits(v: u32) -> u32 {
  if (is_nan_bits(v)) { return v; }
  if (is_infinite_bits(v)) { return select(v, 0u, is_negative(v)); }
  return exp_of(number(v));
}

fn log_bits(v: u32) -> u32 {
  if (is_nan_bits(v)) { return v; }
  if ((v & 0x7fffffffu) == 0u) { return F32_SIGN | F32_INFINITY; }
  if (is_negative(v)) { return QUIET_NAN; }
  if (is_infinite_bits(v)) { return v; }
  let parts = parts_of(v);
  var m = number(ONE | (parts.m & 0x7fffffu));
  var n = f32(parts.exponent - 127);
  if (m > 1.4142135) {
    m = m * 0.5;
    n = n + 1.0;
  }
  let f = m - 1.0;
  let z = f * f;
  let high = 0.2000216692686081 + f * (-0.16668090224266052 + f * (0.1421855390071869 + f * (-0.12403083592653275 +
      f * (0.11893512308597565 + f * (-0.1169433519244194 + f * 0.06757570058107376)))));
  var y = f * z * (0.3333331048488617 + f * (-0.25000008940696716 + f * high));
  y = y - n * 2.12194440e-4;
  y = y - 0.5 * z;
  return bits((f + y) + n * 0.693359375);
}

// 1 / (1 + e^-x) for any finite x.
fn sigmoid_of(x: f32) -> u32 {
  if (x >= 0.0) { return bits(1.0 / (1.0 + number(exp_of(max(-x, -80.0))))); }
  if (x < -20.0) { return exp_of(x); }
  let e = number(exp_of(x));
  return bits(e / (1.0 + e));
}

fn sigmoid_bits(v: u32) -> u32 {
  if (is_nan_bits(v)) { return v; }
  if (is_infinite_bits(v)) { return select(ONE, 0u, is_negative(v)); }
  return sigmoid_of(number(v));
}

fn silu_bits(v: u32) -> u32 {
  if (is_nan_bits(v)) { return v; }
  if (is_infinite_bits(v)) { return select(v, QUIET_NAN, is_negative(v)); }
  let x = number(v);
  if (x >= -20.0) { return mul_bits(v, sigmoid_of(x)); }
  if (x < -120.0) { return F32_SIGN; }
  let e = power_of(x, 0.0);
  return scaled(bits(x * e.p), e.n);
}

fn tanh_bits(v: u32) -> u32 {
  if (is_nan_bits(v)) { return v; }
  let sign = v & F32_SIGN;
  let a = number(v & 0x7fffffffu);
  if (is_infinite_bits(v) || a > 9.1) { return sign | ONE; }
  if (a < TINY) { return v; }
  if (a > 0.64) { return sign | bits(1.0 - 2.0 / (number(exp_of(2.0 * a)) + 1.0)); }
  let z = a * a;
  let q = -0.333333283662796 + z * (0.13333158195018768 + z * (-0.05394056439399719 + z * (0.02166634611785412 +
      z * (-0.008091968484222889 + z * 0.00206466531381011))));
  return sign | bits(a + a * z * q);
}

// e^(z^2) erfc(z) for z >= 0.
fn scaled_erfc(z: f32) -> f32 {
  let t = 1.0 / (1.0 + 0.5 * z);
  let s = t - 0.5;
  let high = -0.10363771766424179 + s * (0.0979689508676529 + s * (0.05355525016784668 + s * (-0.07589753717184067 +
      s * (-0.013322637416422367 + s * 0.03699503839015961))));
  let q = 0.5107913613319397 + s * (0.6871606707572937 + s * (0.5589434504508972 + s * (0.14576783776283264 +
      s * (-0.1720425933599472 + s * high))));
  return t * q;
}

// e^(-x^2 * share) without the rounding of x^2; share is a power of two.
fn gauss(x: f32, share: f32) -> Power {
  let high = number(bits(x) & 0xfffff000u);
  let rest = (x - high) * (x + high);
  return power_of(-(high * high) * share, -rest * share);
}

fn erf_bits(v: u32) -> u32 {
  if (is_nan_bits(v)) { return v; }
  let sign = v & F32_SIGN;
  let a = number(v & 0x7fffffffu);
  if (is_infinite_bits(v) || a > 4.0) { return sign | ONE; }
  if (a < TINY) { return mul_bits(v, 0x3f906ebbu); }
  if (a >= 1.0) {
    let e = gauss(a, 1.0);
    return sign | bits(1.0 - number(scaled(bits(e.p), e.n)) * scaled_erfc(a));
  }
  let z = a * a;
  let q = 1.1283791065216064 + z * (-0.3761262595653534 + z * (0.11283600330352783 + z * (-0.026854444295167923 +
      z * (0.005189535673707724 + z * (-0.0008020842215046287 + z * 7.889122935011983e-05)))));
  return sign | bits(a * q);
}

fn gelu_bits(v: u32) -> u32 {
  if (is_nan_bits(v)) { return v; }
  if (is_infinite_bits(v)) { return select(v, QUIET_NAN, is_negative(v)); }
  let x = number(v);
  let a = abs(x);
  if (a > 16.0) { return select(v, F32_SIGN, is_negative(v)); }
  if (a < 1.0e-6) { return mul_bits(v, bits(0.5 + 0.3989423 * x)); }
  let e = gauss(a, 0.5);
  let q = scaled_erfc(a * 0.70710678118654752) * e.p;
  if (is_negative(v)) { return scaled(bits(0.5 * x * q), e.n); }
  return mul_bits(v, bits(1.0 - 0.5 * number(scaled(bits(q), e.n))));
}

fn gelu_tanh_bits(v: u32) -> u32 {
  if (is_nan_bits(v)) { return v; }
  if (is_infinite_bits(v)) { return select(v, QUIET_NAN, is_negative(v)); }
  let x = number(v);
  if (abs(x) > 16.0) { return select(v, F32_SIGN, is_negative(v)); }
  let u = 1.5957691216057308 * (x + 0.044715 * x * x * x);
  if (u >= -20.0) { return mul_bits(v, sigmoid_of(u)); }
  if (u < -180.0) { return F32_SIGN; }
  let e = power_of(u, 0.0);
  return scaled(bits(x * e.p), e.n);
}
