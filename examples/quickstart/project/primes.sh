#!/bin/sh
# Prints the primes below the argument.
n=2
while [ "$n" -lt "${1:-100}" ]; do
	d=2
	while [ $((d * d)) -le "$n" ] && [ $((n % d)) -ne 0 ]; do d=$((d + 1)); done
	[ $((d * d)) -le "$n" ] || echo "$n"
	n=$((n + 1))
done
