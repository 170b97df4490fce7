#!/bin/sh
# Sends a message through an installed msmq-fast and receives it: the test of a wheel on the system that it is for.
set -eu

data=$(mktemp -d)
msmq-fast serve --data "$data" --host 127.0.0.1 --port 0 --ping-port off --admin-port off --rpc-port off \
    --qm2qm-port off --epm-port off > "$data/ready" &
server=$!
trap 'kill "$server"; wait "$server"; rm -rf "$data"' EXIT
tries=0
until grep -q '^ready' "$data/ready"; do
    tries=$((tries + 1))
    [ "$tries" -lt 300 ] || { echo "the server was not ready within 30 s" >&2; exit 1; }
    sleep 0.1
done
msmq-fast queue create orders --data "$data"
msmq-fast send orders --data "$data" --body hello --recoverable
[ "$(msmq-fast receive orders --data "$data" --raw)" = hello ]
