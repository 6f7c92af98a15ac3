#include "net/address_text.h"
#include <assert.h>
#include <coil/address.h>
#include <errno.h>
#include <net/if.h>
#include <netinet/in.h>
#include <string.h>

enum { ADDRESS_GROUPS = 8, ADDRESS_V6_TEXT = ADDRESS_GROUPS * 5 - 1 };

/* The longest text: eight full groups, a percent sign, a name (IF_NAMESIZE
 * counts the terminator). */
static_assert(COIL_ADDRESS_TEXT_MAX == ADDRESS_V6_TEXT + 1 + IF_NAMESIZE,
              "COIL_ADDRESS_TEXT_MAX is the longest text");

static const uint8_t address_mapped_prefix[12] = {[10] = 0xff, [11] = 0xff};

/* ------------------------------------------------------------------- make */

coil_address coil_address_v4(uint32_t number)
{
    coil_address address = {.family = AF_INET};
    uint32_t wire = htonl(number);

    memcpy(address.bytes, &wire, sizeof(wire));
    return address;
}

coil_address coil_address_v6(const uint8_t *bytes, uint32_t zone)
{
    coil_address address = {.family = AF_INET6, .zone = zone};

    memcpy(address.bytes, bytes, sizeof(address.bytes));
    return address;
}

coil_address coil_address_any_v4(void)
{
    return coil_address_v4(INADDR_ANY);
}

coil_address coil_address_any_v6(void)
{
    return coil_address_v6(in6addr_any.s6_addr, 0);
}

coil_address coil_address_loopback_v4(void)
{
    return coil_address_v4(INADDR_LOOPBACK);
}

coil_address coil_address_loopback_v6(void)
{
    return coil_address_v6(in6addr_loopback.s6_addr, 0);
}

coil_address coil_address_map_v4(const coil_address *address)
{
    coil_address mapped = {.family = AF_INET6};

    if (!coil_address_is_v4(address))
        return *address;
    memcpy(mapped.bytes, address_mapped_prefix, 12);
    memcpy(mapped.bytes + 12, address->bytes, 4);
    return mapped;
}

coil_address coil_address_unmap_v4(const coil_address *address)
{
    coil_address unmapped = {.family = AF_INET};

    if (!coil_address_is_v4_mapped(address))
        return *address;
    memcpy(unmapped.bytes, address->bytes + 12, 4);
    return unmapped;
}

/* ------------------------------------------------------------------ parse */

static bool address_take_v4(struct address_text *text, uint8_t *ret_bytes)
{
    for (int i = 0; i < 4; i++) {
        uint32_t number;

        if (i > 0 && !address_text_take(text, '.'))
            return false;
        if (!address_text_take_number(text, UINT8_MAX, &number))
            return false;
        ret_bytes[i] = (uint8_t)number;
    }
    return true;
}

/* The value of a hexadecimal digit, -1 for other characters. */
static int address_hex_value(char character)
{
    if (address_is_digit(character))
        return character - '0';
    if (character >= 'a' && character <= 'f')
        return character - 'a' + 10;
    if (character >= 'A' && character <= 'F')
        return character - 'A' + 10;
    return -1;
}

/* Takes one to four hexadecimal digits. A fifth is left, and is no separator. */
static bool address_take_group(struct address_text *text, unsigned *ret_group)
{
    const char *start = text->at;
    unsigned group = 0;

    while (!address_text_ends(text) && text->at - start < 4) {
        int value = address_hex_value(*text->at);

        if (value < 0)
            break;
        group = group << 4 | (unsigned)value;
        text->at++;
    }
    *ret_group = group;
    return text->at > start;
}

/* An IPv6 address while it is read. */
struct address_v6 {
    uint8_t bytes[16];
    size_t used; /* bytes read so far */
    size_t gap;  /* where `::` was, ADDRESS_NO_GAP if it was not yet */
};

enum { ADDRESS_NO_GAP = 17 };

/* Takes a group, or the IPv4 address that may stand for the last two. Which of
 * them it is shows only after its first digits. */
static bool address_v6_take_part(struct address_v6 *v6,
                                 struct address_text *text)
{
    struct address_text start = *text;
    unsigned group;

    if (v6->used > 14 || !address_take_group(text, &group))
        return false;
    if (!address_text_sees(text, '.')) {
        v6->bytes[v6->used++] = (uint8_t)(group >> 8);
        v6->bytes[v6->used++] = (uint8_t)group;
        return true;
    }
    *text = start;
    if (v6->used > 12 || !address_take_v4(text, v6->bytes + v6->used))
        return false;
    v6->used += 4;
    return address_text_ends(text);
}

/* Takes what stands between two parts or ends the text: a colon, which needs a
 * part after it, or the only `::`, which does not. */
static bool address_v6_take_separator(struct address_v6 *v6,
                                      struct address_text *text)
{
    if (!address_text_take(text, ':'))
        return false;
    if (!address_text_take(text, ':'))
        return !address_text_ends(text);
    if (v6->gap != ADDRESS_NO_GAP)
        return false;
    v6->gap = v6->used;
    return true;
}

/* Moves what came after `::` to the end. It stands for at least one group. */
static bool address_v6_close_gap(struct address_v6 *v6)
{
    size_t after = v6->used - v6->gap;

    if (v6->gap == ADDRESS_NO_GAP)
        return v6->used == 16;
    if (v6->used == 16)
        return false;
    memmove(v6->bytes + 16 - after, v6->bytes + v6->gap, after);
    memset(v6->bytes + v6->gap, 0, 16 - v6->used);
    return true;
}

static bool address_take_v6(struct address_text *text, uint8_t *ret_bytes)
{
    struct address_v6 v6 = {.gap = ADDRESS_NO_GAP};

    if (address_text_sees(text, ':') &&
        (!address_v6_take_separator(&v6, text) || v6.gap != 0))
        return false;
    while (!address_text_ends(text)) {
        if (!address_v6_take_part(&v6, text))
            return false;
        if (!address_text_ends(text) && !address_v6_take_separator(&v6, text))
            return false;
    }
    if (!address_v6_close_gap(&v6))
        return false;
    memcpy(ret_bytes, v6.bytes, sizeof(v6.bytes));
    return true;
}

static bool address_all_digits(const char *text, size_t length)
{
    for (size_t i = 0; i < length; i++)
        if (!address_is_digit(text[i]))
            return false;
    return true;
}

static int address_zone_of_name(const char *name, uint32_t *ret_zone)
{
    int saved = errno;
    unsigned index = if_nametoindex(name);
    int result = index ? 0 : -errno;

    errno = saved;
    if (result >= 0)
        *ret_zone = index;
    return result;
}

/* No interface has a colon in its name; the kernel would pass over it and what
 * follows, and take "lo:80" for "lo". */
static int address_parse_zone(struct address_text text, uint32_t *ret_zone)
{
    size_t length = (size_t)(text.end - text.at);
    char name[IF_NAMESIZE] = {0};

    if (length == 0 || length >= sizeof(name) ||
        memchr(text.at, '\0', length) || memchr(text.at, ':', length))
        return -EINVAL;
    if (address_all_digits(text.at, length))
        return address_text_take_number(&text, UINT32_MAX, ret_zone) ? 0
                                                                     : -EINVAL;
    memcpy(name, text.at, length);
    return address_zone_of_name(name, ret_zone);
}

static int address_parse_v4(struct address_text text, coil_address *ret_address)
{
    coil_address address = {.family = AF_INET};

    if (!address_take_v4(&text, address.bytes) || !address_text_ends(&text))
        return -EINVAL;
    *ret_address = address;
    return 0;
}

static int address_parse_v6(struct address_text text, coil_address *ret_address)
{
    coil_address address = {.family = AF_INET6};
    const char *percent = memchr(text.at, '%', (size_t)(text.end - text.at));
    struct address_text front = {text.at, percent ? percent : text.end};
    int result = 0;

    if (!address_take_v6(&front, address.bytes))
        return -EINVAL;
    if (percent)
        result = address_parse_zone(
            (struct address_text){percent + 1, text.end}, &address.zone);
    if (result >= 0)
        *ret_address = address;
    return result;
}

int coil_address_parse(coil_address *ret_address, const char *text,
                       size_t length)
{
    if (length == 0)
        return -EINVAL;
    if (memchr(text, ':', length))
        return address_parse_v6((struct address_text){text, text + length},
                                ret_address);
    return address_parse_v4((struct address_text){text, text + length},
                            ret_address);
}

/* ------------------------------------------------------------------ print */

static char *address_put(char *at, const char *text)
{
    size_t length = strlen(text);

    memcpy(at, text, length);
    return at + length;
}

static char *address_put_v4(char *at, const uint8_t *bytes)
{
    for (int i = 0; i < 4; i++) {
        if (i > 0)
            *at++ = '.';
        at = address_text_put_number(at, bytes[i], 10);
    }
    return at;
}

static unsigned address_group(const uint8_t *bytes, unsigned index)
{
    return (unsigned)bytes[2 * index] << 8 | bytes[2 * index + 1];
}

/* The first of the longest runs of zero groups. Returns its length, 0 if there
 * is none of two or more. */
static unsigned address_zero_run(const uint8_t *bytes, unsigned *ret_start)
{
    unsigned best = 0, length = 0;

    for (unsigned i = 0; i < ADDRESS_GROUPS; i++) {
        length = address_group(bytes, i) ? 0 : length + 1;
        if (length > best) {
            best = length;
            *ret_start = i + 1 - length;
        }
    }
    return best >= 2 ? best : 0;
}

static char *address_put_v6(char *at, const uint8_t *bytes)
{
    unsigned start = 0, length = address_zero_run(bytes, &start), i = 0;

    while (i < ADDRESS_GROUPS) {
        if (length && i == start) {
            at = address_put(at, "::");
            i += length;
            continue;
        }
        if (i > 0 && !(length && i == start + length))
            *at++ = ':';
        at = address_text_put_number(at, address_group(bytes, i++), 16);
    }
    return at;
}

static char *address_put_zone(char *at, uint32_t zone)
{
    char name[IF_NAMESIZE];
    int saved = errno;
    bool named = if_indextoname(zone, name) != NULL;

    errno = saved;
    *at++ = '%';
    if (named && !address_all_digits(name, strlen(name)))
        return address_put(at, name);
    return address_text_put_number(at, zone, 10);
}

/* Writes at most COIL_ADDRESS_TEXT_MAX - 1 characters, no terminator. */
static char *address_put_any(char *at, const coil_address *address)
{
    if (coil_address_is_v4(address))
        return address_put_v4(at, address->bytes);
    if (!coil_address_is_v6(address))
        return address_put(at, "unspecified");
    if (coil_address_is_v4_mapped(address))
        at = address_put_v4(address_put(at, "::ffff:"), address->bytes + 12);
    else
        at = address_put_v6(at, address->bytes);
    return address->zone ? address_put_zone(at, address->zone) : at;
}

ssize_t coil_address_print(const coil_address *address, char *ret_text,
                           size_t capacity)
{
    char text[COIL_ADDRESS_TEXT_MAX];
    size_t length = (size_t)(address_put_any(text, address) - text);

    if (length >= capacity) {
        if (capacity)
            *ret_text = '\0';
        return -ENOSPC;
    }
    memcpy(ret_text, text, length);
    ret_text[length] = '\0';
    return (ssize_t)length;
}

/* ---------------------------------------------------------------- inquire */

bool coil_address_is_v4_mapped(const coil_address *address)
{
    return coil_address_is_v6(address) &&
           memcmp(address->bytes, address_mapped_prefix, 12) == 0;
}

bool coil_address_is_any(const coil_address *address)
{
    static const uint8_t zeros[16];
    coil_address inner = coil_address_unmap_v4(address);

    if (coil_address_is_v4(&inner))
        return memcmp(inner.bytes, zeros, 4) == 0;
    return coil_address_is_v6(&inner) && memcmp(inner.bytes, zeros, 16) == 0;
}

bool coil_address_is_loopback(const coil_address *address)
{
    coil_address inner = coil_address_unmap_v4(address);

    if (coil_address_is_v4(&inner))
        return inner.bytes[0] == 127;
    return coil_address_is_v6(&inner) &&
           memcmp(inner.bytes, &in6addr_loopback, 16) == 0;
}

bool coil_address_is_multicast(const coil_address *address)
{
    coil_address inner = coil_address_unmap_v4(address);

    if (coil_address_is_v4(&inner))
        return inner.bytes[0] >> 4 == 0xe;
    return coil_address_is_v6(&inner) && inner.bytes[0] == 0xff;
}

bool coil_address_is_link_local(const coil_address *address)
{
    coil_address inner = coil_address_unmap_v4(address);

    if (coil_address_is_v4(&inner))
        return inner.bytes[0] == 169 && inner.bytes[1] == 254;
    return coil_address_is_v6(&inner) && inner.bytes[0] == 0xfe &&
           inner.bytes[1] >> 6 == 2;
}

/* The address with all that does not count set to zero, so that addresses that
 * users filled in by hand compare and hash by what they mean. */
static coil_address address_normal(const coil_address *address)
{
    coil_address normal = {.family = address->family};

    if (coil_address_is_v4(address))
        memcpy(normal.bytes, address->bytes, 4);
    if (coil_address_is_v6(address))
        return *address;
    return normal;
}

int coil_address_compare(const coil_address *left, const coil_address *right)
{
    coil_address l = address_normal(left), r = address_normal(right);
    int order;

    if (l.family != r.family)
        return l.family < r.family ? -1 : 1;
    order = memcmp(l.bytes, r.bytes, sizeof(l.bytes));
    if (order)
        return order;
    return (l.zone > r.zone) - (l.zone < r.zone);
}

bool coil_address_equal(const coil_address *left, const coil_address *right)
{
    return coil_address_compare(left, right) == 0;
}

/* The finishing step of splitmix64: each bit of the input changes each bit of
 * the output with a chance near one half. */
static uint64_t address_mix(uint64_t value)
{
    value += 0x9e3779b97f4a7c15;
    value = (value ^ value >> 30) * 0xbf58476d1ce4e5b9;
    value = (value ^ value >> 27) * 0x94d049bb133111eb;
    return value ^ value >> 31;
}

uint64_t coil_address_hash(const coil_address *address)
{
    coil_address normal = address_normal(address);
    uint64_t hash = (uint64_t)normal.zone << 32 | (uint32_t)normal.family;
    uint64_t half[2];

    memcpy(half, normal.bytes, sizeof(half));
    hash = address_mix(hash) ^ half[1];
    return address_mix(address_mix(hash) ^ half[0]);
}
