#include <coil/address.h>
#include <errno.h>
#include <net/if.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>

/* ----------------------------------------------------------- construction */

coil_address coil_address_v4(uint8_t a, uint8_t b, uint8_t c, uint8_t d)
{
    return (coil_address){.family = AF_INET, .bytes = {a, b, c, d}};
}

coil_address coil_address_v6(const uint8_t bytes[16], uint32_t zone)
{
    coil_address address = {.family = AF_INET6, .zone = zone};

    memcpy(address.bytes, bytes, sizeof(address.bytes));
    return address;
}

coil_address coil_address_any_v4(void)
{
    return coil_address_v4(0, 0, 0, 0);
}

coil_address coil_address_any_v6(void)
{
    return (coil_address){.family = AF_INET6};
}

coil_address coil_address_loopback_v4(void)
{
    return coil_address_v4(127, 0, 0, 1);
}

coil_address coil_address_loopback_v6(void)
{
    return (coil_address){.family = AF_INET6, .bytes = {[15] = 1}};
}

/* ------------------------------------------------------------------ parse */

/* What is left of the text. */
struct address_text {
    const char *at, *end;
};

static int address_peek(const struct address_text *text)
{
    return text->at < text->end ? (unsigned char)*text->at : -1;
}

static bool address_take(struct address_text *text, char wanted)
{
    if (address_peek(text) != (unsigned char)wanted)
        return false;
    text->at++;
    return true;
}

/* A decimal number of at most three digits without leading zeros, or -1. */
static int address_take_octet(struct address_text *text)
{
    int value = 0, digits = 0;

    while (address_peek(text) >= '0' && address_peek(text) <= '9') {
        if (++digits > 3 || (digits == 2 && value == 0))
            return -1;
        value = 10 * value + *text->at++ - '0';
    }
    return digits && value <= 255 ? value : -1;
}

static bool address_take_v4(struct address_text *text, uint8_t ret_bytes[4])
{
    for (int i = 0; i < 4; i++) {
        int octet;

        if (i && !address_take(text, '.'))
            return false;
        octet = address_take_octet(text);
        if (octet < 0)
            return false;
        ret_bytes[i] = (uint8_t)octet;
    }
    return true;
}

static int address_hex_digit(int c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    if (c >= 'a' && c <= 'f')
        return c - 'a' + 10;
    return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

/* One to four hexadecimal digits, or -1. */
static int address_take_group(struct address_text *text)
{
    int value = 0, digits = 0, digit;

    while ((digit = address_hex_digit(address_peek(text))) >= 0) {
        if (++digits > 4)
            return -1;
        value = 16 * value + digit;
        text->at++;
    }
    return digits ? value : -1;
}

/* Is what follows an IPv4 tail rather than a group? */
static bool address_at_v4(const struct address_text *text)
{
    const char *at = text->at;

    while (at < text->end && *at >= '0' && *at <= '9')
        at++;
    return at < text->end && at > text->at && *at == '.';
}

/* Groups with colons between them into `bytes`, at most `room` of these.
 * Returns how many bytes, or -1. Stops before "::" and at the end. */
static int address_take_groups(struct address_text *text, uint8_t *bytes,
                               int room)
{
    int used = 0;

    for (;;) {
        int group;

        if (address_at_v4(text)) {
            if (room - used < 4 || !address_take_v4(text, bytes + used))
                return -1;
            return used + 4;
        }
        group = address_take_group(text);
        if (group < 0 || room - used < 2)
            return -1;
        bytes[used++] = (uint8_t)(group >> 8);
        bytes[used++] = (uint8_t)group;
        if (address_peek(text) != ':' ||
            (text->at + 1 < text->end && text->at[1] == ':'))
            return used;
        text->at++;
    }
}

static bool address_take_gap(struct address_text *text)
{
    if (text->end - text->at < 2 || text->at[0] != ':' || text->at[1] != ':')
        return false;
    text->at += 2;
    return true;
}

static bool address_take_v6(struct address_text *text, uint8_t ret_bytes[16])
{
    uint8_t tail[16];
    int before = 0, after = 0;

    memset(ret_bytes, 0, 16);
    if (!address_take_gap(text)) {
        before = address_take_groups(text, ret_bytes, 16);
        if (before < 0 || before == 16)
            return before == 16;
        if (!address_take_gap(text))
            return false;
    }
    if (address_hex_digit(address_peek(text)) >= 0) {
        /* The gap stands for at least one group. */
        after = address_take_groups(text, tail, 14 - before);
        if (after < 0)
            return false;
    }
    memcpy(ret_bytes + 16 - after, tail, (size_t)after);
    return true;
}

/* The rest of the text as the index of an interface. */
static int address_take_zone(struct address_text *text, uint32_t *ret_zone)
{
    size_t length = (size_t)(text->end - text->at);
    char name[IF_NAMESIZE];
    uint64_t number = 0;
    bool digits = true;

    if (!length || length >= sizeof(name) || memchr(text->at, 0, length))
        return -EINVAL;
    for (size_t i = 0; i < length; i++) {
        name[i] = text->at[i];
        digits = digits && name[i] >= '0' && name[i] <= '9';
        number = 10 * number + (uint64_t)(name[i] - '0');
    }
    name[length] = '\0';
    text->at = text->end;
    if (!digits)
        number = if_nametoindex(name);
    if (!number)
        return digits ? -EINVAL : -ENODEV;
    if (number > UINT32_MAX)
        return -EINVAL;
    *ret_zone = (uint32_t)number;
    return 0;
}

int coil_address_parse(coil_address *ret_address, const char *text,
                       size_t length)
{
    struct address_text rest = {text, text + length};
    coil_address address = {.family = AF_INET};
    int result;

    if (length && memchr(text, ':', length)) {
        address.family = AF_INET6;
        if (!address_take_v6(&rest, address.bytes))
            return -EINVAL;
        if (address_take(&rest, '%')) {
            result = address_take_zone(&rest, &address.zone);
            if (result < 0)
                return result;
        }
    } else if (!address_take_v4(&rest, address.bytes)) {
        return -EINVAL;
    }
    if (rest.at != rest.end)
        return -EINVAL;
    *ret_address = address;
    return 0;
}

/* ------------------------------------------------------------------ print */

static unsigned address_group(const coil_address *address, int index)
{
    return (unsigned)address->bytes[2 * index] << 8 |
           address->bytes[2 * index + 1];
}

/* The first of the longest runs of two or more zero groups. */
static int address_longest_run(const coil_address *address, int *ret_length)
{
    int start = -1;

    *ret_length = 1;
    for (int i = 0; i < 8; i++) {
        int end = i;

        while (end < 8 && !address_group(address, end))
            end++;
        if (end - i > *ret_length) {
            *ret_length = end - i;
            start = i;
        }
        if (end > i)
            i = end - 1;
    }
    return start;
}

static int address_print_v4(const uint8_t *bytes, char *text, size_t size)
{
    return snprintf(text, size, "%u.%u.%u.%u", bytes[0], bytes[1], bytes[2],
                    bytes[3]);
}

static int address_print_v6(const coil_address *address, char *text)
{
    int run, gap = address_longest_run(address, &run);
    char *at = text;

    for (int i = 0; i < 8; i++) {
        if (i == gap) {
            at += sprintf(at, "::");
            i += run - 1;
            continue;
        }
        if (at > text && at[-1] != ':')
            *at++ = ':';
        at += sprintf(at, "%x", address_group(address, i));
    }
    *at = '\0';
    return (int)(at - text);
}

static int address_print_zone(const coil_address *address, char *text,
                              size_t size)
{
    char name[IF_NAMESIZE];

    if (!address->zone)
        return 0;
    /* A name of digits would be read as an index. */
    if (if_indextoname(address->zone, name) &&
        strspn(name, "0123456789") != strlen(name))
        return snprintf(text, size, "%%%s", name);
    return snprintf(text, size, "%%%u", address->zone);
}

int coil_address_print(const coil_address *address, char *ret_text,
                       size_t capacity)
{
    char text[COIL_ADDRESS_TEXT_MAX] = "unspecified";
    int length = (int)strlen(text);

    if (coil_address_is_v4(address)) {
        length = address_print_v4(address->bytes, text, sizeof(text));
    } else if (coil_address_is_v6(address)) {
        if (coil_address_is_v4_mapped(address)) {
            length = sprintf(text, "::ffff:");
            length += address_print_v4(address->bytes + 12, text + length,
                                       sizeof(text) - (size_t)length);
        } else {
            length = address_print_v6(address, text);
        }
        length += address_print_zone(address, text + length,
                                     sizeof(text) - (size_t)length);
    }
    if ((size_t)length >= capacity)
        return -ENOSPC;
    memcpy(ret_text, text, (size_t)length + 1);
    return length;
}

/* ------------------------------------------------------------- predicates */

bool coil_address_is_v4(const coil_address *address)
{
    return address->family == AF_INET;
}

bool coil_address_is_v6(const coil_address *address)
{
    return address->family == AF_INET6;
}

bool coil_address_is_any(const coil_address *address)
{
    static const uint8_t zeros[16];

    return address->family && !memcmp(address->bytes, zeros, sizeof(zeros));
}

bool coil_address_is_loopback(const coil_address *address)
{
    static const uint8_t loopback[16] = {[15] = 1};

    if (coil_address_is_v4(address))
        return address->bytes[0] == 127;
    return coil_address_is_v6(address) &&
           !memcmp(address->bytes, loopback, sizeof(loopback));
}

bool coil_address_is_multicast(const coil_address *address)
{
    if (coil_address_is_v4(address))
        return (address->bytes[0] & 0xf0) == 0xe0;
    return coil_address_is_v6(address) && address->bytes[0] == 0xff;
}

bool coil_address_is_link_local(const coil_address *address)
{
    if (coil_address_is_v4(address))
        return address->bytes[0] == 169 && address->bytes[1] == 254;
    return coil_address_is_v6(address) && address->bytes[0] == 0xfe &&
           (address->bytes[1] & 0xc0) == 0x80;
}

static const uint8_t address_mapped[12] = {[10] = 0xff, [11] = 0xff};

bool coil_address_is_v4_mapped(const coil_address *address)
{
    return coil_address_is_v6(address) &&
           !memcmp(address->bytes, address_mapped, sizeof(address_mapped));
}

coil_address coil_address_unmap(coil_address address)
{
    const uint8_t *bytes = address.bytes + 12;

    if (!coil_address_is_v4_mapped(&address))
        return address;
    return coil_address_v4(bytes[0], bytes[1], bytes[2], bytes[3]);
}

coil_address coil_address_map(coil_address address)
{
    uint8_t bytes[16];

    if (!coil_address_is_v4(&address))
        return address;
    memcpy(bytes, address_mapped, sizeof(address_mapped));
    memcpy(bytes + sizeof(address_mapped), address.bytes, 4);
    return coil_address_v6(bytes, 0);
}

int coil_address_compare(const coil_address *left, const coil_address *right)
{
    int bytes = memcmp(left->bytes, right->bytes, sizeof(left->bytes));

    if (left->family != right->family)
        return left->family < right->family ? -1 : 1;
    if (bytes || left->zone == right->zone)
        return bytes;
    return left->zone < right->zone ? -1 : 1;
}

bool coil_address_equal(const coil_address *left, const coil_address *right)
{
    return coil_address_compare(left, right) == 0;
}

/* Each word is multiplied in and folded: every input bit reaches every output
 * bit within two words. */
static uint64_t address_mix(uint64_t hash, uint64_t word)
{
    hash = (hash ^ word) * UINT64_C(0x9e3779b97f4a7c15);
    return hash ^ hash >> 32;
}

uint64_t coil_address_hash(const coil_address *address)
{
    uint64_t words[2];
    uint64_t hash = (uint64_t)address->family << 32 | address->zone;

    memcpy(words, address->bytes, sizeof(words));
    hash = address_mix(hash, words[0]);
    hash = address_mix(hash, words[1]);
    return address_mix(hash, 1);
}
