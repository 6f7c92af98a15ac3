/*
 * Addresses and endpoints as text: what is accepted, what is refused, that
 * nothing past the given length is read, and that printing round-trips.
 */
#include "support/test.h"
#include <arpa/inet.h>
#include <net/if.h>
#include <sys/mman.h>

enum { RANDOM_ADDRESSES = TEST_SLOW ? 20000 : 100000 };

static uint32_t seed;

static uint32_t random_number(void)
{
    seed = seed * 1664525u + 1013904223u;
    return seed >> 8;
}

/* The text at the very end of a readable page: one byte further faults. */
static const char *at_page_end(const char *text, size_t length)
{
    static char *page;
    size_t size = (size_t)sysconf(_SC_PAGESIZE);

    if (!page) {
        page = mmap(NULL, 2 * size, PROT_READ | PROT_WRITE,
                    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        ck_assert_ptr_ne(page, MAP_FAILED);
        ck_assert_int_eq(mprotect(page + size, size, PROT_NONE), 0);
    }
    return memcpy(page + size - length, text, length);
}

static int parse(const char *text, coil_address *ret_address)
{
    size_t length = strlen(text);

    return coil_address_parse(ret_address, at_page_end(text, length), length);
}

static int parse_endpoint(const char *text, coil_tcp_endpoint *ret_endpoint)
{
    size_t length = strlen(text);

    return coil_tcp_endpoint_parse(ret_endpoint, at_page_end(text, length),
                                   length);
}

START_TEST(address_prints_in_its_canonical_form)
{
    static const char *const cases[][2] = {
        {"0.0.0.0", "0.0.0.0"},
        {"255.255.255.255", "255.255.255.255"},
        {"1.2.3.4", "1.2.3.4"},
        {"::", "::"},
        {"::1", "::1"},
        {"1::", "1::"},
        {"1:0:0:2:0:0:0:3", "1:0:0:2::3"},
        {"1:0:0:2:0:0:3:4", "1::2:0:0:3:4"},
        {"2001:DB8::0001", "2001:db8::1"},
        {"1:2:3:4:5:6:7:8", "1:2:3:4:5:6:7:8"},
        {"1:2:3:4:5:6:7::", "1:2:3:4:5:6:7:0"},
        {"::ffff:1.2.3.4", "::ffff:1.2.3.4"},
        {"::ffff:102:304", "::ffff:1.2.3.4"},
        {"64:ff9b::1.2.3.4", "64:ff9b::102:304"},
        {"fe80::1%lo", "fe80::1%lo"},
        {"fe80::1%1", "fe80::1%lo"},
        {"fe80::1%4294967295", "fe80::1%4294967295"},
    };
    char text[COIL_ADDRESS_TEXT_MAX];
    coil_address address;

    ck_assert_uint_eq(if_nametoindex("lo"), 1);
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        ck_assert_msg(parse(cases[i][0], &address) == 0, "%s", cases[i][0]);
        ck_assert_int_eq(coil_address_print(&address, text, sizeof(text)),
                         (int)strlen(cases[i][1]));
        ck_assert_str_eq(text, cases[i][1]);
    }
}
END_TEST

START_TEST(wrong_address_is_refused)
{
    static const char *const cases[] = {
        "",
        "1",
        "1.2.3",
        "1.2.3.4.5",
        "1.2.3.256",
        "01.2.3.4",
        "1.2.3.4 ",
        " 1.2.3.4",
        "0x1.2.3.4",
        "1..3.4",
        "1.2.3.4%lo",
        "1.2.3.-4",
        ":",
        ":::",
        "1::2::3",
        "1:2:3:4:5:6:7",
        "1:2:3:4:5:6:7:8:9",
        "12345::",
        "::1:",
        ":1::",
        "g::",
        "::1.2.3",
        "1:2:3:4:5:6:7:1.2.3.4",
        "fe80::1%",
        "fe80::1%averylonginterfacename",
        "::1%4294967296",
        "[::1]",
        "::1/64",
        "1:2:3:4:5:6:7:8::",
        "::1:2:3:4:5:6:7:8",
    };
    coil_address address;

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
        ck_assert_msg(parse(cases[i], &address) == -EINVAL, "\"%s\" gave %d",
                      cases[i], parse(cases[i], &address));
    assert_result(parse("fe80::1%nosuchif", &address), -ENODEV);
    assert_result(coil_address_parse(&address, "1.2.3.4\0", 8), -EINVAL);
}
END_TEST

START_TEST(random_address_survives_printing)
{
    seed = (uint32_t)coil_now();
    printf("seed %u\n", seed);
    for (int i = 0; i < RANDOM_ADDRESSES; i++) {
        char text[COIL_ADDRESS_TEXT_MAX], expected[INET6_ADDRSTRLEN];
        coil_address address, again;
        uint8_t bytes[16];

        for (int j = 0; j < 16; j++)
            bytes[j] = random_number() % 3 ? 0 : (uint8_t)random_number();
        bytes[1] |= 1; /* not one of the forms with an IPv4 tail */
        address = coil_address_v6(bytes, i % 5 ? 0 : random_number() % 9);
        ck_assert_int_gt(coil_address_print(&address, text, sizeof(text)), 0);
        assert_result(parse(text, &again), 0);
        ck_assert(coil_address_equal(&address, &again));
        ck_assert_uint_eq(coil_address_hash(&address),
                          coil_address_hash(&again));
        inet_ntop(AF_INET6, bytes, expected, sizeof(expected));
        if (!address.zone)
            ck_assert_str_eq(text, expected);
    }
}
END_TEST

/* Texts one or two edits away from right ones: the system's parser agrees. */
START_TEST(mutated_text_is_judged_as_inet_pton_does)
{
    static const char *const seeds[] = {
        "1.2.3.4",   "255.10.0.199",   "::1", "1:2:3:4:5:6:7:8",
        "fe80::a:b", "::ffff:1.2.3.4", "1::8"};
    static const char letters[] = "0123456789abcdefAF.::";
    unsigned right = 0;

    seed = (uint32_t)coil_now();
    printf("seed %u\n", seed);
    for (int i = 0; i < 2 * RANDOM_ADDRESSES; i++) {
        char text[64];
        uint8_t bytes[16];
        coil_address address;
        int expected;

        strcpy(text, seeds[random_number() % 7]);
        for (unsigned edits = random_number() % 3; edits; edits--) {
            size_t length = strlen(text), at = random_number() % length;

            if (random_number() % 2)
                text[at] = letters[random_number() % (sizeof(letters) - 1)];
            else
                memmove(text + at, text + at + 1, length - at);
            if (!*text)
                strcpy(text, "1");
        }
        expected = strchr(text, ':') ? inet_pton(AF_INET6, text, bytes)
                                     : inet_pton(AF_INET, text, bytes);
        ck_assert_msg((parse(text, &address) == 0) == (expected == 1),
                      "\"%s\": inet_pton says %d", text, expected);
        if (expected == 1)
            ck_assert_mem_eq(address.bytes, bytes,
                             address.family == AF_INET ? 4 : 16);
        right += expected == 1;
    }
    printf("%u of %d texts were right\n", right, 2 * RANDOM_ADDRESSES);
    ck_assert_uint_gt(right, 1000);
}
END_TEST

START_TEST(address_without_room_is_not_printed)
{
    coil_address address;

    assert_result(parse("fe80::1:2%lo", &address), 0);
    for (size_t room = 0; room <= strlen("fe80::1:2%lo"); room++) {
        char text[32];

        memset(text, 'x', sizeof(text));
        assert_result(coil_address_print(&address, text, room), -ENOSPC);
        ck_assert_int_eq(text[room], 'x');
    }
}
END_TEST

START_TEST(endpoint_survives_printing)
{
    static const char *const cases[] = {"1.2.3.4:80", "0.0.0.0:0", "[::]:65535",
                                        "[::1]:1", "[fe80::1%lo]:80"};
    char text[COIL_ENDPOINT_TEXT_MAX];
    coil_tcp_endpoint endpoint;

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        ck_assert_msg(parse_endpoint(cases[i], &endpoint) == 0, "%s", cases[i]);
        ck_assert_int_gt(coil_tcp_endpoint_print(&endpoint, text, sizeof(text)),
                         0);
        ck_assert_str_eq(text, cases[i]);
        /* Every prefix is refused, except those that only shorten the port. */
        for (size_t n = 0; n < strlen(cases[i]); n++) {
            int result =
                coil_tcp_endpoint_parse(&endpoint, at_page_end(cases[i], n), n);

            ck_assert(result < 0 || cases[i][n - 1] != ':');
        }
    }
    memset(&endpoint, 0, sizeof(endpoint));
    ck_assert(!coil_tcp_endpoint_is_specified(&endpoint));
    coil_tcp_endpoint_print(&endpoint, text, sizeof(text));
    ck_assert_str_eq(text, "unspecified");
}
END_TEST

START_TEST(wrong_endpoint_is_refused)
{
    static const char *const cases[] = {
        "",
        ":",
        "80",
        "1.2.3.4",
        "1.2.3.4:",
        "1.2.3.4:65536",
        "1.2.3.4:080",
        "1.2.3.4:-1",
        "1.2.3.4:+1",
        "1.2.3.4:80 ",
        "1.2.3.4:80x",
        "::1:80",
        "[::1]",
        "[::1]:",
        "[::1:80",
        "[1.2.3.4]:80",
        "[::1]80",
        "[]:80",
        "1.2.3.4:123456",
        "[::1%]:80",
    };
    coil_tcp_endpoint endpoint;

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
        ck_assert_msg(parse_endpoint(cases[i], &endpoint) == -EINVAL, "\"%s\"",
                      cases[i]);
    assert_result(parse_endpoint("[fe80::1%nosuchif]:1", &endpoint), -ENODEV);
}
END_TEST

START_TEST(endpoint_takes_only_whole_socket_addresses)
{
    static const socklen_t sizes[] = {0, 1, 2, 15, 16, 27, 28, 128, 129};

    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++)
        for (int family = 0; family < 2; family++) {
            coil_tcp_endpoint endpoint;
            socklen_t least = family ? 28 : 16;
            bool whole = !sizes[i] || (sizes[i] >= least && sizes[i] <= 128);

            memset(&endpoint, 0, sizeof(endpoint));
            coil_tcp_endpoint_storage(&endpoint)->sa_family =
                family ? AF_INET6 : AF_INET;
            assert_result(coil_tcp_endpoint_resize(&endpoint, sizes[i]),
                          whole ? 0 : -EINVAL);
        }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("address");
    TCase *tests = tcase_create("address");

    tcase_set_timeout(tests, 30);
    tcase_add_test(tests, address_prints_in_its_canonical_form);
    tcase_add_test(tests, wrong_address_is_refused);
    tcase_add_test(tests, random_address_survives_printing);
    tcase_add_test(tests, mutated_text_is_judged_as_inet_pton_does);
    tcase_add_test(tests, address_without_room_is_not_printed);
    tcase_add_test(tests, endpoint_survives_printing);
    tcase_add_test(tests, wrong_endpoint_is_refused);
    tcase_add_test(tests, endpoint_takes_only_whole_socket_addresses);
    suite_add_tcase(suite, tests);
    return test_main(suite);
}
