// SPDX-License-Identifier: Apache-2.0
// Blocks of 32 elements: an f16 scale, then 32 signed bytes (q8_0) or 16 bytes of nibbles (q4_0: the low ones are the
// first 16 elements).  Blocks begin at even bytes.  The prologue says BLOCK_BYTES and
//   fn block_word(i: u32) -> u32         a word of the operand

fn block_half(place: u32) -> u32 { return (block_word(place >> 2u) >> ((place & 2u) * 8u)) & 0xffffu; }

// Four bytes from an even place on.
fn block_bytes(place: u32) -> u32 { return block_half(place) | (block_half(place + 2u) << 16u); }

// The integers of elements e to e + 3 of a block, e a multiple of 4.
fn block_quants(block: u32, e: u32) -> vec4<i32> {
  if (BLOCK_BYTES == 34u) {
    let four = bitcast<i32>(block_bytes(block + 2u + e));
    return vec4<i32>(extractBits(four, 0u, 8u), extractBits(four, 8u, 8u), extractBits(four, 16u, 8u), extractBits(four, 24u, 8u));
  }
  let four = block_bytes(block + 2u + (e & 15u)) >> ((e >> 4u) * 4u);
  return vec4<i32>(vec4<u32>(four, four >> 8u, four >> 16u, four >> 24u) & vec4<u32>(15u)) - vec4<i32>(8);
}

// Their values as bits of f32.  An integer of 8 bits times a scale of 11 is exact in f32 and not subnormal, so a
// multiplication gives it everywhere; a scale that is not finite needs bits.
fn block_quad(block: u32, e: u32) -> vec4<u32> {
  let scale = bits_from_f16(block_half(block));
  let quants = block_quants(block, e);
  if ((scale & 0x7f800000u) == 0x7f800000u) {
    if ((scale & 0x7fffffu) != 0u) { return vec4<u32>(scale | 0x400000u); }
    let signs = (bitcast<vec4<u32>>(quants) ^ vec4<u32>(scale)) & vec4<u32>(0x80000000u);
    return select(signs | vec4<u32>(0x7f800000u), vec4<u32>(0xffc00000u), quants == vec4<i32>(0));
  }
  return bitcast<vec4<u32>>(vec4<f32>(quants) * bitcast<f32>(scale));
}
