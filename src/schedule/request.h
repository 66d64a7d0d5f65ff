/* SPDX-License-Identifier: Apache-2.0 */
/*
 * request.h - one operation to be placed: its operands as data, and what the caller requires.  Equal requests (by bytes of
 * the key) get equal placements, so a key stands for everything that a decision may depend on.
 */
#ifndef TM_SCHEDULE_REQUEST_H
#define TM_SCHEDULE_REQUEST_H

#include "ops/op_table.h"
#include "tensormorph/tensormorph.h"

#define TM_LARGEST_ATTRIBUTES 64u

#define TM_REQUEST_RUN_TO_RUN 0x1u      /* only devices that give equal bits every time */
#define TM_REQUEST_UNMEASURED 0x4u      /* operands lie in a file's pages: what it takes says little of the device */
#define TM_REQUEST_AS_IS      0x2u      /* a step of a lowering: it is not lowered again, or steps could need themselves */

/* What was done already to the operation that this one is part of, so that lowering ends: changes of operands, splits. */
#define TM_REQUEST_ROUND      0x100u
#define TM_REQUEST_ROUNDS     0x300u
#define TM_REQUEST_SPLIT      0x1000u
#define TM_REQUEST_SPLITS     0x7000u
#define TM_REQUEST_QUANTIZED  0x10000u

/* Zero-initialise, so that padding compares equal. */
typedef struct tm_request {
  uint32_t op;
  uint32_t version;
  uint32_t worst_numerics;
  uint32_t flags;                       /* TM_REQUEST_* */
  uint32_t only_device;                 /* inventory index, or TM_ANY_DEVICE */
  uint32_t input_count;
  uint32_t output_count;
  uint32_t attribute_bytes;
  uint64_t attributes[TM_LARGEST_ATTRIBUTES / 8];
  tm_operand operands[TM_MAX_OPERANDS]; /* inputs, then outputs; only the used ones belong to the key */
} tm_request;

/* Bytes of the request that are its key. */
static inline uint64_t tm_request_key_bytes(const tm_request *request) {
  return offsetof(tm_request, operands) + (request->input_count + request->output_count) * sizeof(tm_operand);
}

/* A hash of the key; of what is derived, and of axes that are not there, it needs to know nothing. */
uint64_t tm_request_hash(const tm_request *request);

/* The operation that a request stands for; it points into the request. */
tm_operation tm_request_operation(const tm_request *request);

/* The same operation with a result of its own: what it reads stays as it is. */
void tm_request_set_apart(tm_request *request);

/* Which constants this is about, as one number: their origins (see execute/runner.h), addresses and
   layouts.  0: there is none, or not all of them are known. */
uint64_t tm_request_constants_key(const tm_request *request, void *const *pointers, const uint64_t *origins);

#endif
