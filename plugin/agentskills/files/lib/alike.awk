# Prints the number of the first line that contains OLD's first line, apart from white space.

function trim(s) {
	gsub(/[ \t\r]+/, " ", s)
	sub(/^ /, "", s)
	sub(/ $/, "", s)
	return s
}

BEGIN {
	count = split(ENVIRON["OLD"], old, "\n")
	for (i = 1; i <= count && first == ""; i++) first = trim(old[i])
	if (first == "") exit
}

index(trim($0), first) { print NR; exit }
