/* SPDX-License-Identifier: Apache-2.0 */
/* Compiled into each animal: its device's identity, all zero where the build gives none. */
#include "zoo.h"

#ifndef ZOO_UUID
#define ZOO_UUID 0
#endif

const tm_identity zoo_uuid = { { ZOO_UUID } };
