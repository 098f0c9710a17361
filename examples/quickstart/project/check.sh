#!/bin/sh
# The test suite: it counts the primes below some numbers.
status=0
while read -r max want; do
	got=$(./primes "$max" | grep -c .)
	if [ "$got" -eq "$want" ]; then
		echo "ok: $want primes below $max"
	else
		echo "FAILED: $got primes below $max, not $want"
		status=1
	fi
done <<END
2 0
3 1
100 25
1000 168
END
exit $status
