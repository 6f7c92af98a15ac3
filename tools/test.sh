#!/bin/sh
# Runs the tests of a build folder and ends with their count.
#
#   test.sh FOLDER [CTEST ARGUMENT...]
set -eu
folder=$1
shift
case $folder in
*asan | *tsan) export CK_TIMEOUT_MULTIPLIER=5 ;;
esac
# Time limits inside the tests are checked by the tests themselves; a second
# program at a time fills the second core without disturbing them.
exec ctest --test-dir "$folder" --output-on-failure --no-tests=error \
    -j "$(nproc)" "$@"
