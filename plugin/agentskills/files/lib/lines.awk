NR > to { exit }
NR >= from {
	sub(/\r$/, "")
	print NR ":" visible($0, 1000)
}
