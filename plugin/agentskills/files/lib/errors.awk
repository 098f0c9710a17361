# Prints the beginning of a checker's output, with the file's name in place of paths below WORK, and
# without node's own stack.

function named(line, path,   i) {
	if (i = index(line, path)) return substr(line, 1, i - 1) ENVIRON["NAME"] substr(line, i + length(path))
	return line
}

BEGIN {
	split("/old /new /text /check.cjs /check.mjs", names, " ")
}
/^ +at .*(node:internal|\(internal\/)/ || /^Node\.js v/ || /^$/ { next }
++n <= 20 {
	for (i = 1; i in names; i++) $0 = named($0, ENVIRON["WORK"] names[i])
	print "  " visible(named($0, "<standard input>"), 300)
}
