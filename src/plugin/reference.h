/* SPDX-License-Identifier: Apache-2.0 */
/*
 * reference.h - the scalar reference as a backend like any other: it is reached through a table of the contract, so that
 * the scheduler needs no special case for the fallback that always exists.
 */
#ifndef TM_PLUGIN_REFERENCE_H
#define TM_PLUGIN_REFERENCE_H

#include "tensormorph/plugin.h"

#define TM_REFERENCE_NAME "reference"

/* What it takes on one core by its own formula. */
uint64_t tm_reference_price_ns(const tm_operation *operation);

const tm_plugin_header *tm_reference_plugin_query(uint32_t host_abi_major, uint32_t host_abi_minor);

#endif
