/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sim_json.h - JSON objects into structs, by tables of fields.  Whatever does not fit is told as one sentence: file, place,
 * what was expected and what was found.
 */
#ifndef SIM_JSON_H
#define SIM_JSON_H

#include <jansson.h>
#include <stddef.h>
#include <tensormorph/plugin.h>

#define SIM_TEXT_BYTES 800u
#define SIM_NAME_BYTES 64u

/* Where in which file, and what was wrong first. */
typedef struct sim_reader {
  const char *file;
  char        place[96];
  char        text[SIM_TEXT_BYTES];
} sim_reader;

typedef enum sim_kind {
  SIM_COUNT,                            /* a whole number from `least` to `most`: uint64_t */
  SIM_RATE,                             /* a number from `least` to `most`: double */
  SIM_FLAG,                             /* true or false: uint32_t */
  SIM_WORD,                             /* 1 to SIM_NAME_BYTES - 1 printable characters: char[SIM_NAME_BYTES] */
  SIM_OTHER                             /* read by the caller */
} sim_kind;

/* A field of an object.  `offset`: into the struct; a field that is not there leaves it as it is. */
typedef struct sim_field {
  const char *key;
  sim_kind    kind;
  size_t      offset;
  double      least;
  double      most;
  uint32_t    is_required;
} sim_field;

/* Always 0, so that it can be returned at once. */
int sim_complain(sim_reader *reader, const char *key, const char *expected, const json_t *found);

/* Fills *out; 0 and a text in the reader if `object` is none, lacks a field, has an unknown one or a wrong value. */
int sim_read_object(sim_reader *reader, const json_t *object, const sim_field *fields, uint32_t field_count, void *out);

#endif
