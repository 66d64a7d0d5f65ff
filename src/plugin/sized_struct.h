/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sized_struct.h - structs that a plugin hands out and that start with struct_size.  A plugin of an older minor has shorter
 * ones than this library knows, a plugin of a newer minor longer ones.
 */
#ifndef TM_PLUGIN_SIZED_STRUCT_H
#define TM_PLUGIN_SIZED_STRUCT_H

#include <string.h>

#include "tensormorph/plugin.h"

/* What each had in minor 1.  No plugin may have less, and what is appended later changes none of these. */
#define TM_OPTION_BYTES_MINOR_1 (offsetof(tm_option, help) + sizeof(tm_string))
#define TM_MEMORY_SPACE_BYTES_MINOR_1 (offsetof(tm_memory_space, reserved) + sizeof(uint32_t))

/* Copies what both sides know; what only this library knows is zero.  `given_bytes` is the other side's struct_size. */
static inline void tm_sized_struct_take(void *out_known, size_t known_bytes, const void *given, uint32_t given_bytes) {
  const size_t common = given_bytes < known_bytes ? given_bytes : known_bytes;
  memcpy(out_known, given, common);
  memset((char *)out_known + common, 0, known_bytes - common);
}

#endif
