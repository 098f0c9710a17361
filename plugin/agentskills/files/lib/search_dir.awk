# Shows the first max lines of the output of matches.sh.
/^=/ { name = substr($0, 2); files++; next }
/^\+/ { split(substr($0, 2), more, ":"); lines += more[1]; files += more[2]; next }
++lines <= max {
	number = $0
	sub(/:.*/, "", number)
	sub(/^[0-9]*:/, "")
	sub(/\r$/, "")
	print name ":" number ": " visible($0, 200)
}
END {
	if (lines > max) print "(" lines - max " more matches, " lines " in " files " files: give more of the text, or a directory)"
	exit lines == 0
}
