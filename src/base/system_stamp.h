/* SPDX-License-Identifier: Apache-2.0 */
/*
 * system_stamp.h - has anything changed since that drivers may depend on?  One number over what changes when a driver is
 * installed, replaced or started: the boot, the dynamic loader's cache, files and variables by name.
 */
#ifndef TM_BASE_SYSTEM_STAMP_H
#define TM_BASE_SYSTEM_STAMP_H

#include <stdint.h>

/* Over the boot, the loader's cache and the variables that the loader reads. */
uint64_t tm_system_stamp(void);

/* Mixes in which file lies at `path` and in which state: one that appears, goes or changes makes another stamp. */
uint64_t tm_system_stamp_file(uint64_t stamp, const char *path);
/* Mixes in the value of a variable of the environment, or that there is none. */
uint64_t tm_system_stamp_variable(uint64_t stamp, const char *name);

#endif
