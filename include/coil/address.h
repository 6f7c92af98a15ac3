/**
 * @file
 * IP addresses: IPv4, or IPv6 with a zone.
 *
 * An address is a plain value: copy it, put it in a table, make it on any
 * thread. Nothing here waits or allocates, and errno is left as it was. A
 * zeroed address is neither IPv4 nor IPv6 and prints as "unspecified".
 *
 * The zone is the number of the interface on which a link-local address is
 * meant; 0 means none. It belongs to IPv6 only. In text it follows a percent
 * sign, as the name of an interface or as a decimal number. What consists of
 * digits is always a number, even if an interface has that name; so printing
 * and parsing give back the same zone whatever interfaces are called.
 *
 * An IPv4 address also has an IPv6 form, ::ffff:a.b.c.d, in which sockets that
 * take both kinds report IPv4 peers. Such an address is IPv6 and does not equal
 * the IPv4 one, but the questions about what an address is for (loopback, any,
 * multicast, link-local) are answered for the IPv4 address inside, for that is
 * the one the kernel talks to.
 */
#ifndef COIL_ADDRESS_H
#define COIL_ADDRESS_H

#include <coil/export.h>
#include <sys/socket.h>

COIL_BEGIN_DECLS

/** An IP address. Zeroed: none. */
typedef struct coil_address {
    uint8_t bytes[16]; /**< as on the wire; IPv4 uses the first 4 */
    uint32_t zone;     /**< IPv6: number of an interface; 0 means none */
    int family;        /**< AF_INET, AF_INET6, or AF_UNSPEC */
} coil_address;

/** Room that every printed address fits in, with its terminator. */
#define COIL_ADDRESS_TEXT_MAX 56

/* ------------------------------------------------------------------- make */

/** An IPv4 address from a number in host order, such as INADDR_LOOPBACK or
 * 0x7f000001 for 127.0.0.1. */
COIL_API coil_address coil_address_v4(uint32_t number);

/** An IPv6 address from 16 bytes in the order of the wire; copies them. */
COIL_API coil_address coil_address_v6(const uint8_t *bytes, uint32_t zone);

/** 0.0.0.0: every IPv4 address of this host. */
COIL_API coil_address coil_address_any_v4(void);
/** `::`, every address of this host. */
COIL_API coil_address coil_address_any_v6(void);
/** 127.0.0.1 */
COIL_API coil_address coil_address_loopback_v4(void);
/** ::1 */
COIL_API coil_address coil_address_loopback_v6(void);

/** The IPv6 form ::ffff:a.b.c.d of an IPv4 address; others unchanged. */
COIL_API coil_address coil_address_map_v4(const coil_address *address);
/** The IPv4 address in ::ffff:a.b.c.d, without zone; others unchanged. */
COIL_API coil_address coil_address_unmap_v4(const coil_address *address);

/* ------------------------------------------------------------------- text */

/**
 * Read an address from exactly `length` bytes of text.
 *
 *   text    borrowed; needs no terminator
 *   length  all of it must be the address; a zero byte in it is an error
 *
 * IPv4 is four decimal numbers up to 255 without leading zeros; there are no
 * octal, hexadecimal or short forms. IPv6 is as in RFC 4291, upper or lower
 * case, with `::` for one or more groups and an IPv4 tail if wanted; then
 * perhaps a percent sign and a zone: a decimal number without leading zeros up
 * to 4294967295, which need not belong to an interface, or the name of an
 * interface.
 *
 * Returns 0, or
 *   -EINVAL  not an address; a zone that is empty, too long, or on IPv4
 *   -ENODEV  the zone names no interface
 *   other    what if_nametoindex(3) says, such as -EMFILE
 *
 * Waits: no. Any thread. Only the name of an interface needs the kernel.
 */
COIL_API COIL_MUST_USE int coil_address_parse(coil_address *ret_address,
                                              const char *text, size_t length);

/**
 * Print an address in the form of RFC 5952: lower case, no leading zeros, the
 * first of the longest runs of two or more zero groups as `::`, IPv4 inside
 * IPv6 as ::ffff:a.b.c.d. A zone is printed by the name of its interface, or as
 * a number if it has none or one made of digits.
 *
 *   capacity  bytes at `ret_text`; COIL_ADDRESS_TEXT_MAX is always enough
 *
 * Returns the length without the terminator, or -ENOSPC if the text with its
 * terminator does not fit: then it is the empty text, or with a capacity of 0
 * nothing is written.
 *
 * Waits: no. Any thread.
 */
COIL_API ssize_t coil_address_print(const coil_address *address, char *ret_text,
                                    size_t capacity);

/* ---------------------------------------------------------------- inquire */

/** Whether it is an IPv4 address; the mapped form is not. */
static inline bool coil_address_is_v4(const coil_address *address)
{
    return address->family == AF_INET;
}

/** Whether it is an IPv6 address; the mapped form is. */
static inline bool coil_address_is_v6(const coil_address *address)
{
    return address->family == AF_INET6;
}

/** Whether it is IPv4 in the IPv6 form ::ffff:a.b.c.d. */
COIL_API bool coil_address_is_v4_mapped(const coil_address *address);
/** Whether it is 0.0.0.0 or `::`. A zeroed address is not. */
COIL_API bool coil_address_is_any(const coil_address *address);
/** Whether it is in 127.0.0.0/8 or is ::1. */
COIL_API bool coil_address_is_loopback(const coil_address *address);
/** Whether it is in 224.0.0.0/4 or ff00::/8. */
COIL_API bool coil_address_is_multicast(const coil_address *address);
/** Whether it is in 169.254.0.0/16 or fe80::/10. */
COIL_API bool coil_address_is_link_local(const coil_address *address);

/**
 * Total order: none, IPv4, IPv6; within a kind by value, then by zone.
 *
 * Returns < 0, 0 or > 0. 0 exactly if coil_address_equal.
 */
COIL_API int coil_address_compare(const coil_address *left,
                                  const coil_address *right);

/** Whether both are the same kind, value and zone. */
COIL_API bool coil_address_equal(const coil_address *left,
                                 const coil_address *right);

/** A hash for tables; equal addresses have equal ones. It has no secret: who
 * may choose addresses can choose collisions. It is not for storing. */
COIL_API uint64_t coil_address_hash(const coil_address *address);

COIL_END_DECLS

#endif
