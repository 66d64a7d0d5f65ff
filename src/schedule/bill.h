/* SPDX-License-Identifier: Apache-2.0 */
/* bill.h - what a lowering costs, item by item, so that it can be priced anew when something was learned. */
#ifndef TM_SCHEDULE_BILL_H
#define TM_SCHEDULE_BILL_H

#include "plugin/inventory.h"
#include "schedule/correction.h"

#define TM_BILL_LINES 40

/* What something costs on a device: as declared, and what the correction is looked up by. */
typedef struct tm_price_basis {
  const tm_device_slot *device;
  tm_correction_key     key;
  uint64_t              declared_ns;
  uint64_t              copied_in_bytes;        /* to the device's own memory */
  uint64_t              copied_out_bytes;
  uint32_t              link_in;        /* of these copies: see tm_correction_link_of */
  uint32_t              link_out;
} tm_price_basis;

typedef struct tm_bill_line {
  tm_price_basis basis;
  uint64_t       times;
} tm_bill_line;

typedef struct tm_bill {
  uint32_t     line_count;
  uint32_t     padding;
  uint64_t     fixed_ns;                /* of the host's own loops */
  tm_bill_line lines[TM_BILL_LINES];
} tm_bill;

/* Costs saturate at TM_LARGEST_COST_NS. */
uint64_t tm_cost_add(uint64_t a_ns, uint64_t b_ns);
uint64_t tm_cost_times(uint64_t ns, uint64_t times);
/* `factor`: log2 in 2^-32. */
uint64_t tm_cost_scale(uint64_t ns, int64_t factor);

/* Each returns false when the bill is full. */
bool tm_bill_add(tm_bill *bill, const tm_price_basis *basis, uint64_t times);
/* All of `part`, `times` times. */
bool tm_bill_add_bill(tm_bill *bill, const tm_bill *part, uint64_t times);

uint64_t tm_price_copy_ns(tm_correction *correction, const tm_price_basis *basis);
uint64_t tm_price_ns(tm_correction *correction, const tm_price_basis *basis);
uint64_t tm_bill_price_ns(tm_correction *correction, const tm_bill *bill);

#endif
