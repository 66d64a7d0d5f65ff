/* SPDX-License-Identifier: Apache-2.0 */
#include "quantity.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct unit_row {
  const char *name;
  uint64_t    scale;
} unit_row;

/* A bare letter and the form with "i" mean powers of 1024, the form with "B" alone powers of 1000, as in coreutils. */
static const unit_row size_units[] = {
  { "", 1 }, { "b", 1 },
  { "k", UINT64_C(1) << 10 }, { "kib", UINT64_C(1) << 10 }, { "kb", UINT64_C(1000) },
  { "m", UINT64_C(1) << 20 }, { "mib", UINT64_C(1) << 20 }, { "mb", UINT64_C(1000000) },
  { "g", UINT64_C(1) << 30 }, { "gib", UINT64_C(1) << 30 }, { "gb", UINT64_C(1000000000) },
  { "t", UINT64_C(1) << 40 }, { "tib", UINT64_C(1) << 40 }, { "tb", UINT64_C(1000000000000) },
};

static const unit_row time_units[] = {
  { "", 1000000000 }, { "s", 1000000000 }, { "ms", 1000000 },
  { "us", 1000 },     { "ns", 1 },         { "min", UINT64_C(60000000000) },
};

/* Prices of work beyond all bounds end here. */
#define LONGEST_PRICE_NS (UINT64_C(1000000000) * 1000000)

static char lower(char c) { return c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c; }

static bool same_name(const char *a, const char *b) {
  while (*a != '\0' && lower(*a) == lower(*b)) {
    a++;
    b++;
  }
  return *a == '\0' && *b == '\0';
}

/* A decimal number and a unit.  Exact while the number is whole; a fraction is rounded to the nearest. */
static bool parse_scaled(const char *text, const unit_row *units, size_t unit_count, uint64_t *out_value) {
  if (text[0] < '0' || text[0] > '9') return false;
  char *end = NULL;
  errno = 0;
  const unsigned long long whole = strtoull(text, &end, 10);
  if (errno != 0) return false;
  double fraction = 0;
  if (*end == '.') {
    double place = 0.1;
    for (end++; *end >= '0' && *end <= '9'; end++, place /= 10) fraction += place * (*end - '0');
  }
  while (*end == ' ') end++;
  for (size_t i = 0; i < unit_count; i++) {
    uint64_t value = 0;
    if (!same_name(end, units[i].name)) continue;
    if (__builtin_mul_overflow(whole, units[i].scale, &value)) return false;
    const uint64_t rest = (uint64_t)(fraction * (double)units[i].scale + 0.5);
    if (__builtin_add_overflow(value, rest, &value)) return false;
    *out_value = value;
    return true;
  }
  return false;
}

bool tm_quantity_parse_size(const char *text, uint64_t *out_bytes) {
  return parse_scaled(text, size_units, sizeof size_units / sizeof size_units[0], out_bytes);
}

bool tm_quantity_parse_duration(const char *text, uint64_t *out_ns) {
  return parse_scaled(text, time_units, sizeof time_units / sizeof time_units[0], out_ns);
}

bool tm_quantity_parse_count(const char *text, uint64_t *out_count) {
  if (text[0] == '\0' || text[strspn(text, "0123456789")] != '\0') return false;
  errno = 0;
  const unsigned long long value = strtoull(text, NULL, 10);
  if (errno != 0) return false;
  *out_count = value;
  return true;
}

/* Three significant digits of a value below 1000 (or of the largest unit, any value). */
static void print_three(double value, const char *unit, tm_quantity *out) {
  const int decimals = value < 9.995 ? 2 : value < 99.95 ? 1 : 0;
  snprintf(out->text, sizeof out->text, "%.*f%s%s", decimals, value, unit[0] != '\0' ? " " : "", unit);
}

/* What ends there because nothing larger can be told is that or more. */
static void say_more(tm_quantity *out) {
  memmove(out->text + 2, out->text, sizeof out->text - 2);
  memcpy(out->text, "> ", 2);
  out->text[sizeof out->text - 1] = '\0';
}

static const char *print_scaled(uint64_t value, const char *const *units, size_t unit_count, tm_quantity *out) {
  if (value < 1000) {
    snprintf(out->text, sizeof out->text, "%u%s%s", (unsigned)value, units[0][0] != '\0' ? " " : "", units[0]);
    return out->text;
  }
  double scaled = (double)value;
  size_t unit = 0;
  /* 999.5 would print as 1000, which is the next unit's 1.00. */
  for (; scaled >= 999.5 && unit + 1 < unit_count; unit++) scaled /= 1000;
  print_three(scaled, units[unit], out);
  if (value == UINT64_MAX) say_more(out);
  return out->text;
}

const char *tm_quantity_bytes(uint64_t bytes, tm_quantity *out) {
  static const char *const units[] = { "B", "kB", "MB", "GB", "TB", "PB", "EB" };
  return print_scaled(bytes, units, sizeof units / sizeof units[0], out);
}

const char *tm_quantity_short_count(uint64_t count, tm_quantity *out) {
  static const char *const units[] = { "", "k", "M", "G", "T", "P", "E" };
  return print_scaled(count, units, sizeof units / sizeof units[0], out);
}

const char *tm_quantity_count(uint64_t count, tm_quantity *out) {
  char     reversed[TM_QUANTITY_BYTES];
  unsigned length = 0, digits = 0;
  do {
    if (digits != 0 && digits % 3 == 0) reversed[length++] = ',';
    reversed[length++] = (char)('0' + count % 10);
    count /= 10;
    digits++;
  } while (count != 0);
  for (unsigned i = 0; i < length; i++) out->text[i] = reversed[length - 1 - i];
  out->text[length] = '\0';
  return out->text;
}

const char *tm_quantity_clock(uint64_t seconds, tm_quantity *out) {
  const uint64_t hours = seconds / 3600;
  const unsigned minutes = (unsigned)(seconds / 60 % 60), rest = (unsigned)(seconds % 60);
  if (hours > 0)
    snprintf(out->text, sizeof out->text, "%llu:%02u:%02u", (unsigned long long)hours, minutes, rest);
  else
    snprintf(out->text, sizeof out->text, "%u:%02u", minutes, rest);
  return out->text;
}

const char *tm_quantity_duration(uint64_t duration_ns, tm_quantity *out) {
  static const char *const units[] = { "ns", "us", "ms", "s" };
  if (duration_ns < UINT64_C(60000000000)) return print_scaled(duration_ns, units, sizeof units / sizeof units[0], out);
  const uint64_t seconds = (duration_ns + UINT64_C(500000000)) / UINT64_C(1000000000);
  tm_quantity_clock(seconds, out);
  strcat(out->text, seconds < 3600 ? " min" : " h");
  if (duration_ns >= LONGEST_PRICE_NS) say_more(out);
  return out->text;
}

const char *tm_quantity_rate(uint64_t bytes, uint64_t duration_ns, tm_quantity *out) {
  if (duration_ns == 0) {
    memcpy(out->text, "-", 2);
    return out->text;
  }
  tm_quantity_bytes((uint64_t)((double)bytes * 1e9 / (double)duration_ns + 0.5), out);
  strcat(out->text, "/s");
  return out->text;
}
