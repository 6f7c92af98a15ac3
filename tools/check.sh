#!/bin/sh
# What no compiler or test checks: who may include whom, that public headers
# stand alone in strict C17 and C++17, exported names, layout, file lengths.
set -eu
cd "$(dirname "$0")/.."
failed=0
complain() {
    echo "check: $*" >&2
    failed=1
}

# --- layers: a folder may include only what the table in ARCHITECTURE.md says
allow() { # FOLDER PATTERN-OF-ALLOWED-FOLDERS
    grep -nE '^#include "' src/"$1" -r | grep -vE "#include \"($2)/" |
        while read -r line; do echo "$line"; done
}
for rule in 'base base' 'coroutine base|coroutine' 'ring base|ring' \
    'core base|coroutine|ring|core' 'net base|net' 'os base|os'; do
    folder=${rule%% *}
    bad=$(allow "$folder" "${rule#* }")
    [ -z "$bad" ] || complain "src/$folder includes what it may not: $bad"
done

# --- public headers alone
for header in include/coil.h include/coil/*.h; do
    echo "#include <${header#include/}>" |
        gcc -std=c17 -pedantic-errors -Wall -Wextra -Werror -Iinclude \
            -fsyntax-only -x c - || complain "$header is not strict C17"
    echo "#include <${header#include/}>" |
        g++ -std=c++17 -pedantic-errors -Wall -Wextra -Werror -Iinclude \
            -fsyntax-only -x c++ - || complain "$header is not strict C++17"
done

# --- what the shared library exports
library=build/release/libcoil.so
if [ -e "$library" ]; then
    names=$(nm -D --defined-only "$library" | awk '{print $3}' |
        grep -v '^coil_' || :)
    [ -z "$names" ] || complain "exported by accident: $names"
fi

# --- layout and length
clang-format --dry-run --Werror $(git ls-files '*.c' '*.h') ||
    complain "run make format"
for file in $(git ls-files '*.c' '*.h'); do
    lines=$(wc -l <"$file")
    [ "$lines" -le 700 ] || complain "$file has $lines lines"
done
[ "$failed" = 0 ] && echo "check: passed"
exit "$failed"
