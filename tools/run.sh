#!/bin/sh
# Runs the echo server and a client against it: 100 connections, 1,000 messages
# each, every byte compared. At a terminal the server then stays until Ctrl-C.
#
#   run.sh FOLDER   with echo_server and echo_client
set -eu
programs=$1
output=$(mktemp)
server=
trap 'rm -f "$output"; [ -z "$server" ] || kill "$server" 2>/dev/null || :' EXIT

"$programs/echo_server" --listen 127.0.0.1:0 --quiet >"$output" &
server=$!
endpoint=
while [ -z "$endpoint" ]; do
    kill -0 "$server" || exit 1
    endpoint=$(sed -n 's/^listening on //p' "$output")
done
echo "server: listening on $endpoint"
"$programs/echo_client" --connect "$endpoint" --connections 100 \
    --messages 1000 --size 64 >"$output.client" || {
    cat "$output.client"
    rm -f "$output.client"
    exit 1
}
echo "client: $(cat "$output.client")"
rm -f "$output.client"

if [ -t 0 ]; then
    echo "The server stays: try \"$programs/echo_client --connect $endpoint\"."
    echo "Ctrl-C ends it."
    trap : INT
else
    kill -TERM "$server"
fi
status=0
wait "$server" || status=$?
# A shell whose wait was interrupted has to wait again.
if [ -t 0 ]; then
    wait "$server" || status=$?
fi
server=
echo "server: $(sed -n '/^connections/p' "$output")"
exit "$status"
