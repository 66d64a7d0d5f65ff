/* SPDX-License-Identifier: Apache-2.0 */
#include "conformance/environment_watch.h"

#include <dlfcn.h>
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
  char name[LONGEST_NAME];
  char file[LONGEST_FILE];
} excused;

/* Of the process, as the environment is. */
static struct {
  pthread_mutex_t lock;
  bool     is_open;             /* to excuses */
  uint32_t loaded_count;
  uint32_t excused_count;
  uintptr_t loaded[MOST_LOADED];        /* addresses of what was there when the watch began */
  excused  excused[MOST_EXCUSED];
} all = { .lock = PTHREAD_MUTEX_INITIALIZER };

/* ---- who ---- */

static int note_loaded(struct dl_phdr_info *info, size_t bytes, void *context) {
  (void)bytes, (void)context;
  if (all.loaded_count < MOST_LOADED) all.loaded[all.loaded_count++] = info->dlpi_addr;
  return 0;
}

/* The file name of a driver; NULL: it is none, or nobody knows what it is. */
static const char *find_driver(const void *caller) {
  Dl_info about;
  struct link_map *object = NULL;
  if (all.loaded_count == MOST_LOADED || dladdr1(caller, &about, (void **)&object, RTLD_DL_LINKMAP) == 0) return NULL;
  if (object == NULL) return NULL;
  for (uint32_t i = 0; i < all.loaded_count; i++)
    if (all.loaded[i] == object->l_addr) return NULL;
  const char *slash = strrchr(about.dli_fname, '/');
  return slash != NULL ? slash + 1 : about.dli_fname;
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

/* Before the change is made: `entry` begins with the variable's name. */
static void look(const char *entry, bool adds, const void *caller) {
  char name[LONGEST_NAME];
  const size_t length = strcspn(entry, "=");
  if (length >= sizeof name) return;
  memcpy(name, entry, length);
  name[length] = '\0';
  pthread_mutex_lock(&all.lock);
  excused *known = find(name);
  const char *driver = all.is_open ? find_driver(caller) : NULL;
  if (known != NULL && driver == NULL) {
    *known = all.excused[--all.excused_count];
  } else if (adds && known == NULL && driver != NULL && getenv(name) == NULL && all.excused_count < MOST_EXCUSED) {
    excused *one = &all.excused[all.excused_count++];
    snprintf(one->name, sizeof one->name, "%s", name);
    snprintf(one->file, sizeof one->file, "%.*s", (int)sizeof one->file - 1, driver);
  }
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
  pthread_mutex_lock(&all.lock);
  all.loaded_count = all.excused_count = 0;
  (void)dl_iterate_phdr(note_loaded, NULL);
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
  for (uint32_t i = 0; i < all.excused_count && length < capacity; i++)
    length += (size_t)snprintf(text + length, capacity - length, "%s%s, which it opens, sets %s once", i == 0 ? "" : "; ",
                               all.excused[i].file, all.excused[i].name);
  pthread_mutex_unlock(&all.lock);
}
