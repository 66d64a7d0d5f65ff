/* SPDX-License-Identifier: Apache-2.0 */
/* sim_lock.h - one process at a time: a lock on a file, which the system takes back when the process ends, however. */
#ifndef SIM_LOCK_H
#define SIM_LOCK_H

#include <tensormorph/plugin.h>

#define SIM_PATH_BYTES 4096u
#define SIM_NO_LOCK (-1)

/* The folder for lock files: `wanted`, else XDG_RUNTIME_DIR, else one of the user's own in /tmp.  0 if there is no room. */
int sim_lock_folder(const char *wanted, char path[SIM_PATH_BYTES]);

/* Locks the file of the device with this hash.   TM_OK, TM_BUSY (somebody has it), TM_ERROR_DEVICE_LOST (there can be no
   such file; out_error is the errno) */
tm_status sim_lock_take(const char *folder, uint64_t hash, int *out_lock, int *out_error);
void sim_lock_drop(int lock);

#endif
