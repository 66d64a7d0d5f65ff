/* SPDX-License-Identifier: Apache-2.0 */
/*
 * webgpu_drivers.h - keeps drivers loaded.  An implementation of WebGPU unloads them with its last instance, and whatever they
 * keep for the life of the process (SwiftShader: a descriptor; threads and thread-local destructors elsewhere) is then lost and
 * made anew with each instance.  One that stays loaded has it once.
 */
#ifndef WEBGPU_DRIVERS_H
#define WEBGPU_DRIVERS_H

#include "tensormorph/plugin.h"

/* What is loaded.  NULL where that cannot be told, or without memory; nothing is kept then. */
typedef struct webgpu_drivers webgpu_drivers;

/* Before anything that loads drivers. */
webgpu_drivers *webgpu_drivers_begin(const tm_host *host);
/* Afterwards: keeps what has come since then, and frees `drivers`, which may be NULL. */
void webgpu_drivers_keep(const tm_host *host, webgpu_drivers *drivers);

#endif
