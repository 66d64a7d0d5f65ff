// SPDX-License-Identifier: Apache-2.0
// Elementwise operations: an invocation makes whole words of a dense output, from inputs of any strides.
// The prologue declares the bindings and
//   const PER_WORD, BITS, MASK    elements of the output in a word, bits of an element, their mask
//   fn element(e: u32) -> u32     the bits of output element e

struct Parameters {
  word_count: u32,
  element_count: u32,
  rank: u32,
  reserved: u32,
  first: vec4<u32>,                     // bytes to element 0 of each input
  dims: array<vec4<u32>, 2>,            // of the output
  strides: array<vec4<i32>, 6>,         // bytes; 8 for each input
}
@group(0) @binding(0) var<uniform> p: Parameters;

// Where element e of the broadcast input k lies, in bytes.
fn place(k: u32, e: u32) -> u32 {
  var rest = e;
  var at = i32(p.first[k]);
  for (var i = p.rank; i > 0u; i--) {
    let axis = i - 1u;
    let extent = p.dims[axis >> 2u][axis & 3u];
    at += i32(rest % extent) * p.strides[2u * k + (axis >> 2u)][axis & 3u];
    rest = rest / extent;
  }
  return u32(at);
}

@compute @workgroup_size(WG)
fn run(@builtin(global_invocation_id) id: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>) {
  for (var word = id.x; word < p.word_count; word += groups.x * WG) {
    var bits = 0u;
    for (var i = 0u; i < PER_WORD; i++) {
      let e = word * PER_WORD + i;
      if (e < p.element_count) { bits |= (element(e) & MASK) << (i * BITS); }
    }
    y[word] = bits;
  }
}
