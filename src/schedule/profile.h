/* SPDX-License-Identifier: Apache-2.0 */
/*
 * profile.h - what is kept of measurements from one process to the next, and how it fits the devices that there are now.
 *
 * Knowledge of a device is about its backend (name and build), the ABI, its identity and its cost formulas.  Where the name,
 * the identity or the formulas differ it is about something else, and is not used; where only the build or the ABI does it is a
 * hint (spread + 0.7).  Where the driver, the number of threads or the memory differ it counts for less (spread + 0.2).
 * Spreads are of natural logarithms.  [any thread]
 */
#ifndef TM_SCHEDULE_PROFILE_H
#define TM_SCHEDULE_PROFILE_H

#include "plugin/inventory.h"
#include "schedule/profile_file.h"

typedef struct tm_profile {
  tm_memory      *memory;
  tm_inventory   *inventory;
  tm_correction  *correction;
  tm_mutex        lock;                 /* one writer of this process at a time */
  tm_profile_file file;                 /* folder NULL: nothing is kept */
  char           *folder;
  uint64_t        thread_count;
  _Atomic uint64_t unwritten;           /* how much was fresh after a save that failed; 0: the last one did not */
  _Atomic bool     is_loss_said;        /* that saves fail */
} tm_profile;

/* Reads what is known and makes it the snapshot.  state_folder NULL: nothing is known, nothing will be kept.
   TM_ERROR_NO_MEMORY */
tm_status tm_profile_init(tm_profile *profile, tm_memory *memory, tm_inventory *inventory, tm_correction *correction,
                          const char *state_folder);
/* Writes what was learned and not written yet. */
void      tm_profile_deinit(tm_profile *profile);

/* Writes what was learned since the last time.  What cannot be written is kept for the next.   TM_ERROR_IO, TM_BUSY, ... */
tm_status tm_profile_save(tm_profile *profile, tm_error *error);
/* The same once much was learned; what fails is only logged. */
void      tm_profile_save_if_due(tm_profile *profile);

/* Forgets what is known of a device or of all of a backend's, here and on disk; NULL: everything, copies included.
   TM_ERROR_NOT_FOUND (no such name, here or on disk), TM_ERROR_IO, ... */
tm_status tm_profile_reset(tm_profile *profile, const char *name, uint64_t *out_count, tm_error *error);

/* As profile_file.h. */
tm_status tm_profile_export(tm_profile *profile, const char *path, tm_error *error);
tm_status tm_profile_import(tm_profile *profile, const char *path, uint64_t *out_count, tm_error *error);

#endif
