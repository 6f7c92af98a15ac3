/*
 * Reading and writing text a few characters at a time, for addresses and
 * endpoints. Readers never look at or past `end`; no locale has a say.
 */
#ifndef COIL_NET_ADDRESS_TEXT_H
#define COIL_NET_ADDRESS_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What has not been read yet. */
struct address_text {
    const char *at;
    const char *end;
};

static inline bool address_text_ends(const struct address_text *text)
{
    return text->at == text->end;
}

/* Whether the next character is this one. */
static inline bool address_text_sees(const struct address_text *text,
                                     char character)
{
    return text->at < text->end && *text->at == character;
}

/* Takes the next character if it is this one. */
static inline bool address_text_take(struct address_text *text, char character)
{
    bool sees = address_text_sees(text, character);

    text->at += sees;
    return sees;
}

static inline bool address_is_digit(char character)
{
    return character >= '0' && character <= '9';
}

/* Takes decimal digits up to the first other character: a number without
 * leading zeros, at most `most`. */
static inline bool address_text_take_number(struct address_text *text,
                                            uint32_t most, uint32_t *ret_number)
{
    const char *start = text->at;
    uint64_t number = 0;

    for (; text->at < text->end && address_is_digit(*text->at); text->at++) {
        number = number * 10 + (uint64_t)(*text->at - '0');
        if (number > most)
            return false;
    }
    if (text->at == start || (*start == '0' && text->at - start > 1))
        return false;
    *ret_number = (uint32_t)number;
    return true;
}

/* Writes a number in base 10 or 16; returns the place after it. */
static inline char *address_text_put_number(char *at, uint32_t number,
                                            uint32_t base)
{
    char digits[10];
    size_t count = 0;

    do {
        digits[count++] = "0123456789abcdef"[number % base];
        number /= base;
    } while (number);
    while (count)
        *at++ = digits[--count];
    return at;
}

#endif
