BEGIN {
	for (i = 1; i < 32; i++) if (i != 9) caret[sprintf("%c", i)] = "^" substr("ABCDEFGHIJKLMNOPQRSTUVWXYZ[\\]^_", i, 1)
	caret["\177"] = "^?"
}

# visible returns at most max bytes of s, with every control character in a form that a terminal
# does not obey.
function visible(s, max,   n, i, c, safe) {
	n = length(s)
	if (n > max) {
		s = substr(s, 1, max)
		sub(/[\300-\377][\200-\277]*$/, "", s) # a character that was cut
		n -= length(s)
	} else
		n = 0
	if (s ~ /[\001-\010\012-\037\177]/) {
		for (i = 1; i <= length(s); i++) {
			c = substr(s, i, 1)
			safe = safe (c in caret ? caret[c] : c)
		}
		s = safe
	}
	gsub(/\302[\200-\237]/, "?", s) # C1 control characters in UTF-8
	return n ? s "… (" n " more bytes)" : s
}
