/* SPDX-License-Identifier: Apache-2.0 */
#include "sim_profile.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#define VERSION 1u
#define SUM_LENGTH 16u
#define MOST_FIELDS 12u
#define MOST_DEVICES 64u
#define LINE_BYTES 1024u
#define WORK_KIND 9u                    /* of an entry: a time beside the count of the work; its key is the class */
#define MEAN_ONE 4294967296.0           /* means are logarithms to base 2, in 2^-32 */
#define MOST_MEAN (UINT64_C(64) << 32)

/* ---- lines ---- */

/* One line, cut at its tabs; the first field is the checksum of the rest. */
typedef struct record {
  char     line[LINE_BYTES];
  char    *fields[MOST_FIELDS];
  uint32_t count;
} record;

typedef struct reader {
  const char *file;
  const char *at;
  const char *end;
  uint32_t    line;             /* counted from 1: the one that was read last */
  record      now;
  char       *out_text;
} reader;

__attribute__((format(printf, 2, 3))) static int complain(const reader *r, const char *format, ...) {
  const int used = r->line == 0 ? snprintf(r->out_text, SIM_TEXT_BYTES, "%.300s: ", r->file)
                                : snprintf(r->out_text, SIM_TEXT_BYTES, "%.300s: line %u: ", r->file, r->line);
  va_list arguments;
  va_start(arguments, format);
  (void)vsnprintf(r->out_text + used, SIM_TEXT_BYTES - (size_t)used, format, arguments);
  va_end(arguments);
  return 0;
}

static int parse_number(const char *text, uint64_t most, uint64_t *out_number) {
  const size_t digits = strspn(text, "0123456789abcdef");
  if (digits == 0 || digits > 16 || text[digits] != '\0') return 0;
  *out_number = strtoull(text, NULL, 16);
  return *out_number <= most;
}

static void split(record *one) {
  one->count = 0;
  for (char *field = one->line; one->count < MOST_FIELDS; field++) {
    one->fields[one->count++] = field;
    field += strcspn(field, "\t");
    if (*field == '\0') return;
    *field = '\0';
  }
}

/* The next line, whole and as it was written; 0 with a text if it is not, or with none at the end. */
static int next(reader *r) {
  uint64_t sum;
  r->out_text[0] = '\0';
  if (r->at == r->end) return 0;
  const char *end = memchr(r->at, '\n', (size_t)(r->end - r->at));
  r->line++;
  const size_t length = end == NULL ? 0 : (size_t)(end - r->at);
  if (end == NULL) return complain(r, "expected a whole line, found one that was cut");
  if (length <= SUM_LENGTH + 1 || length >= LINE_BYTES || memchr(r->at, '\0', length) != NULL)
    return complain(r, "expected a record of a profile");
  memcpy(r->now.line, r->at, length);
  r->now.line[length] = '\0';
  r->at = end + 1;
  split(&r->now);
  const size_t skipped = SUM_LENGTH + 1;
  if (strlen(r->now.fields[0]) != SUM_LENGTH || !parse_number(r->now.fields[0], UINT64_MAX, &sum))
    return complain(r, "expected a record of a profile");
  if (sum != XXH3_64bits(end - length + skipped, length - skipped))
    return complain(r, "expected a record as it was written, found one that was changed since");
  return 1;
}

/* ---- devices ---- */

typedef struct device {
  uint64_t fingerprint;
  char     backend[SIM_NAME_BYTES];
  char     uuid[33];
  double   weights[SIM_CLASSES];
  double   sums[SIM_CLASSES];           /* of weight times mean */
  double   weight;
} device;

typedef struct devices {
  device   all[MOST_DEVICES];
  uint32_t count;
} devices;

static int read_header(reader *r) {
  uint64_t version;
  const int is_line = next(r);
  if (!is_line || r->now.count != 4 || strcmp(r->now.fields[1], "profile") != 0 ||
      !parse_number(r->now.fields[2], UINT32_MAX, &version)) {
    r->line = 0;
    return complain(r, "expected what `tensormorph profile export` writes, found something else");
  }
  return version == VERSION || complain(r, "expected a profile of version %u, found %llu", VERSION, (unsigned long long)version);
}

static int take_device(reader *r, devices *known) {
  const record *one = &r->now;
  if (known->count == MOST_DEVICES) return complain(r, "expected at most %u devices", MOST_DEVICES);
  device *fresh = &known->all[known->count];
  memset(fresh, 0, sizeof *fresh);
  if (one->count != 11 || !parse_number(one->fields[2], UINT64_MAX, &fresh->fingerprint) || strlen(one->fields[6]) != 32)
    return complain(r, "expected a device");
  snprintf(fresh->backend, sizeof fresh->backend, "%.63s", one->fields[3]);
  snprintf(fresh->uuid, sizeof fresh->uuid, "%.32s", one->fields[6]);
  known->count++;
  return 1;
}

static int take_entry(reader *r, devices *known) {
  uint64_t fingerprint, kind, class_number, weight, mean;
  const record *one = &r->now;
  const char *magnitude = one->count == 12 ? one->fields[8] + (*one->fields[8] == '-') : "";
  if (one->count != 12 || !parse_number(one->fields[2], UINT64_MAX, &fingerprint) || !parse_number(one->fields[3], UINT32_MAX, &kind) ||
      !parse_number(one->fields[4], UINT64_MAX, &class_number) || !parse_number(one->fields[7], UINT32_MAX, &weight) ||
      !parse_number(magnitude, MOST_MEAN, &mean))
    return complain(r, "expected an entry");
  if (kind != WORK_KIND || class_number >= SIM_CLASSES) return 1;
  for (uint32_t i = 0; i < known->count; i++) {
    device *of = &known->all[i];
    if (of->fingerprint != fingerprint) continue;
    of->weights[class_number] += (double)weight;
    of->sums[class_number] += (double)weight * (double)mean * (*one->fields[8] == '-' ? -1 : 1);
    of->weight += (double)weight;
  }
  return 1;
}

static int read_records(reader *r, const char *kind, int (*take)(reader *r, devices *known), devices *known) {
  if (!read_header(r)) return 0;
  while (next(r))
    if (strcmp(r->now.fields[1], kind) == 0 && !take(r, known)) return 0;
  return r->out_text[0] == '\0';
}

/* ---- the one that is meant ---- */

static int is_meant(const device *one, const char *name) {
  const size_t length = strlen(name);
  if (strcmp(one->backend, name) == 0) return 1;
  return length >= 4 && length <= 32 && strncmp(one->uuid, name, length) == 0;
}

static void list(const devices *known, char *text, size_t room) {
  size_t used = 0;
  for (uint32_t i = 0; i < known->count && used + 100 < room; i++)
    used += (size_t)snprintf(text + used, room - used, "%s%s (%.8s)", i == 0 ? "" : ", ", known->all[i].backend,
                             known->all[i].uuid);
  if (known->count == 0) snprintf(text, room, "none");
}

/* Of the same device with other drivers or threads the one of which most is known. */
static const device *find(const reader *r, const devices *known, const char *name) {
  char names[360];
  const device *found = NULL;
  list(known, names, sizeof names);
  for (uint32_t i = 0; i < known->count; i++) {
    const device *one = &known->all[i];
    if (!is_meant(one, name)) continue;
    if (found != NULL && strcmp(found->uuid, one->uuid) != 0) {
      (void)complain(r, "expected one device, and '%s' is several: name one by its uuid; there are %s", name, names);
      return NULL;
    }
    if (found == NULL || one->weight > found->weight) found = one;
  }
  if (found == NULL) (void)complain(r, "expected a device '%s', and there are %s", name, names);
  return found;
}

static int take(const reader *r, const device *found, sim_profile *profile) {
  if (found->weight == 0) return complain(r, "nothing was measured of '%s': run `tensormorph calibrate` there first", profile->device);
  for (uint32_t i = 0; i < SIM_CLASSES; i++) {
    profile->is_known[i] = found->weights[i] != 0;
    profile->log2_factor[i] = profile->is_known[i] ? found->sums[i] / found->weights[i] / MEAN_ONE : 0;
  }
  return 1;
}

/* Devices first: entries name them. */
int sim_profile_parse(const char *text, size_t bytes, const char *file, sim_profile *profile, char out_text[SIM_TEXT_BYTES]) {
  devices *known = calloc(1, sizeof *known);
  reader *r = calloc(1, sizeof *r);
  int is_good = 0;
  if (known != NULL && r != NULL) {
    *r = (reader){ .file = file, .at = text, .end = text + bytes, .out_text = out_text };
    is_good = read_records(r, "device", take_device, known);
    *r = (reader){ .file = file, .at = text, .end = text + bytes, .out_text = out_text };
    is_good = is_good && read_records(r, "entry", take_entry, known);
    r->line = is_good ? 0 : r->line;
    const device *found = is_good ? find(r, known, profile->device) : NULL;
    is_good = found != NULL && take(r, found, profile);
    profile->hash = XXH3_64bits(text, bytes);
  } else {
    snprintf(out_text, SIM_TEXT_BYTES, "%.300s: no memory to read it", file);
  }
  free(r);
  free(known);
  return is_good;
}

double sim_profile_ns(const sim_profile *profile, const sim_loop *loop, double flops, double bytes) {
  if (!profile->is_known[loop->class_number]) return 0;
  return (1000 + floor(flops / 2) + floor(bytes / 4)) * exp2(profile->log2_factor[loop->class_number]);
}
