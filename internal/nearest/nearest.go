// Package nearest finds the word that a misspelt one probably stands for.
package nearest

// Of returns the word of a list that is nearest to name. If none is near, it returns "".
func Of(name string, words []string) string {
	best, least := "", 1+max(1, len(name)/3)
	for _, word := range words {
		if d := distance(name, word, least); d < least {
			best, least = word, d
		}
	}
	return best
}

// distance returns how many bytes to insert, remove or replace, or neighbours to swap (optimal
// string alignment). If the lengths differ by least or more, it returns least. So a name of
// megabytes costs nothing.
func distance(a, b string, least int) int {
	if max(len(a)-len(b), len(b)-len(a)) >= least {
		return least
	}
	before, last, row := make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		before, last, row = last, row, before
		row[0] = i + 1
		for j := range len(b) {
			cost := 1
			if a[i] == b[j] {
				cost = 0
			}
			row[j+1] = min(last[j]+cost, row[j]+1, last[j+1]+1)
			if i > 0 && j > 0 && a[i] == b[j-1] && a[i-1] == b[j] {
				row[j+1] = min(row[j+1], before[j-1]+1)
			}
		}
	}
	return row[len(b)]
}
