/* SPDX-License-Identifier: Apache-2.0 */
/*
 * native_drivers.h - keeps drivers loaded.  A vendor's loader may unload them with its last instance, and whatever they keep for
 * the life of the process (a descriptor; threads and thread-local destructors elsewhere) is then lost and made anew with each
 * instance.  One that stays loaded has it once.
 *
 * Who loaded a library cannot be told, only when.  So what other threads of the application load between begin and keep stays
 * loaded, too: no harm but its memory, and that a later dlclose of it takes no effect.  And nothing is kept where there are 1024
 * objects or more before, nor any beyond the first 64 new ones or with a path of 512 bytes or more: those may come and go as ever.
 */
#ifndef NATIVE_DRIVERS_H
#define NATIVE_DRIVERS_H

#include "tensormorph/plugin.h"

/* What is loaded.  NULL where that cannot be told, or without memory; nothing is kept then. */
typedef struct native_drivers native_drivers;

/* Before anything that loads drivers. */
native_drivers *native_drivers_begin(const tm_host *host);
/* Afterwards: keeps what has come since then, and frees `drivers`, which may be NULL. */
void native_drivers_keep(const tm_host *host, native_drivers *drivers);

#endif
