/* SPDX-License-Identifier: Apache-2.0 */
/* write_target.h - what a path to write to means: where its links lead, what is there, and whose the file was that goes. */
#ifndef TM_BASE_WRITE_TARGET_H
#define TM_BASE_WRITE_TARGET_H

#include <stdbool.h>
#include <sys/types.h>

struct stat;

#define TM_LONGEST_PATH 4096

/* All return 0 or an errno. */

/* The last part of the path followed to what is no link, be it there or not.  Folders are the system's to follow.  EACCES: a
   stranger's link in a folder of everybody's. */
int tm_write_target_find(const char *path, char out_target[TM_LONGEST_PATH]);
/* What is at `name` in the open folder (or AT_FDCWD), if anything is: a file that may be written to; else EISDIR, EINVAL,
   EACCES. */
int tm_write_target_look(int folder, const char *name, struct stat *out_found, bool *out_is_there);
/* Gives an open file the mode of the one that it is to replace, and its owner as far as that is allowed. */
int tm_write_target_keep_access(int file, const struct stat *old);

#endif
