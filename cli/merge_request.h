/* SPDX-License-Identifier: Apache-2.0 */
/*
 * merge_request.h - what the user wants merged, gathered from a recipe and the command line.  A later word wins: what is said
 * without a pattern replaces what was said without one, what is said for a pattern comes behind all that was said before.
 */
#ifndef TM_CLI_MERGE_REQUEST_H
#define TM_CLI_MERGE_REQUEST_H

#include <stdbool.h>

#include "tensormorph/tensormorph.h"

typedef struct tm_merge_model {
  const char *path;
  const char *name;             /* another name that weights may call it by; NULL: none */
  const char *hash;             /* of what a recipe was made with; NULL: it has none */
} tm_merge_model;

typedef struct tm_merge_rule_list {
  tm_merge_rule *items;
  uint32_t       count;
  uint32_t       capacity;
} tm_merge_rule_list;

typedef struct tm_merge_request {
  uint32_t       method;        /* TM_MERGE_LINEAR ...; 0: not said */
  uint32_t       missing;
  uint32_t       rows;
  uint32_t       other;
  uint64_t       seed;
  uint64_t       shard_bytes;
  bool           has_seed;
  bool           has_normalize; /* something is said of it, whatever */
  bool           has_rescale;
  bool           keeps_sum;     /* weights, or agreeing differences, are not divided by what they add up to */
  bool           keeps_scale;   /* kept elements of a difference are not divided by the density */
  const char    *base;          /* NULL: none */
  const char    *base_hash;     /* as of a model */
  const char    *output;
  const char    *recipe;        /* the file that it is from; NULL: none */
  tm_merge_model models[TM_MERGE_MOST_MODELS];
  uint32_t       model_count;
  bool           has_operands;  /* the models are those of the command line; a recipe's list gives them other names */
  tm_merge_rule_list usual;     /* for every tensor */
  tm_merge_rule_list special;   /* for those that match */
  char         **owned;         /* every text that was made for this */
  uint32_t       owned_count;
} tm_merge_request;

void tm_merge_request_init(tm_merge_request *request);
void tm_merge_request_deinit(tm_merge_request *request);

/* A copy that lives as long as the request; NULL: no memory. */
const char *tm_merge_request_keep(tm_merge_request *request, const char *text, size_t length);

/* TM_ERROR_ARGUMENT (too many); `where` begins the message, here as below. */
tm_status tm_merge_request_add_model(tm_merge_request *request, const char *where, const char *path, const char *name,
                                     tm_error *error);
/* By its path, the path's last names (one or several), these without extension, its other name, or its number from 1.
   TM_ERROR_ARGUMENT (none, with a suggestion, or several, also the name of one that is the number of another) */
tm_status tm_merge_request_find_model(const tm_merge_request *request, const char *where, const char *name, uint32_t *out_model,
                                      tm_error *error);

/* Within one list a model is named once, by whatever name; `named` has a bit for each that was.   TM_ERROR_ARGUMENT */
tm_status tm_merge_request_name_once(const tm_merge_request *request, const char *where, uint32_t model, uint32_t *named,
                                     tm_error *error);

/* Of several for one thing the last counts.   TM_ERROR_NO_MEMORY */
tm_status tm_merge_request_add_rule(tm_merge_request *request, const tm_merge_rule *rule, tm_error *error);
/* Looks whether the value is in the setting's range before.   Also TM_ERROR_ARGUMENT */
tm_status tm_merge_request_add_number(tm_merge_request *request, const char *where, const tm_merge_rule *rule, tm_error *error);
/* "0.5" for all models, "0.3,0.7" for each, "NAME=0.3,OTHER=0.7", the name of a format.   TM_ERROR_ARGUMENT */
tm_status tm_merge_request_add_text(tm_merge_request *request, const char *where, const char *pattern, uint32_t what,
                                    const char *text, tm_error *error);

/* All of them in the order in which the library wants them; they live as long as the request.   TM_ERROR_NO_MEMORY */
tm_status tm_merge_request_rules(tm_merge_request *request, const tm_merge_rule **out_rules, tm_error *error);

/* By its name alone. */
bool tm_merge_output_is_gguf(const char *path);

/* Whether all is there and nothing that its method does not know.   TM_ERROR_ARGUMENT */
tm_status tm_merge_request_check(const tm_merge_request *request, tm_error *error);

#endif
