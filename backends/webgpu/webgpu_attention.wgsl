// SPDX-License-Identifier: Apache-2.0
// attention of dense f32.  `scores` leaves a number for each row of y and key in w, `weights` turns them into weights that add
// up to one, `values` adds up.  A row is a batch, a token and a head.  What takes no part is told apart by its bits.

struct Attention {
  items: u32,
  tokens: u32,
  heads: u32,
  group: u32,           // heads that share a head of k and v
  capacity: u32,
  dim: u32,
  width: u32,
  is_causal: u32,
  length_words: u32,
  scale: f32,
  mask: u32,            // 0 none, 1 bool, 2 f32
  unused: u32,
  mask_steps: vec4<u32>,        // in elements: batch, head, token, key
}
@group(0) @binding(0) var<uniform> p: Attention;

const OUT: u32 = 0xff800000u;   // -Inf: the key takes no part

struct Row { batch: u32, token: u32, head: u32, keys: u32 }

fn length_of() -> u32 {
  let low = x3[0];
  let high = x3[p.length_words - 1u];
  if ((high >> 31u) == 1u) { return 0u; }
  if (p.length_words == 2u && high != 0u) { return p.capacity; }
  return min(low, p.capacity);
}

fn row_of(row: u32) -> Row {
  let token = row / p.heads % p.tokens;
  let after = select(0u, p.tokens - 1u - token, p.is_causal == 1u);
  let length = length_of();
  return Row(row / p.heads / p.tokens, token, row % p.heads, length - min(after, length));
}

// Of a key, where heads of k or v have `size` elements.
fn key_at(r: Row, key: u32, size: u32) -> u32 {
  return ((r.batch * p.capacity + key) * (p.heads / p.group) + r.head / p.group) * size;
}

// The bits of what the mask adds; OUT leaves the key out.
fn mask_of(r: Row, key: u32) -> u32 {
  let at = r.batch * p.mask_steps.x + r.head * p.mask_steps.y + r.token * p.mask_steps.z + key * p.mask_steps.w;
  return mask_bits(at);
}

fn score_of(row: u32, r: Row, key: u32) -> u32 {
  let bias = mask_of(r, key);
  if (key >= r.keys || bias == OUT) { return OUT; }
  let q = row * p.dim;
  let k = key_at(r, key, p.dim);
  var sum = 0.0f;
  for (var i = 0u; i < p.dim; i++) { sum += bitcast<f32>(x0[q + i]) * p.scale * bitcast<f32>(x1[k + i]); }
  return bitcast<u32>(sum + bitcast<f32>(bias));
}

@compute @workgroup_size(WG)
fn scores(@builtin(global_invocation_id) id: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>) {
  for (var i = id.x; i < p.items; i += groups.x * WG) {
    let row = i / p.capacity;
    w[i] = score_of(row, row_of(row), i % p.capacity);
  }
}

@compute @workgroup_size(WG)
fn weights(@builtin(global_invocation_id) id: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>) {
  for (var row = id.x; row < p.items; row += groups.x * WG) {
    let begin = row * p.capacity;
    let keys = row_of(row).keys;
    var largest = -3.4e38f;
    var total = 0.0f;
    for (var key = 0u; key < keys; key++) {
      if (w[begin + key] != OUT) { largest = max(largest, bitcast<f32>(w[begin + key])); }
    }
    for (var key = 0u; key < keys; key++) {
      if (w[begin + key] != OUT) { total += exp(bitcast<f32>(w[begin + key]) - largest); }
    }
    for (var key = 0u; key < keys; key++) {
      if (w[begin + key] != OUT) { w[begin + key] = bitcast<u32>(exp(bitcast<f32>(w[begin + key]) - largest) / total); }
    }
  }
}

@compute @workgroup_size(WG)
fn values(@builtin(global_invocation_id) id: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>) {
  for (var i = id.x; i < p.items; i += groups.x * WG) {
    let row = i / p.width;
    let r = row_of(row);
    var sum = 0.0f;
    for (var key = 0u; key < r.keys; key++) {
      let weight = w[row * p.capacity + key];
      if (weight != OUT && weight != 0u) { sum += bitcast<f32>(weight) * bitcast<f32>(x2[key_at(r, key, p.width) + i % p.width]); }
    }
    y[i] = bitcast<u32>(sum);
  }
}
