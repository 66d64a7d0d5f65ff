/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE             /* dl_iterate_phdr and RTLD_NODELETE are no part of C11 */
#include "native_drivers.h"

#include <string.h>

#if defined(__linux__)

#include <dlfcn.h>
#include <link.h>

#define MOST_LOADED 1024u
#define MOST_NEW 64u
#define LONGEST_NAME 512u

struct native_drivers {
  uint64_t addresses[MOST_LOADED];      /* of what was there before */
  uint32_t address_count;
  uint32_t new_count;
  char     names[MOST_NEW][LONGEST_NAME];
};

static int note_loaded(struct dl_phdr_info *info, size_t bytes, void *context) {
  native_drivers *drivers = context;
  (void)bytes;
  if (drivers->address_count < MOST_LOADED) drivers->addresses[drivers->address_count++] = info->dlpi_addr;
  return 0;
}

static int was_loaded(const native_drivers *drivers, uint64_t address) {
  for (uint32_t i = 0; i < drivers->address_count; ++i) {
    if (drivers->addresses[i] == address) return 1;
  }
  return 0;
}

/* Only noted: nothing may be opened while the list is walked. */
static int note_new(struct dl_phdr_info *info, size_t bytes, void *context) {
  native_drivers *drivers = context;
  const size_t length = strlen(info->dlpi_name);
  (void)bytes;
  if (length == 0 || length >= LONGEST_NAME || drivers->new_count == MOST_NEW || was_loaded(drivers, info->dlpi_addr)) return 0;
  memcpy(drivers->names[drivers->new_count++], info->dlpi_name, length + 1);
  return 0;
}

native_drivers *native_drivers_begin(const tm_host *host) {
  native_drivers *drivers = host->alloc(host->context, sizeof *drivers, 64);
  if (drivers == NULL) return NULL;
  drivers->address_count = drivers->new_count = 0;
  (void)dl_iterate_phdr(note_loaded, drivers);
  return drivers;
}

void native_drivers_keep(const tm_host *host, native_drivers *drivers) {
  if (drivers == NULL) return;
  if (drivers->address_count < MOST_LOADED) (void)dl_iterate_phdr(note_new, drivers);
  for (uint32_t i = 0; i < drivers->new_count; ++i) {
    void *handle = dlopen(drivers->names[i], RTLD_NOW | RTLD_NOLOAD | RTLD_NODELETE);
    if (handle != NULL) dlclose(handle);
  }
  host->free(host->context, drivers, sizeof *drivers);
}

#else

native_drivers *native_drivers_begin(const tm_host *host) {
  (void)host;
  return NULL;
}

void native_drivers_keep(const tm_host *host, native_drivers *drivers) { (void)host, (void)drivers; }

#endif
