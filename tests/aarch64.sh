#!/bin/sh
# The switch on aarch64: cross-built at several levels of optimization and run
# under qemu's user mode emulation, which knows no io_uring, so only the switch.
set -eu
cd "$(dirname "$0")/.."
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
for level in -O0 -O2 -O3 '-O2 -flto'; do
    echo "aarch64 $level"
    # shellcheck disable=SC2086
    aarch64-linux-gnu-gcc -std=gnu17 -D_GNU_SOURCE -Wall -Wextra -Werror \
        $level -g -static -Isrc -Iinclude -Itests/coroutine \
        tests/coroutine/switch_standalone.c src/coroutine/coroutine.c \
        src/coroutine/note.c src/coroutine/arch/aarch64/entry.S \
        -o "$folder/switch"
    qemu-aarch64 "$folder/switch"
done
