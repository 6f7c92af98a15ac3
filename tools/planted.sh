#!/bin/sh
# Plants each bug of tests/planted/ in a copy of the sources and sees the model
# test fail within its time. A bug that goes unnoticed is a hole in the test.
#
# usage: planted.sh [SECONDS [NUMBER...]]
set -eu
cd "$(dirname "$0")/.."
seconds=${1:-30}
[ $# = 0 ] || shift
tree=build/planted/tree
missed=0

rm -rf "$tree"
mkdir -p "$tree"
cp -r CMakeLists.txt coil.pc.in include src tests examples bench "$tree"
cmake -S "$tree" -B build/planted/build -G Ninja \
    -DCMAKE_BUILD_TYPE=RelWithDebInfo >build/planted/configure.log

build() {
    cmake --build build/planted/build --target model_test_scopes \
        >build/planted/build.log 2>&1 ||
        { cat build/planted/build.log; exit 1; }
}

# Prints the seconds it took, or fails if nothing was noticed.
noticed() {
    begin=$(date +%s.%N)
    ! COIL_MODEL_SECONDS=$seconds CK_RUN_CASE=model \
        timeout $((seconds * 2 + 40)) \
        build/planted/build/tests/model_test_scopes \
        >build/planted/output.log 2>&1 || return 1
    end=$(date +%s.%N)
    echo "$begin $end" | awk '{ printf "%.1f", $2 - $1 }'
}

build
if noticed >/dev/null; then
    cat build/planted/output.log
    echo "planted: the test fails without any bug"
    exit 1
fi
[ $# -gt 0 ] || set -- tests/planted/*.patch
for number; do
    bug=$(ls tests/planted/"$(basename "$number" .patch)"*.patch)
    name=$(basename "$bug" .patch)
    patch -s -d "$tree" -p1 <"$bug"
    build
    if took=$(noticed); then
        echo "planted $name: noticed after $took s"
    else
        echo "planted $name: NOT NOTICED within $seconds s"
        missed=$((missed + 1))
    fi
    patch -s -R -d "$tree" -p1 <"$bug"
done
echo "planted: $missed not noticed"
[ "$missed" = 0 ]
