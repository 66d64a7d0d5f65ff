// SPDX-License-Identifier: Apache-2.0
// weighted_sum in the arithmetic of f64, on bits.  An invocation makes whole words of a dense output.  The prologue says
//   const PER_WORD, BITS          elements of the output in a word, bits of an element
//   fn total(e: u32) -> vec2<u32> the weighted sum of element e as an f64

struct Sizes { words: u32, elements: u32 }
@group(0) @binding(0) var<uniform> p: Sizes;

fn weight(i: u32) -> vec2<u32> { return vec2<u32>(x1[2u * i], x1[2u * i + 1u]); }

@compute @workgroup_size(WG)
fn run(@builtin(global_invocation_id) id: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>) {
  for (var word = id.x; word < p.words; word += groups.x * WG) {
    var bits = 0u;
    for (var i = 0u; i < PER_WORD; i++) {
      let e = word * PER_WORD + i;
      if (e < p.elements) { bits |= wide_to_narrow(total(e), Y_FRACTION_BITS, Y_EXPONENTS) << (i * BITS); }
    }
    y[word] = bits;
  }
}
