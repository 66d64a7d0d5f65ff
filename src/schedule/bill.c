/* SPDX-License-Identifier: Apache-2.0 */
#include "schedule/bill.h"

#include "base/checked.h"
#include "base/log2_fixed.h"
#include "plugin/answer.h"

uint64_t tm_cost_add(uint64_t a_ns, uint64_t b_ns) {
  uint64_t sum;
  return tm_checked_add(a_ns, b_ns, &sum) ? tm_min_u64(sum, TM_LARGEST_COST_NS) : TM_LARGEST_COST_NS;
}

uint64_t tm_cost_times(uint64_t ns, uint64_t times) {
  uint64_t product;
  return tm_checked_mul(ns, times, &product) ? tm_min_u64(product, TM_LARGEST_COST_NS) : TM_LARGEST_COST_NS;
}

uint64_t tm_cost_scale(uint64_t ns, int64_t factor) {
  return tm_log2_multiply(tm_min_u64(ns, TM_LARGEST_COST_NS), factor, TM_LARGEST_COST_NS);
}

bool tm_bill_add(tm_bill *bill, const tm_price_basis *basis, uint64_t times) {
  if (bill->line_count == TM_BILL_LINES) return false;
  bill->lines[bill->line_count++] = (tm_bill_line){ *basis, times };
  return true;
}

bool tm_bill_add_bill(tm_bill *bill, const tm_bill *part, uint64_t times) {
  for (uint32_t i = 0; i < part->line_count; i++)
    if (!tm_bill_add(bill, &part->lines[i].basis, tm_cost_times(part->lines[i].times, times))) return false;
  bill->fixed_ns = tm_cost_add(bill->fixed_ns, tm_cost_times(part->fixed_ns, times));
  return true;
}

uint64_t tm_price_copy_ns(tm_correction *correction, const tm_price_basis *basis) {
  return tm_cost_add(tm_correction_copy_ns(correction, basis->link_in, basis->copied_in_bytes),
                     tm_correction_copy_ns(correction, basis->link_out, basis->copied_out_bytes));
}

uint64_t tm_price_ns(tm_correction *correction, const tm_price_basis *basis) {
  const tm_correction_estimate estimate = tm_correction_look(correction, &basis->key);
  return tm_cost_add(tm_cost_scale(basis->declared_ns, estimate.factor), tm_price_copy_ns(correction, basis));
}

uint64_t tm_bill_price_ns(tm_correction *correction, const tm_bill *bill) {
  uint64_t total = bill->fixed_ns;
  for (uint32_t i = 0; i < bill->line_count; i++)
    total = tm_cost_add(total, tm_cost_times(tm_price_ns(correction, &bill->lines[i].basis), bill->lines[i].times));
  return total;
}
