/* SPDX-License-Identifier: Apache-2.0 */
/* struct_copy.h - handing a filled struct to a caller that may have been built with an older or a newer one. */
#ifndef TM_BASE_STRUCT_COPY_H
#define TM_BASE_STRUCT_COPY_H

#include <stdint.h>
#include <string.h>

/* Both begin with struct_size.  The caller's says how much room there is, and keeps its value. */
static inline void tm_copy_out(void *out, const void *filled, uint32_t known_bytes) {
  uint32_t room;
  memcpy(&room, out, sizeof room);
  memcpy(out, filled, room < known_bytes ? room : known_bytes);
  memcpy(out, &room, sizeof room < room ? sizeof room : room);
}

#endif
