/* SPDX-License-Identifier: Apache-2.0 */
/*
 * profile_text.h - what was learned of devices and links, as text: one record a line, each with a checksum of its own, so that
 * of a file that was cut or damaged the rest still counts.  The first line says what the file is.
 *
 *   <checksum> profile <version> <generation>
 *   <checksum> device <fingerprint> <backend> <build> <abi> <uuid> <cost model> <driver> <threads> <memory bytes>
 *   <checksum> link <fingerprint> <from> <to>
 *   <checksum> entry <fingerprint> <kind> <key> <reset> <samples> <weight> <mean> <variance> <op> <formats>
 *
 * Fields are separated by tabs.  The checksum is of what follows it.
 */
#ifndef TM_SCHEDULE_PROFILE_TEXT_H
#define TM_SCHEDULE_PROFILE_TEXT_H

#include "schedule/correction.h"

#define TM_PROFILE_VERSION 1u
#define TM_PROFILE_NAME_BYTES 128
#define TM_PROFILE_LINE_BYTES 1024u

/* What knowledge of a device depends on. */
typedef struct tm_profile_device {
  char     backend[TM_PROFILE_NAME_BYTES];
  char     build_id[TM_PROFILE_NAME_BYTES];
  char     driver[TM_PROFILE_NAME_BYTES];
  char     uuid[33];
  uint32_t abi;
  uint64_t cost_model_id;
  uint64_t thread_count;        /* of the host's pool */
  uint64_t memory_bytes;
} tm_profile_device;

typedef enum tm_profile_record_kind {
  TM_PROFILE_HEADER, TM_PROFILE_DEVICE, TM_PROFILE_LINK, TM_PROFILE_ENTRY, TM_PROFILE_RECORD_KINDS
} tm_profile_record_kind;

typedef struct tm_profile_record {
  tm_profile_record_kind kind;
  uint32_t            version;          /* HEADER */
  uint64_t            generation;       /* HEADER */
  uint64_t            fingerprint;      /* of the device or link */
  tm_profile_device   device;
  tm_correction_link  link;
  tm_correction_entry entry;            /* kind, key, node.fresh, node.is_reset, work, size_log2 */
} tm_profile_record;

/* Takes the texts of a device: what could not stand in a line is replaced, what is too long is cut. */
void     tm_profile_device_set(char out_field[TM_PROFILE_NAME_BYTES], const char *text);
uint64_t tm_profile_device_fingerprint(const tm_profile_device *device);
uint64_t tm_profile_link_fingerprint(const tm_correction_link *link);

/* Its length, newline included. */
uint64_t tm_profile_record_print(const tm_profile_record *record, char text[TM_PROFILE_LINE_BYTES]);
/* A line without its newline; false if it is anything else, or damaged. */
bool     tm_profile_record_parse(const char *line, uint64_t length, tm_profile_record *out_record);

/* What is wrong with a text. */
typedef struct tm_profile_flaws {
  bool     is_foreign;          /* its first line is not that of a profile: nothing was read */
  uint32_t version;             /* of a profile of another version, of which nothing was read; else 0 */
  uint64_t damaged_count;       /* lines */
} tm_profile_flaws;

typedef void (*tm_profile_record_fn)(void *context, const tm_profile_record *record);
/* Hands over every sound record, the header first. */
tm_profile_flaws tm_profile_text_read(const char *text, uint64_t bytes, tm_profile_record_fn take, void *context);

#endif
