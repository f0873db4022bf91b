#!/bin/sh
# Redis, three gateways and nginx on one machine, beside a PostgreSQL that runs anyway. What ends is started again; Ctrl-C ends it all.
set -u
cd "$(dirname "$0")"
mkdir -p data

: "${LLM_GATEWAY:=llm-gateway}"
: "${UPSTREAM_URL:=https://api.openai.com}"
: "${UPSTREAM_KEY:?the key of the provider}"
: "${USAGE_STORE_URL:?the address of PostgreSQL, with the password}"
export UPSTREAM_URL UPSTREAM_KEY USAGE_STORE_URL

keep () {
  name=$1
  shift
  trap 'kill "$child"; wait "$child"; exit' TERM
  while :; do
    "$@" >>"data/$name.log" 2>&1 &
    child=$!
    echo "$child" >"data/$name.pid"
    wait "$child"
    sleep 0.2
  done
}

keep redis redis-server redis.conf & all=$!
for port in 8081 8082 8083; do
  keep "gateway-$port" env PORT="$port" $LLM_GATEWAY start --config gateway.yaml & all="$all $!"
done
keep nginx nginx -p "$PWD" -c nginx.conf -g 'daemon off;' & all="$all $!"

trap 'trap - EXIT; kill $all; wait' EXIT
trap 'exit 0' INT TERM
wait
