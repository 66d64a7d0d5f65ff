/* SPDX-License-Identifier: Apache-2.0 */
/* sim_description.h - a simulated device as its JSON file describes it (README.md has the keys). */
#ifndef SIM_DESCRIPTION_H
#define SIM_DESCRIPTION_H

#include "sim_json.h"
#include "sim_loops.h"
#include "sim_profile.h"

#define SIM_MAX_CLAIMS 128u
#define SIM_MAX_FROM 8u
#define SIM_MAX_QUEUES 8u
#define SIM_MOST_FILE_BYTES (1u << 20)

/* One operation in one combination of formats, with its limits and its price. */
typedef struct sim_claim {
  const sim_loop *loop;
  uint32_t formats[SIM_MAX_OPERANDS];
  uint32_t packs_b;                     /* b must be constant, and comes packed */
  uint32_t cast_from[SIM_MAX_FROM];     /* floats and block formats that the host may turn into those above */
  uint32_t cast_count;
  uint32_t quantize_from[SIM_MAX_FROM]; /* floats that the host may turn into integers, at N3 */
  uint32_t quantize_count;
  uint64_t rank_max;
  uint64_t m_multiple;
  uint64_t n_multiple;
  uint64_t k_multiple;
  uint64_t k_max;                       /* 0: none */
  uint64_t elements_max;                /* of any operand; 0: none */
  double   flops_per_second;
  double   bytes_per_second;
  uint64_t launch_ns;
  uint64_t setup_ns;
  char     setup_key[SIM_NAME_BYTES];   /* "": each kernel has a set-up of its own */
  sim_numerics numerics;
} sim_claim;

typedef struct sim_memory {
  uint64_t bytes;
  uint64_t alignment;
  uint64_t offset_granule;
  uint64_t store_granule;
  uint64_t largest_buffer_bytes;
} sim_memory;

typedef struct sim_link {
  double   bytes_per_second;
  uint64_t latency_ns;
} sim_link;

typedef struct sim_description {
  char       name[SIM_NAME_BYTES];
  uint32_t   exclusive_process;
  uint64_t   queues;
  uint64_t   open_ns;
  sim_memory memory;
  sim_link   link;
  uint32_t   claim_count;
  sim_claim  claims[SIM_MAX_CLAIMS];
  sim_profile profile;                  /* of a real device, whose times go before those of claims */
  uint64_t   hash;                      /* of the file's bytes, and of the profile's */
} sim_description;

/* Reads `bytes` of JSON that came from `file`, without the profile that it may name.  0 and one sentence in `text` if something is
   wrong with it. */
int sim_description_parse(const char *json, size_t bytes, const char *file, sim_description *out_description,
                          char text[SIM_TEXT_BYTES]);
/* The same for a file, and its profile. */
int sim_description_read(const char *file, sim_description *out_description, char text[SIM_TEXT_BYTES]);

#endif
