/**
 * @file
 * Internet addresses: IPv4, and IPv6 with its zone. Plain values; all calls
 * here may be made on any thread and none waits.
 */
#ifndef COIL_ADDRESS_H
#define COIL_ADDRESS_H

#include <coil/export.h>

COIL_BEGIN_DECLS

/** An address. Zeroed: the unspecified address of no family. */
typedef struct coil_address {
    uint16_t family;   /**< AF_INET, AF_INET6, or 0 */
    uint16_t unused;   /**< zero */
    uint32_t zone;     /**< IPv6: index of the interface, or 0 for none */
    uint8_t bytes[16]; /**< in network order; IPv4 has the first four, and
                            zeros after them */
} coil_address;

/** Room for every printed address, with its terminator. */
#define COIL_ADDRESS_TEXT_MAX 64

/** a.b.c.d */
COIL_API coil_address coil_address_v4(uint8_t a, uint8_t b, uint8_t c,
                                      uint8_t d);
/** The IPv6 address of 16 bytes in network order; zone 0: none. */
COIL_API coil_address coil_address_v6(const uint8_t bytes[16], uint32_t zone);
/** 0.0.0.0 */
COIL_API coil_address coil_address_any_v4(void);
/** :: */
COIL_API coil_address coil_address_any_v6(void);
/** 127.0.0.1 */
COIL_API coil_address coil_address_loopback_v4(void);
/** ::1 */
COIL_API coil_address coil_address_loopback_v6(void);

/**
 * Read an address from text: four decimal numbers with dots, or IPv6 as
 * RFC 4291 has it, with `%zone` after it if wanted, an interface's name or its
 * decimal index.
 *
 *   text    `length` bytes, no terminator needed; nothing after them is read
 *
 * Returns 0, -EINVAL if it is no address, -ENODEV if the zone names no
 * interface.
 */
COIL_API int coil_address_parse(coil_address *ret_address, const char *text,
                                size_t length);

/**
 * Write an address as text, in the form of RFC 5952. Reading it gives the same
 * address again. A zone is printed as the interface's name if it has one.
 *
 *   ret_text  `capacity` bytes; COIL_ADDRESS_TEXT_MAX is always enough
 *
 * Returns the length without the terminator, or -ENOSPC with nothing written.
 */
COIL_API int coil_address_print(const coil_address *address, char *ret_text,
                                size_t capacity);

/** Is it IPv4? */
COIL_API bool coil_address_is_v4(const coil_address *address);
/** Is it IPv6? */
COIL_API bool coil_address_is_v6(const coil_address *address);
/** Is it 0.0.0.0 or ::? */
COIL_API bool coil_address_is_any(const coil_address *address);
/** Is it in 127.0.0.0/8, or ::1? */
COIL_API bool coil_address_is_loopback(const coil_address *address);
/** Is it in 224.0.0.0/4 or ff00::/8? */
COIL_API bool coil_address_is_multicast(const coil_address *address);
/** Is it in 169.254.0.0/16 or fe80::/10? */
COIL_API bool coil_address_is_link_local(const coil_address *address);
/** Is it in ::ffff:0:0/96? */
COIL_API bool coil_address_is_v4_mapped(const coil_address *address);
/** The IPv4 address inside a mapped one; any other is returned as it is. */
COIL_API coil_address coil_address_unmap(coil_address address);
/** ::ffff:a.b.c.d for IPv4; any other is returned as it is. */
COIL_API coil_address coil_address_map(coil_address address);

/** < 0, 0 or > 0: a total order by family, bytes and zone. */
COIL_API int coil_address_compare(const coil_address *left,
                                  const coil_address *right);
/** Same family, bytes and zone? */
COIL_API bool coil_address_equal(const coil_address *left,
                                 const coil_address *right);
/** A hash for tables; equal addresses have equal ones. */
COIL_API uint64_t coil_address_hash(const coil_address *address);

COIL_END_DECLS

#endif
