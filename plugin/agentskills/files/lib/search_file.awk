NR <= max {
	number = $0
	sub(/:.*/, "", number)
	sub(/^[0-9]*:/, "")
	sub(/\r$/, "")
	print number ":" visible($0, 200)
}
END {
	if (NR > max) print "(" NR - max " more of " NR " matches: give more of the text)"
	exit NR == 0
}
