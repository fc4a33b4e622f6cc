# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
# shellcheck shell=bash
# To be sourced: named cases and a closing line.

passed=0 failed=0 skipped=0

# ONLY=REGEX in the environment: run the cases whose name matches.
wanted() {
	[[ $1 =~ ${ONLY:-.} ]]
}

# cased NAME COMMAND...: the case passes if the command does. What it printed
# is shown if it does not.
cased() {
	local case_name=$1 start=$SECONDS out
	shift
	wanted "$case_name" || return
	out=$(mktemp)
	if ("$@") >"$out" 2>&1; then
		passed=$((passed + 1))
		echo "ok - $case_name ($((SECONDS - start)) s)"
	else
		failed=$((failed + 1))
		echo "not ok - $case_name"
		tail -n 40 "$out" | sed 's/^/# /'
	fi
	rm -f "$out"
}

# counted NAME COMMAND...: a runner with a closing line of its own, whose
# numbers are added.
counted() {
	local case_name=$1 out line
	shift
	wanted "$case_name" || return
	out=$(mktemp)
	"$@" >"$out" 2>&1
	line=$(grep -Eo '^[0-9]+ passed, [0-9]+ failed' "$out" | tail -n1)
	grep -E '^(not ok|# )' "$out"
	if [ -z "$line" ]; then
		tail -n 40 "$out" | sed 's/^/# /'
		line='0 passed, 1 failed'
	fi
	echo "$case_name: $line"
	passed=$((passed + ${line%% *}))
	line=${line#*, }
	failed=$((failed + ${line%% *}))
	rm -f "$out"
}

closing_line() {
	echo "$passed passed, $failed failed, $skipped skipped"
	[ "$failed" -eq 0 ] && [ "$passed" -gt 0 ]
}
