/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sim_profile.h - what was measured of a real device, from a file that `tensormorph profile export` wrote there: how long an
 * operation took beside the host's own count of its work, one mean for each class of operations.  That count is
 *
 *     1 us + operations / 2 ns + bytes read and written / 4 ns
 *
 * so a time follows for any size, whatever the device itself declared.
 */
#ifndef SIM_PROFILE_H
#define SIM_PROFILE_H

#include <stddef.h>

#include "sim_json.h"
#include "sim_loops.h"

#define SIM_PATH_LIMIT 1024u

typedef struct sim_profile {
  char     file[SIM_PATH_LIMIT];        /* as the description names it, from its folder on; "": there is none */
  char     device[SIM_NAME_BYTES];      /* its backend, or the beginning of its uuid */
  uint32_t is_known[SIM_CLASSES];
  double   log2_factor[SIM_CLASSES];    /* of measured over counted */
  uint64_t hash;                        /* of the file's bytes */
} sim_profile;

/* Fills in what `text` (bytes of `file`) says of profile->device.  0 and one sentence if it is no sound profile, or has
   nothing of such a device. */
int sim_profile_parse(const char *text, size_t bytes, const char *file, sim_profile *profile, char out_text[SIM_TEXT_BYTES]);

/* What an operation of that work takes; 0: nothing was measured of its class. */
double sim_profile_ns(const sim_profile *profile, const sim_loop *loop, double flops, double bytes);

#endif
