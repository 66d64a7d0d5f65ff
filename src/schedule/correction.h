/* SPDX-License-Identifier: Apache-2.0 */
/*
 * correction.h - how far a device's declared costs are from the truth, learned from what was measured.  A factor is held
 * at three levels, device -> operation class -> bucket (operation, formats, size), each shrunk towards the one above by
 * how little was seen of it, so that one measurement of one thing already corrects a whole device.  [any thread]
 */
#ifndef TM_SCHEDULE_CORRECTION_H
#define TM_SCHEDULE_CORRECTION_H

#include <stdatomic.h>

#include "base/memory.h"
#include "base/thread.h"
#include "ops/op_table.h"

typedef struct tm_correction_node {
  double   mean;                /* of ln(measured / declared) */
  double   published;           /* the estimate that placements were last told of */
  uint64_t samples;             /* all ever seen */
  uint32_t weight;              /* samples that count: old ones fade at a cap */
  int32_t  drift;               /* consecutive large residuals, signed */
} tm_correction_node;

typedef struct tm_correction_bucket tm_correction_bucket;

typedef struct tm_correction {
  tm_memory            *memory;
  tm_mutex              lock;
  uint32_t              device_count;
  uint32_t              bucket_count;
  tm_correction_node   *devices;        /* [device] */
  tm_correction_node   *classes;        /* [device][class] */
  tm_correction_node   *copies;         /* [device]: of transfers, against the prior rate */
  tm_correction_bucket *buckets;        /* open addressing */
  uint32_t              bucket_capacity;
  _Atomic uint64_t      generation;     /* moves when a factor changed so much that placements should look again */
} tm_correction;

/* What a measurement is about. */
typedef struct tm_correction_key {
  uint32_t    device;           /* inventory index */
  tm_op_class op_class;
  uint64_t    bucket;           /* see tm_correction_bucket_of */
} tm_correction_key;

tm_status tm_correction_init(tm_correction *correction, tm_memory *memory, uint32_t device_count);
void      tm_correction_deinit(tm_correction *correction);

/* Operation, formats of its operands and the magnitude of its work, as one number. */
uint64_t tm_correction_bucket_of(const tm_operation *operation, const tm_work *work);

void tm_correction_learn(tm_correction *correction, const tm_correction_key *key, uint64_t declared_ns, uint64_t measured_ns);
typedef struct tm_correction_estimate {
  double   factor;              /* to multiply a declared cost with */
  double   least_factor;        /* what it may well turn out to be when more is known */
  uint64_t samples;             /* measurements of this very bucket or, if it has none, of the nearest level that has some */
  uint64_t bucket_samples;
} tm_correction_estimate;

tm_correction_estimate tm_correction_look(tm_correction *correction, const tm_correction_key *key);

/* The same for copies between the host and a device's own memory. */
void     tm_correction_learn_copy(tm_correction *correction, uint32_t device, uint64_t bytes, uint64_t measured_ns);
uint64_t tm_correction_copy_ns(tm_correction *correction, uint32_t device, uint64_t bytes);

#endif
