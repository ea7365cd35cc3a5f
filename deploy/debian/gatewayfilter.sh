#!/bin/sh
# Runs a command of GatewayFilter as the user that it needs: firewall rules and the doctor as root, all else as the filter's user.
set -eu
program=/usr/lib/gatewayfilter/bin/gatewayfilter
# The user of the filter may not enter each folder that root stands in.
case "${1:-}" in
"" | --help | -h | --version | match) exec "$program" "$@" ;;
esac
# squid starts its helpers as its own user; with --socket they read neither settings nor state.
if [ "${1:-} ${2:-}" = "helper squid" ] && [ "$(id -u)" != 0 ]; then
    exec "$program" "$@"
fi
export GATEWAYFILTER_CONFIG="${GATEWAYFILTER_CONFIG:-/etc/gatewayfilter.toml}"
export GATEWAYFILTER_DATA_DIR="${GATEWAYFILTER_DATA_DIR:-/var/lib/gatewayfilter}"
if [ "$(id -un)" = gatewayfilter ]; then
    exec "$program" "$@"
fi
if [ "$(id -u)" != 0 ]; then
    echo "gatewayfilter: the state belongs to the user gatewayfilter: sudo gatewayfilter $*" >&2
    exit 2
fi
case "$1" in
gateway | doctor) exec "$program" "$@" ;;
esac
exec setpriv --reuid gatewayfilter --regid gatewayfilter --init-groups --no-new-privs \
    env HOME=/var/lib/gatewayfilter "$program" "$@"
