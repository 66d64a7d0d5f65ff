// SPDX-License-Identifier: Apache-2.0
// Exact sums of f64 as words of a result (types.h, TM_SUM_WORDS), made by one workgroup: an invocation for each digit of
// each sum goes through all numbers, then one for each sum carries.  The prologue says SUMS, and
//   fn sum_term(sum: u32, i: u32) -> vec2<u32>       number i of a sum
//   fn sum_place(sum: u32) -> u32                    where its words go, in words of 64 bits

const DIGITS = 68u;
const LOWEST_BIT = 1088;

var<workgroup> digits: array<vec2<u32>, SUMS * DIGITS>;

// What a number adds to the digit, of 64 bits in two's complement.
fn digit_part(number: vec2<u32>, digit: u32) -> vec2<u32> {
  if (wide_exponent(number) == 0) { return vec2<u32>(0u); }
  let position = u32(wide_exponent(number) - 1075 + LOWEST_BIT);
  let place = digit - position / 32u;
  if (place > 2u) { return vec2<u32>(0u); }
  let shift = position % 32u;
  let integer = vec2<u32>(number.x, (number.y & 0xfffffu) | 0x100000u);
  let low = words_left(integer, shift);
  let top = select((integer.y >> 1u) >> (31u - shift), 0u, shift == 0u);
  let part = vec2<u32>(select(select(top, low.y, place == 1u), low.x, place == 0u), 0u);
  return select(part, words_subtract(vec2<u32>(0u), part), (number.y >> 31u) == 1u);
}

fn put_word(place: u32, word: vec2<u32>) {
  y[2u * place] = word.x;
  y[2u * place + 1u] = word.y;
}

// Digits are kept in [0, 2^32) but the last, which is signed.
fn carry_digits(sum: u32) {
  var carry = vec2<u32>(0u);
  put_word(sum_place(sum), vec2<u32>(0u));
  for (var i = 0u; i < DIGITS; i++) {
    let value = words_add(digits[sum * DIGITS + i], carry);
    let is_last = i + 1u == DIGITS;
    put_word(sum_place(sum) + 1u + i, vec2<u32>(value.x, select(0u, value.y, is_last)));
    carry = vec2<u32>(value.y, select(0u, 0xffffffffu, (value.y >> 31u) == 1u));
  }
}

fn put_sums(local: u32, count: u32) {
  for (var i = local; i < SUMS * DIGITS; i += WG) {
    var total = vec2<u32>(0u);
    for (var term = 0u; term < count; term++) { total = words_add(total, digit_part(sum_term(i / DIGITS, term), i % DIGITS)); }
    digits[i] = total;
  }
  workgroupBarrier();
  if (local < SUMS) { carry_digits(local); }
}
