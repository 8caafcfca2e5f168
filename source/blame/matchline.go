// SPDX-License-Identifier: Apache-2.0

package blame

import "strings"

// maxLCSCells bounds the comparison of parts without a common unique line; larger parts count as
// changed.
const maxLCSCells = 1 << 20

// matchLine finds a line (from 1) of the new text in the old one, if it is unchanged. To bound the
// work, it skips the common beginning and end, and cuts the rest at lines that are unique in both.
func matchLine(old, new string, line int) (int, bool) {
	a, b := strings.Split(old, "\n"), strings.Split(new, "\n")
	if line < 1 || line > len(b) {
		return 0, false
	}
	at, same := matchLineIn(a, b, line-1)
	return at + 1, same
}

// matchLineIn is follow for lines, counted from 0.
func matchLineIn(a, b []string, line int) (int, bool) {
	from := 0
	for {
		for from < len(a) && from < len(b) && a[from] == b[from] {
			from++
		}
		if line < from {
			return line, true
		}
		endA, endB := len(a), len(b)
		for endA > from && endB > from && a[endA-1] == b[endB-1] {
			endA, endB = endA-1, endB-1
		}
		if line >= endB {
			return line - endB + endA, true
		}
		inA, inB, ok := anchorLine(a[from:endA], b[from:endB], line-from)
		if !ok {
			at, same := matchLineByLCS(a[from:endA], b[from:endB], line-from)
			return at + from, same
		}
		// The anchor is the last unique line at or before the wanted line, or the first one after
		// it.
		if inB <= line-from {
			at, same := matchLineIn(a[from+inA:endA], b[from+inB:endB], line-from-inB)
			return at + from + inA, same
		}
		a, b = a[:from+inA], b[:from+inB]
	}
}

// anchorLine returns a line that occurs once in both texts: the last one at or before the wanted
// line, else the first one after it.
func anchorLine(a, b []string, line int) (inA, inB int, ok bool) {
	count := map[string][3]int{}
	for i, text := range a {
		c := count[text]
		c[0], c[2] = c[0]+1, i
		count[text] = c
	}
	for _, text := range b {
		c := count[text]
		c[1]++
		count[text] = c
	}
	unique := func(i int) (int, bool) {
		c := count[b[i]]
		return c[2], c[0] == 1 && c[1] == 1 && strings.TrimSpace(b[i]) != ""
	}
	for i := line; i >= 0; i-- {
		if at, ok := unique(i); ok {
			return at, i, true
		}
	}
	for i := line + 1; i < len(b); i++ {
		if at, ok := unique(i); ok {
			return at, i, true
		}
	}
	return 0, 0, false
}

// matchLineByLCS finds the line by the longest common subsequence.
func matchLineByLCS(a, b []string, line int) (int, bool) {
	if len(a) == 0 || len(a)*len(b) > maxLCSCells {
		return 0, false
	}
	width := len(b) + 1
	longest := make([]int32, (len(a)+1)*width)
	for i := len(a) - 1; i >= 0; i-- {
		for j := len(b) - 1; j >= 0; j-- {
			at := i*width + j
			if a[i] == b[j] {
				longest[at] = longest[at+width+1] + 1
			} else {
				longest[at] = max(longest[at+width], longest[at+1])
			}
		}
	}
	i, j := 0, 0
	for i < len(a) && j < len(b) {
		switch at := i*width + j; {
		case a[i] == b[j]:
			if j == line {
				return i, true
			}
			i, j = i+1, j+1
		case longest[at+width] >= longest[at+1]:
			i++
		default:
			j++
		}
	}
	return 0, false
}
