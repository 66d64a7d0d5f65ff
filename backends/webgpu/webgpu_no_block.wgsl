// SPDX-License-Identifier: Apache-2.0
// In the place of webgpu_block.wgsl where no operand has blocks: what the other texts name, and never call.

const BLOCK_BYTES = 0u;
fn block_half(place: u32) -> u32 { return 0u; }
fn block_quants(block: u32, e: u32) -> vec4<i32> { return vec4<i32>(0); }
fn block_quad(block: u32, e: u32) -> vec4<u32> { return vec4<u32>(0u); }
