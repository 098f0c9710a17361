# Finds OLD in a file. OLD, NEW and TEXT are variables of the environment. If OLD occurs once, the
# new lines go to the file TEXT, and the output is "found START END FINAL": the numbers of the lines
# to replace, and 0 if the last line then has no newline. Else the output is a sentence that says
# why.

function at(line) { found[++n] = line }

# string makes awk compare a value as a string, even if it looks like a number.
function string(s) { return s "" }

# see looks for OLD's last line in line, which has the number i. ring has the lines before it.
function see(line, i,   j, k, from) {
	if (count == 1) {
		for (from = 1; k = index(substr(line, from), old[1]); from += k) {
			at(i)
			if (n == 1) {
				before = substr(line, 1, from + k - 2)
				after = substr(line, from + k - 1 + length(old[1]))
			}
		}
		return
	}
	ring[i % count] = line
	if (i < count || substr(line, 1, length(old[count])) != string(old[count])) return
	for (j = 2; j < count; j++) if (string(ring[(i - count + j) % count]) != string(old[j])) return
	line = ring[(i - count + 1) % count]
	k = length(line) - length(old[1])
	if (k < 0 || substr(line, k + 1) != string(old[1])) return
	at(i - count + 1)
	if (n == 1) {
		before = substr(line, 1, k)
		after = substr(ring[i % count], length(old[count]) + 1)
	}
}

BEGIN {
	count = split(ENVIRON["OLD"], old, "\n")
	for (i = 1; i < count; i++) sub(/\r$/, "", old[i])
}

{
	if (substr($0, length($0)) == "\r") $0 = substr($0, 1, length($0) - 1)
	if (count > 1 || index($0, old[1])) see($0, NR)
}

END {
	total = NR
	if (final && total) see("", total + 1) # the empty text after the last newline
	if (!n) {
		print "OLD does not occur in the file."
		exit
	}
	if (n > 1) {
		printf "OLD occurs %d times, in lines", n
		for (i = 1; i <= n && i <= 10; i++) printf "%s %d", (i > 1 ? "," : ""), found[i]
		print (n > 10 ? ", …" : "") ": give more of the text around the one you mean."
		exit
	}
	start = found[1]
	end = start + count - 1
	new = before ENVIRON["NEW"] after
	if (end > total) { # OLD includes the newline of the last line
		end = total
		final = new == "" || new ~ /\n$/
		if (!final) new = new "\n"
	} else
		new = new "\n"
	printf "%s", new > ENVIRON["TEXT"]
	close(ENVIRON["TEXT"])
	print "found", start, end, final + 0
}
