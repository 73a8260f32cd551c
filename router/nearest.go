package router

// nearest is the name with the fewest edits from got.
func nearest(got string, names []string) string {
	best, at := -1, ""
	for _, n := range names {
		if d := edits(got, n); best < 0 || d < best {
			best, at = d, n
		}
	}
	return at
}

// edits is the Levenshtein distance in bytes.
func edits(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := 1
			if a[i] == b[j] {
				cost = 0
			}
			next := min(row[j]+1, row[j+1]+1, diagonal+cost)
			diagonal, row[j+1] = row[j+1], next
		}
	}
	return row[len(b)]
}
