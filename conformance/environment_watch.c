/* SPDX-License-Identifier: Apache-2.0 */
#include "conformance/environment_watch.h"

#include <dlfcn.h>
#include <inttypes.h>
#include <link.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MOST_LOADED 1024u
#define MOST_EXCUSED 16u
#define LONGEST_NAME 64u
#define LONGEST_FILE 64u

typedef struct excused {
  char     name[LONGEST_NAME];
  char     file[LONGEST_FILE];
  uint64_t times;
} excused;

/* Addresses of objects. */
typedef struct loaded_list {
  uint32_t  count;
  uintptr_t items[MOST_LOADED];
} loaded_list;

/* Of the process, as the environment is.  Who holds the lock may not ask the loader for anything: whoever loads a library holds
   the loader's lock, and wants this one when the library's constructor changes the environment. */
static struct {
  pthread_mutex_t lock;
  bool        is_open;          /* to excuses */
  uint32_t    excused_count;
  loaded_list loaded;           /* what was there when the watch began */
  excused     excused[MOST_EXCUSED];
} all = { .lock = PTHREAD_MUTEX_INITIALIZER };

/* ---- who ---- */

static int note_loaded(struct dl_phdr_info *info, size_t bytes, void *context) {
  loaded_list *list = context;
  (void)bytes;
  if (list->count < MOST_LOADED) list->items[list->count++] = info->dlpi_addr;
  return 0;
}

typedef struct object {
  bool      is_known;
  uintptr_t address;
  char      file[LONGEST_FILE];         /* without its folder */
} object;

/* Not under the lock. */
static object object_of(const void *caller) {
  Dl_info about;
  struct link_map *map = NULL;
  object found = { .is_known = false };
  if (dladdr1(caller, &about, (void **)&map, RTLD_DL_LINKMAP) == 0 || map == NULL) return found;
  const char *slash = strrchr(about.dli_fname, '/');
  found.is_known = true;
  found.address = map->l_addr;
  snprintf(found.file, sizeof found.file, "%.*s", (int)sizeof found.file - 1, slash != NULL ? slash + 1 : about.dli_fname);
  return found;
}

/* Under the lock, as the rest. */
static bool is_driver(const object *caller) {
  if (!caller->is_known || all.loaded.count == MOST_LOADED) return false;
  for (uint32_t i = 0; i < all.loaded.count; i++)
    if (all.loaded.items[i] == caller->address) return false;
  return true;
}

/* ---- what ---- */

static bool has_name(const char *entry, const char *name) {
  const size_t length = strlen(name);
  return strncmp(entry, name, length) == 0 && (entry[length] == '=' || entry[length] == '\0');
}

static excused *find(const char *entry) {
  for (uint32_t i = 0; i < all.excused_count; i++)
    if (has_name(entry, all.excused[i].name)) return &all.excused[i];
  return NULL;
}

static void excuse(const char *name, const object *driver) {
  if (getenv(name) != NULL || all.excused_count == MOST_EXCUSED) return;
  excused *one = &all.excused[all.excused_count++];
  snprintf(one->name, sizeof one->name, "%s", name);
  snprintf(one->file, sizeof one->file, "%s", driver->file);
  one->times = 1;
}

/* Before the change is made: `entry` begins with the variable's name. */
static void look(const char *entry, bool adds, const void *caller) {
  char name[LONGEST_NAME];
  const size_t length = strcspn(entry, "=");
  if (length >= sizeof name) return;
  memcpy(name, entry, length);
  name[length] = '\0';
  const object who = object_of(caller);
  pthread_mutex_lock(&all.lock);
  excused *known = find(name);
  const bool is_excusable = all.is_open && is_driver(&who);
  if (known != NULL && (!is_excusable || strcmp(known->file, who.file) != 0)) *known = all.excused[--all.excused_count];
  else if (known != NULL) known->times += adds;
  else if (adds && is_excusable) excuse(name, &who);
  pthread_mutex_unlock(&all.lock);
}

/* ---- in the place of the C library's ---- */

static void find_next(const char *name, void *out_function, size_t bytes) {
  void *address = dlsym(RTLD_NEXT, name);
  memcpy(out_function, &address, bytes);
}

__attribute__((visibility("default"))) int setenv(const char *name, const char *value, int overwrite) {
  int (*next)(const char *, const char *, int);
  find_next("setenv", &next, sizeof next);
  if (overwrite != 0 || getenv(name) == NULL) look(name, true, __builtin_return_address(0));
  return next(name, value, overwrite);
}

__attribute__((visibility("default"))) int unsetenv(const char *name) {
  int (*next)(const char *);
  find_next("unsetenv", &next, sizeof next);
  look(name, false, __builtin_return_address(0));
  return next(name);
}

__attribute__((visibility("default"))) int putenv(char *entry) {
  int (*next)(char *);
  find_next("putenv", &next, sizeof next);
  look(entry, strchr(entry, '=') != NULL, __builtin_return_address(0));
  return next(entry);
}

/* ---- the watch ---- */

void environment_watch_begin(void) {
  loaded_list loaded = { .count = 0 };
  (void)dl_iterate_phdr(note_loaded, &loaded);
  pthread_mutex_lock(&all.lock);
  all.loaded = loaded;
  all.excused_count = 0;
  all.is_open = true;
  pthread_mutex_unlock(&all.lock);
}

void environment_watch_end(void) {
  pthread_mutex_lock(&all.lock);
  all.is_open = false;
  pthread_mutex_unlock(&all.lock);
}

bool environment_watch_excuses(const char *entry) {
  pthread_mutex_lock(&all.lock);
  const bool found = find(entry) != NULL;
  pthread_mutex_unlock(&all.lock);
  return found;
}

void environment_watch_describe(char *text, size_t capacity) {
  size_t length = 0;
  text[0] = '\0';
  pthread_mutex_lock(&all.lock);
  for (uint32_t i = 0; i < all.excused_count && length < capacity; i++) {
    const excused *one = &all.excused[i];
    char times[32] = "once";
    if (one->times != 1) snprintf(times, sizeof times, "%" PRIu64 " times", one->times);
    length += (size_t)snprintf(text + length, capacity - length, "%s%s, which it opens, sets %s %s", i == 0 ? "" : "; ", one->file,
                               one->name, times);
  }
  pthread_mutex_unlock(&all.lock);
}
