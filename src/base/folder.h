/* SPDX-License-Identifier: Apache-2.0 */
/* folder.h - the names in a folder. */
#ifndef TM_BASE_FOLDER_H
#define TM_BASE_FOLDER_H

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "tensormorph/types.h"

bool tm_path_is_folder(const char *path);
bool tm_path_exists(const char *path);
/* Whether there is an entry of that name, even a link that leads nowhere. */
bool tm_path_has_entry(const char *path);
/* Why files in it could be anybody's: who may write to it besides its owner; NULL: nobody of concern, or there is no such folder. */
const char *tm_folder_openness(const char *path);
/* What tells files and folders apart, whatever they are called; false: there is none at `path`.  Links are followed. */
typedef struct tm_path_identity {
  uint64_t device;
  uint64_t number;
} tm_path_identity;
bool tm_path_identify(const char *path, tm_path_identity *out_identity);
/* What a system or an editor leaves beside a file is something that begins with a dot; who names the folder does not mean it. */
bool tm_name_is_hidden(const char *name);
/* Bytes that this process may still write to the file system of the folder; false: nobody can tell. */
bool tm_folder_free_bytes(const char *path, uint64_t *out_bytes);
/* Whether both exist and are one file or folder. */
bool tm_path_is_same(const char *a, const char *b);

/* A relative path without .. components; what it names may still be a link that leads anywhere. */
bool tm_path_goes_inwards(const char *path);
/* Whether `path`, all links followed, lies in or below the folder of `other`, or that of the file which `other` leads to. */
bool tm_path_is_beside(const char *path, const char *other);

/* Names of the entries but . and .., sorted by bytes; both in `arena`.   TM_ERROR_IO, TM_ERROR_NO_MEMORY */
tm_status tm_folder_list(tm_arena *arena, const char *path, const char ***out_names, uint64_t *out_count, tm_error *error);

/* "folder/name", or `name` alone when folder is empty; NULL without memory. */
char *tm_path_join(tm_arena *arena, const char *folder, uint64_t folder_length, const char *name);
/* Length of the part of `path` before its last /, which is not counted unless it is the root; 0 if it has none. */
uint64_t tm_path_folder_length(const char *path);

#endif
