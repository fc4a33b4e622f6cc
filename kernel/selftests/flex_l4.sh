#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
# ethtool rules with l4data on a live mlx5 interface: NETIF=eth0 ./flex_l4.sh
#
# Root needed. Rules are put at locations 1000 to 1019 only, which must be
# free, and are taken away again. Other rules stay. No packet is sent. The
# module parameter flex_l4_max_nodes is changed for a while and put back.
# Prints TAP and a closing line; exit code 4 is a skip, as in kselftest.

set -u
KSFT_SKIP=4
FIRST=1000 LAST=1019
PARAM=/sys/module/mlx5_core/parameters/flex_l4_max_nodes
PROTOS=(253 254 146 99)

skip_all() {
	echo "1..0 # SKIP $1"
	exit $KSFT_SKIP
}

[ -n "${NETIF:-}" ] || skip_all "NETIF is not set"
[ "$(id -u)" -eq 0 ] || skip_all "needs root"
command -v ethtool >/dev/null || skip_all "needs ethtool"
[ -e "/sys/class/net/$NETIF" ] || skip_all "there is no interface $NETIF"
driver=$(basename "$(readlink "/sys/class/net/$NETIF/device/driver" || echo nothing)")
[ "$driver" = mlx5_core ] || skip_all "$NETIF is driven by $driver, not by mlx5_core"
[ -e "$PARAM" ] || skip_all "the loaded mlx5_core does not have the patch"

max_nodes=$(cat "$PARAM")
for ((loc = FIRST; loc <= LAST; loc++)); do
	! ethtool -u "$NETIF" rule "$loc" >/dev/null 2>&1 || skip_all "location $loc is in use"
done

# locations of ours that hold a rule
locations() { ethtool -u "$NETIF" | sed -n 's/^Filter: \(10[01][0-9]\)$/\1/p'; }

clear_rules() {
	local loc
	for loc in $(locations); do
		ethtool -N "$NETIF" delete "$loc" >/dev/null 2>&1
	done
	return 0
}

restore() {
	clear_rules
	echo "$max_nodes" >"$PARAM"
}
trap restore EXIT

# ntuple ARG...: ethtool -N, whose exit status is 0 in some versions (6.1) also
# if the kernel has refused the rule
ntuple() {
	local out status=0
	out=$(ethtool -N "$NETIF" "$@" 2>&1) || status=1
	[ -z "$out" ] || echo "$out"
	[ $status -eq 0 ] && [[ $out != *Cannot* ]]
}

# insert LOC FAMILY PROTO VALUE MASK [ARG...]: mask in ethtool's way, the bits to
# ignore. To queue 0, unless ACTION says otherwise.
insert() {
	local loc=$1 family=$2 proto=$3 value=$4 mask=$5
	shift 5
	ntuple flow-type "$family" l4proto "$proto" l4data "$value" m "$mask" \
		action "${ACTION:-0}" loc "$loc" "$@"
}

# fails TEXT COMMAND...: the command fails and says TEXT
fails() {
	local text=$1 out
	shift
	if out=$("$@"); then
		echo "# succeeded: $*"
		return 1
	fi
	[[ $out == *"$text"* ]] || { echo "# said: $out, not: $text"; return 1; }
}

rules() { locations | wc -l; }

out=$(insert $FIRST ip4 253 0x3 0xfffffff0)
case $out in
*"Operation not supported"*) skip_all "the device or its firmware settings lack the parse graph, see dmesg" ;;
*"busy"*) skip_all "another user of the flex parser has protocol 253, see dmesg" ;;
esac
clear_rules

rule_is_read_back() {
	local family
	for family in ip4 ip6; do
		insert $FIRST $family 253 0x3 0xfffffff0 || return 1
		out=$(ethtool -u "$NETIF" rule $FIRST)
		[[ $out == *"L4 bytes: 0x3 mask: 0xfffffff0"* ]] || { echo "# $out"; return 1; }
		clear_rules
	done
}

families_share_a_protocol() {
	echo 1 >"$PARAM"
	insert $FIRST ip4 253 0x3 0xfffffff0 && insert $((FIRST + 1)) ip6 253 0x3 0xfffffff0
}

exact_ports() { insert $FIRST ip4 253 0x9c401f90 0x0; }

most_fields() {
	insert $FIRST ip4 253 0x3 0xfffffff0 src-ip 198.18.0.1 dst-ip 198.18.0.2 dst-mac 02:00:00:00:00:01 vlan 7 m 0xf000
}

drop_rule() {
	ACTION=-1 insert $FIRST ip4 253 0x3 0xfffffff0 && ethtool -u "$NETIF" rule $FIRST | grep -q 'Action: Drop'
}

parsed_protocols() {
	local proto
	for proto in 1 2 4 6 17 41 43 44 47 50 51 58 59 60 132 135 137 139 140; do
		fails "Invalid argument" insert $FIRST ip4 $proto 0x3 0xfffffff0 || return 1
		fails "Invalid argument" insert $FIRST ip6 $proto 0x3 0xfffffff0 || return 1
	done
}

inexact_protocol() {
	fails "Invalid argument" ntuple flow-type ip4 l4proto 253 m 0x0f l4data 0x3 m 0xfffffff0 action 0 loc $FIRST
}

second_protocol() {
	echo 1 >"$PARAM"
	insert $FIRST ip4 253 0x3 0xfffffff0 || return 1
	fails "busy" insert $((FIRST + 1)) ip4 254 0x3 0xfffffff0 || return 1
	[ "$(rules)" -eq 1 ]
}

refused_replacement() {
	echo 1 >"$PARAM"
	insert $FIRST ip4 253 0x3 0xfffffff0 || return 1
	fails "busy" insert $FIRST ip4 254 0x3 0xfffffff0 || return 1
	fails "Invalid argument" insert $FIRST ip4 47 0x3 0xfffffff0 || return 1
	ethtool -u "$NETIF" rule $FIRST | grep -q 'Protocol: 253'
}

replacement() {
	insert $FIRST ip4 253 0x3 0xfffffff0 && insert $FIRST ip4 253 0x4 0xfffffff0 &&
		insert $FIRST ip6 253 0x4 0xfffffff0 && [ "$(rules)" -eq 1 ] || return 1
	clear_rules
	insert $FIRST ip4 254 0x3 0xfffffff0
}

freed_node() {
	local proto
	echo 1 >"$PARAM"
	for proto in "${PROTOS[@]}"; do
		insert $FIRST ip4 "$proto" 0x3 0xfffffff0 || return 1
		ethtool -N "$NETIF" delete $FIRST || return 1
	done
}

# With fewer samples in the device, EBUSY is right; a live rule stays.
cycles() {
	local cycle i live
	echo ${#PROTOS[@]} >"$PARAM"
	for ((cycle = 0; cycle < 50; cycle++)); do
		live=0
		for i in "${!PROTOS[@]}"; do
			if out=$(insert $((FIRST + i)) ip4 "${PROTOS[i]}" 0x3 0xfffffff0); then
				live=$((live + 1))
			elif [[ $out != *busy* ]]; then
				echo "# cycle $cycle: $out"
				return 1
			fi
		done
		[ $live -gt 0 ] && [ "$(rules)" -eq $live ] || return 1
		clear_rules
		[ "$(rules)" -eq 0 ] || return 1
	done
	echo "# $live protocols at once"
}

limit_in_range() {
	echo 99 >"$PARAM" && [ "$(cat "$PARAM")" -eq 8 ] &&
		echo 0 >"$PARAM" && [ "$(cat "$PARAM")" -eq 1 ] &&
		! echo many 2>/dev/null >"$PARAM"
}

other_rules() {
	insert $FIRST ip4 253 0x3 0xfffffff0 &&
		ntuple flow-type udp4 dst-port 4000 action 0 loc $((FIRST + 1)) &&
		ntuple flow-type ip4 l4proto 47 action 0 loc $((FIRST + 2)) &&
		[ "$(rules)" -eq 3 ]
}

n=0 passed=0 failed=0
run() { # run NAME FUNCTION
	n=$((n + 1))
	clear_rules
	echo "$max_nodes" >"$PARAM"
	if $2; then
		passed=$((passed + 1))
		echo "ok $n $1"
	else
		failed=$((failed + 1))
		echo "not ok $n $1"
	fi
}

echo "TAP version 13"
echo "1..14"
run "a rule is read back as it was given" rule_is_read_back
run "both families share a protocol" families_share_a_protocol
run "all four bytes can be matched" exact_ports
run "l4data goes with every other field" most_fields
run "l4data can drop" drop_rule
run "protocols that the device parses are refused" parsed_protocols
run "the protocol must be exact" inexact_protocol
run "a second protocol is busy with one node" second_protocol
run "a refused replacement keeps the old rule" refused_replacement
run "a rule is replaced in place" replacement
run "the last rule of a protocol frees its node" freed_node
run "50 cycles over four protocols" cycles
run "the limit is brought into its range" limit_in_range
run "other rules are as before" other_rules
echo "$passed passed, $failed failed"
[ $failed -eq 0 ]
