/* SPDX-License-Identifier: Apache-2.0 */
#include "plugin/manifest.h"

#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/file.h"
#include "base/folder.h"
#include "base/json_pull.h"
#include "base/processor.h"
#include "base/sha256.h"
#include "base/text.h"

#define SCHEMA 1u
#define LONGEST_PATH 4096u
#define CHUNK_BYTES 65536u

/* ---- the text ---- */

typedef struct manifest_parser {
  tm_json_pull json;
  const char  *path;
  tm_error    *error;
  tm_manifest *manifest;
  bool         has_schema;
} manifest_parser;

static tm_status refuse(const manifest_parser *parser, const char *what) {
  return tm_fail(parser->error, TM_ERROR_CORRUPT, "%s: manifest: %s", parser->path, what);
}

static tm_status syntax(const manifest_parser *parser) {
  return tm_fail(parser->error, TM_ERROR_CORRUPT, "%s: manifest: byte %llu: %s", parser->path,
                 (unsigned long long)parser->json.error_offset, parser->json.error_text);
}

/* A short text without a NUL in it; false when it is longer than the room or no string. */
static bool take_text(const tm_json_token *token, char *out_text, uint64_t capacity) {
  char meaning[4 * TM_MANIFEST_TEXT_BYTES];
  if (token->kind != TM_JSON_STRING || token->length >= sizeof meaning) return false;
  const uint64_t length = tm_json_unescape(token, meaning);
  if (length >= capacity || memchr(meaning, '\0', (size_t)length) != NULL) return false;
  memcpy(out_text, meaning, (size_t)length);
  out_text[length] = '\0';
  return true;
}

static bool take_list(manifest_parser *parser, const tm_json_token *first, char *rows, uint64_t row_bytes, uint32_t most,
                      uint32_t *out_count) {
  if (first->kind != TM_JSON_ARRAY_BEGIN) return false;
  tm_json_token token;
  while (tm_json_next(&parser->json, &token) != TM_JSON_ARRAY_END) {
    if (*out_count == most || !take_text(&token, rows + *out_count * row_bytes, row_bytes)) return false;
    (*out_count)++;
  }
  return true;
}

/* Others mean something else in each folder that a program is started in. */
static bool are_absolute(const tm_manifest *manifest) {
  for (uint32_t i = 0; i < manifest->watch_count; i++)
    if (manifest->watches[i][0] != '/') return false;
  return true;
}

static int digit_of(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

static bool take_digest(const tm_json_token *token, tm_manifest *manifest) {
  char text[2 * TM_SHA256_BYTES + 1];
  if (!take_text(token, text, sizeof text) || strlen(text) != 2 * TM_SHA256_BYTES) return false;
  for (uint32_t i = 0; i < TM_SHA256_BYTES; i++) {
    const int high = digit_of(text[2 * i]), low = digit_of(text[2 * i + 1]);
    if (high < 0 || low < 0) return false;
    manifest->digest[i] = (uint8_t)(high * 16 + low);
  }
  manifest->has_digest = true;
  return true;
}

/* "major.minor" */
static bool take_abi(const tm_json_token *token, tm_manifest *manifest) {
  char text[24];
  char rest;
  if (!take_text(token, text, sizeof text) || text[strspn(text, "0123456789.")] != '\0') return false;
  manifest->has_abi = strlen(text) <= 15 && sscanf(text, "%7u.%7u%c", &manifest->abi_major, &manifest->abi_minor, &rest) == 2;
  return manifest->has_abi;
}

/* One member; false when its value is not what the member must be. */
static bool take_member(manifest_parser *parser, const tm_json_token *key, const tm_json_token *value) {
  tm_manifest *m = parser->manifest;
  if (tm_json_is(key, "schema")) {
    parser->has_schema = value->kind == TM_JSON_NUMBER && value->is_integer && value->integer == SCHEMA;
    return parser->has_schema;
  }
  if (tm_json_is(key, "name")) return take_text(value, m->name, sizeof m->name) && m->name[0] != '\0';
  if (tm_json_is(key, "version")) return take_text(value, m->version, sizeof m->version);
  if (tm_json_is(key, "file")) return take_text(value, m->file, sizeof m->file);
  if (tm_json_is(key, "architecture")) return take_text(value, m->architecture, sizeof m->architecture);
  if (tm_json_is(key, "abi")) return take_abi(value, m);
  if (tm_json_is(key, "sha256")) return take_digest(value, m);
  if (tm_json_is(key, "processor_features")) {
    m->feature_count = 0;
    return take_list(parser, value, m->features[0], sizeof m->features[0], TM_MANIFEST_FEATURES, &m->feature_count);
  }
  if (tm_json_is(key, "watches")) {
    m->watch_count = 0;
    return take_list(parser, value, m->watches[0], sizeof m->watches[0], TM_MANIFEST_WATCHES, &m->watch_count) && are_absolute(m);
  }
  return tm_json_skip(&parser->json, value);
}

static const char *rule_of(const tm_json_token *key) {
  static const char *const rules[][2] = { { "schema", "must be 1" }, { "name", "must be a text that is not empty" },
    { "version", "must be a text" }, { "file", "must be a text" }, { "architecture", "must be a text" },
    { "abi", "must be \"MAJOR.MINOR\"" }, { "sha256", "must be 64 hex digits" },
    { "processor_features", "must be a list of at most 64 texts of at most 64 bytes" },
    { "watches", "must be a list of at most 16 absolute paths of at most 256 bytes" } };
  _Static_assert(TM_MANIFEST_FEATURES == 64 && TM_MANIFEST_NAME_BYTES == 65 && TM_MANIFEST_WATCHES == 16 && TM_MANIFEST_TEXT_BYTES == 257,
                 "the rules name these limits");
  for (size_t i = 0; i < sizeof rules / sizeof rules[0]; i++)
    if (tm_json_is(key, rules[i][0])) return rules[i][1];
  return "is not what it must be";
}

static tm_status member_is_wrong(const manifest_parser *parser, const tm_json_token *key) {
  char name[48];
  if (parser->json.error_text != NULL) return syntax(parser);
  (void)tm_text_escape(key->text, key->length, name, sizeof name);
  return tm_fail(parser->error, TM_ERROR_CORRUPT, "%s: manifest: \"%s\" %s (byte %llu)", parser->path, name, rule_of(key),
                 (unsigned long long)key->offset);
}

static tm_status parse_members(manifest_parser *parser) {
  tm_json_token key, value;
  tm_json_kind kind;
  while ((kind = tm_json_next(&parser->json, &key)) == TM_JSON_KEY) {
    if (tm_json_next(&parser->json, &value) == TM_JSON_ERROR) return syntax(parser);
    if (!take_member(parser, &key, &value)) return member_is_wrong(parser, &key);
  }
  if (kind != TM_JSON_OBJECT_END || tm_json_next(&parser->json, &key) != TM_JSON_END) return syntax(parser);
  return TM_OK;
}

tm_status tm_manifest_parse(const char *text, uint64_t length, const char *path, tm_manifest *out_manifest, tm_error *error) {
  memset(out_manifest, 0, sizeof *out_manifest);
  manifest_parser parser = { .path = path, .error = error, .manifest = out_manifest };
  tm_json_token token;
  if (length > TM_MANIFEST_BYTES) return refuse(&parser, "larger than 65536 bytes");
  tm_json_init(&parser.json, text, length);
  const tm_json_kind kind = tm_json_next(&parser.json, &token);
  if (kind == TM_JSON_ERROR) return syntax(&parser);
  if (kind != TM_JSON_OBJECT_BEGIN) return refuse(&parser, "it is no JSON object");
  TM_TRY(parse_members(&parser));
  if (!parser.has_schema) return refuse(&parser, "it does not say \"schema\": 1");
  if (out_manifest->name[0] == '\0') return refuse(&parser, "it does not say which \"name\" the plugin has");
  out_manifest->exists = true;
  return TM_OK;
}

/* ---- the file ---- */

/* "/x/foo.so" -> "/x/foo.json"; false when it is none or too long. */
static bool manifest_path(const char *plugin_path, char path[LONGEST_PATH]) {
  const size_t length = strlen(plugin_path);
  const bool has_suffix = length > 3 && strcmp(plugin_path + length - 3, ".so") == 0;
  return has_suffix && (size_t)snprintf(path, LONGEST_PATH, "%.*s.json", (int)(length - 3), plugin_path) < LONGEST_PATH;
}

static tm_status load_text(tm_memory *memory, const tm_file *file, const char *path, tm_manifest *out_manifest, tm_error *error) {
  const uint64_t bytes = tm_file_size(file);
  if (bytes > TM_MANIFEST_BYTES)
    return tm_fail(error, TM_ERROR_CORRUPT, "%s: manifest: %llu bytes, at most %u", path, (unsigned long long)bytes, TM_MANIFEST_BYTES);
  char *text = tm_memory_alloc(memory, bytes, 0);
  if (text == NULL) return tm_fail(error, TM_ERROR_NO_MEMORY, "no memory to read a manifest");
  tm_status status = tm_file_read(file, 0, text, bytes, error);
  if (status == TM_OK) status = tm_manifest_parse(text, bytes, path, out_manifest, error);
  tm_memory_free(memory, text, bytes);
  return status;
}

tm_status tm_manifest_load(tm_memory *memory, const char *plugin_path, tm_manifest *out_manifest, tm_error *error) {
  memset(out_manifest, 0, sizeof *out_manifest);
  char path[LONGEST_PATH];
  tm_file *file = NULL;
  if (!manifest_path(plugin_path, path)) return TM_OK;
  const tm_status opened = tm_file_open(memory, path, 0, &file, error);
  if (opened == TM_ERROR_NOT_FOUND && tm_path_has_entry(path))
    return tm_fail(error, TM_ERROR_CORRUPT, "%s: manifest: it is a link to a file that is not there", path);
  if (opened != TM_OK) return opened == TM_ERROR_NOT_FOUND ? TM_OK : opened;
  const tm_status status = load_text(memory, file, path, out_manifest, error);
  tm_file_close(file);
  return status;
}

/* ---- what it claims ---- */

static tm_status add_content(const tm_file *file, tm_sha256 *hash, void *chunk, tm_error *error) {
  const uint64_t size = tm_file_size(file);
  for (uint64_t done = 0; done < size;) {
    const uint64_t part = size - done < CHUNK_BYTES ? size - done : CHUNK_BYTES;
    TM_TRY(tm_file_read(file, done, chunk, part, error));
    tm_sha256_add(hash, chunk, part);
    done += part;
  }
  return TM_OK;
}

static tm_status check_digest(const tm_manifest *manifest, tm_memory *memory, const char *plugin_path, tm_error *error) {
  tm_file *file = NULL;
  TM_TRY(tm_file_open(memory, plugin_path, 0, &file, error));
  void *chunk = tm_memory_alloc(memory, CHUNK_BYTES, 0);
  tm_sha256 hash;
  uint8_t digest[TM_SHA256_BYTES];
  tm_sha256_init(&hash);
  const tm_status status = chunk == NULL ? tm_fail(error, TM_ERROR_NO_MEMORY, "no memory to read a plugin")
                                         : add_content(file, &hash, chunk, error);
  tm_memory_free(memory, chunk, CHUNK_BYTES);
  tm_file_close(file);
  TM_TRY(status);
  tm_sha256_finish(&hash, digest);
  if (memcmp(digest, manifest->digest, sizeof digest) == 0) return TM_OK;
  return tm_fail(error, TM_ERROR_CORRUPT, "its manifest gives another sha256 (%02x%02x%02x%02x...) than the file has (%02x%02x%02x%02x...)",
                 manifest->digest[0], manifest->digest[1], manifest->digest[2], manifest->digest[3], digest[0], digest[1],
                 digest[2], digest[3]);
}

static tm_status check_features(const tm_manifest *manifest, tm_error *error) {
  for (uint32_t i = 0; i < manifest->feature_count; i++) {
    bool known = false;
    if (tm_processor_has(manifest->features[i], &known) || !known) continue;
    return tm_fail(error, TM_ERROR_CORRUPT, "its manifest asks for a processor feature that this machine lacks: %.64s",
                   manifest->features[i]);
  }
  return TM_OK;
}

tm_status tm_manifest_check(const tm_manifest *manifest, tm_memory *memory, const char *plugin_path, tm_error *error) {
  if (!manifest->exists) return TM_OK;
  const char *slash = strrchr(plugin_path, '/');
  const char *file = slash == NULL ? plugin_path : slash + 1;
  if (manifest->file[0] != '\0' && strcmp(manifest->file, file) != 0)
    return tm_fail(error, TM_ERROR_CORRUPT, "its manifest is about another file: %.256s", manifest->file);
  if (manifest->architecture[0] != '\0' && strcmp(manifest->architecture, tm_processor_architecture()) != 0)
    return tm_fail(error, TM_ERROR_CORRUPT, "its manifest says that it is for another architecture: %.64s, this is %s",
                   manifest->architecture, tm_processor_architecture());
  if (manifest->has_abi && manifest->abi_major != TM_ABI_MAJOR)
    return tm_fail(error, TM_ERROR_CORRUPT, "its manifest says that it is made for contract version %u.%u; this library serves %u.%u",
                   manifest->abi_major, manifest->abi_minor, TM_ABI_MAJOR, TM_ABI_MINOR);
  TM_TRY(check_features(manifest, error));
  return manifest->has_digest ? check_digest(manifest, memory, plugin_path, error) : TM_OK;
}

tm_status tm_manifest_compare(const tm_manifest *manifest, const char *name, const char *version, tm_error *error) {
  if (!manifest->exists) return TM_OK;
  if (strcmp(manifest->name, name) != 0)
    return tm_fail(error, TM_ERROR_CORRUPT, "its manifest calls it %.64s, the plugin itself %.64s", manifest->name, name);
  if (manifest->version[0] != '\0' && strcmp(manifest->version, version) != 0)
    return tm_fail(error, TM_ERROR_CORRUPT, "its manifest says version %.64s, the plugin itself %.64s", manifest->version, version);
  return TM_OK;
}
