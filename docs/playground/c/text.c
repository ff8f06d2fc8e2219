/* Requests taken apart, and answers put together. */
#include "playground.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static char *answer;
static size_t used, room;

static void reserve(size_t more) {
    if (used + more + 1 <= room) return;
    room = 2 * (used + more) + 4096;
    char *grown = realloc(answer, room);
    if (!grown) abort(); /* a page that ran out of memory stops, and says so */
    answer = grown;
}

void pg_clear(void) {
    reserve(1);
    used = 0;
    answer[0] = 0;
}

const char *pg_answer(void) { return answer; }

void pg_put(const char *text, ...) {
    va_list first, second;
    va_start(first, text);
    va_copy(second, first);
    const int n = vsnprintf(NULL, 0, text, first);
    va_end(first);
    reserve((size_t)n);
    vsnprintf(answer + used, (size_t)n + 1, text, second);
    va_end(second);
    used += (size_t)n;
}

void pg_put_string(const char *text) {
    pg_put("\"");
    for (; *text; text++) {
        const unsigned char c = (unsigned char)*text;
        if (c == '"' || c == '\\')
            pg_put("\\%c", c);
        else if (c < 32)
            pg_put("\\u%04x", c);
        else
            pg_put("%c", c);
    }
    pg_put("\"");
}

int pg_fail(const char *text, ...) {
    char line[512];
    va_list arguments;
    va_start(arguments, text);
    vsnprintf(line, sizeof line, text, arguments);
    va_end(arguments);
    pg_clear();
    pg_put("{\"error\":");
    pg_put_string(line);
    pg_put("}");
    return 0;
}

int pg_integer(const char *what, const char *text, long long least, long long most, long long *value) {
    const char *p = text + (*text == '-');
    long long v = 0;
    size_t n = 0;
    for (; p[n] >= '0' && p[n] <= '9' && n < 18; n++)
        v = 10 * v + (p[n] - '0');
    if (*text == '-') v = -v;
    if (!n || p[n] || v < least || v > most)
        return pg_fail("%s: '%.40s' is no integer from %lld to %lld", what, text, least, most);
    *value = v;
    return 1;
}

int pg_hex(const char *what, const char *text, sn_u64 *value) {
    const char *p = text[0] == '0' && (text[1] | 32) == 'x' ? text + 2 : text;
    sn_u64 v = 0;
    size_t n = 0;
    for (; p[n] && n < 17; n++) {
        const char c = p[n] >= 'A' && p[n] <= 'F' ? (char)(p[n] + 32) : p[n];
        if (!((c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'))) break;
        v = v << 4 | (sn_u64)(c <= '9' ? c - '0' : c - 'a' + 10);
    }
    if (!n || n > 16 || p[n]) return pg_fail("%s: '%.40s' is no hexadecimal number of 1 to 16 digits", what, text);
    *value = v;
    return 1;
}

/* ---- requests ---------------------------------------------------------------------------------------------------- */

static char *request;

char *pg_room(size_t bytes) {
    char *grown = realloc(request, bytes + 1);
    if (!grown) abort();
    request = grown;
    request[bytes] = 0;
    return request;
}

const char *pg_call(void) {
    static const struct {
        const char *name;
        int (*answer)(const pg_request *r);
    } commands[] = {
        {"format", pg_answer_format},   {"code", pg_answer_code},
        {"table", pg_answer_table},     {"round", pg_answer_rounded},
        {"dot", pg_answer_dot},         {"draw", pg_answer_draw},
        {"gemm", pg_answer_gemm},       {"operations", pg_answer_operations},
        {"vectors", pg_answer_vectors},
    };
    pg_request r;
    char *p = pg_room(strlen(request ? request : ""));
    for (int i = 0; i < PG_ARGUMENTS; i++) {
        r.line[i] = p;
        p += strcspn(p, "\n");
        if (*p) *p++ = 0;
    }
    pg_clear();
    for (size_t i = 0; i < sizeof commands / sizeof commands[0]; i++)
        if (!strcmp(commands[i].name, r.line[0])) {
            commands[i].answer(&r);
            return answer;
        }
    pg_fail("unknown command '%.40s'", r.line[0]);
    return answer;
}
