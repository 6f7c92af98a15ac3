#!/bin/sh
# User-space instructions per echo, counted by callgrind.
#
# The server runs twice for each number of connections, for two different
# numbers of echoes; the difference of the instructions over the difference of
# the echoes leaves out starting, connecting and closing. The counts hardly
# change with the load of the machine, but they do with the number of
# connections: more of them make larger batches, and each batch has its price.
# With one connection there are two enters per echo and the count is exact.
#
# usage: instructions.sh [--load PATH] [--connections "N..."] [--echoes "N N"]
#                        [--size BYTES] SERVER [ARGUMENT...]
#
# Without --load, echo_load is looked for beside this script's build and the
# server: in SERVER's folder, then in the neighbouring folder bench.
set -eu

load=
connections="1 8 64"
echoes="2000 12000"
size=64

usage()
{
    sed -n 's/^# \(usage: .*\)/\1/p; s/^#  \( *\[--size.*\)/ \1/p' "$0" >&2
    exit 2
}

while [ $# -ge 2 ]; do
    case $1 in
    --load) load=$2 ;;
    --connections) connections=$2 ;;
    --echoes) echoes=$2 ;;
    --size) size=$2 ;;
    --*) usage ;;
    *) break ;;
    esac
    shift 2
done
[ $# -ge 1 ] || usage
case $1 in --*) usage ;; esac
server=$1
shift

if [ -z "$load" ]; then
    load=$(dirname "$server")/echo_load
    [ -x "$load" ] || load=$(dirname "$server")/../bench/echo_load
fi
[ -x "$load" ] || { echo "no echo_load at $load, use --load" >&2; exit 2; }

scratch=$(mktemp -d)
pid=
trap '[ -z "$pid" ] || kill -KILL "$pid" 2>/dev/null || :
      rm -rf "$scratch"' EXIT
trap 'exit 1' HUP INT TERM

# Waits until the server has said where it listens, half a minute at most.
endpoint()
{
    tries=0
    while [ $tries -lt 300 ]; do
        found=$(sed -n 's/^listening on //p' "$scratch/output")
        [ -z "$found" ] || { echo "$found"; return; }
        kill -0 "$pid" 2>/dev/null || break
        sleep 0.1
        tries=$((tries + 1))
    done
    echo "the server does not listen" >&2
    cat "$scratch/log" >&2
    return 1
}

# count CONNECTIONS ECHOES [ARGUMENT...]: runs the server with these arguments
# and sets $counted to its instructions and $entered to its enters.
count()
{
    clients=$1
    requests=$2
    shift 2
    : >"$scratch/output"
    valgrind --tool=callgrind --vgdb=no \
        --callgrind-out-file="$scratch/profile" \
        "$server" --listen 127.0.0.1:0 --quiet "$@" \
        >"$scratch/output" 2>"$scratch/log" &
    pid=$!
    address=$(endpoint)
    "$load" --connect "$address" --connections "$clients" --size "$size" \
        --requests "$requests" >"$scratch/load"
    kill -TERM "$pid"
    wait "$pid" || { cat "$scratch/log" >&2; exit 1; }
    pid=
    counted=$(awk '/^(totals|summary):/ { print $2; exit }' "$scratch/profile")
    entered=$(sed -n 's/^connections .* enters \([0-9]*\).*/\1/p' \
        "$scratch/output")
}

few=${echoes% *}
many=${echoes#* }
for each in $connections; do
    count "$each" "$few" "$@"
    counted_before=$counted
    entered_before=${entered:-0}
    count "$each" "$many" "$@"
    awk -v instructions="$((counted - counted_before))" \
        -v enters="$((${entered:-0} - entered_before))" \
        -v connections="$each" -v echoes="$((many - few))" 'BEGIN {
            printf "connections %d instructions_per_echo %.1f", connections,
                instructions / echoes
            printf " enters_per_echo %.3f\n", enters / echoes
        }'
done
