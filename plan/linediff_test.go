// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/pergola-dev/pergola/change"
)

func numbered(from, to int, word string) string {
	var b strings.Builder
	for i := from; i < to; i++ {
		fmt.Fprintf(&b, "%s %d\n", word, i)
	}
	return b.String()
}

func TestUnified(t *testing.T) {
	for name, c := range map[string]struct {
		old, new string
		want     []string
	}{
		"middle":                    {numbered(0, 20, "a"), strings.Replace(numbered(0, 20, "a"), "a 9\n", "b\n", 1), []string{"@@ -7,7 +7,7 @@", " a 6", " a 7", " a 8", "-a 9", "+b", " a 10", " a 11", " a 12"}},
		"begin":                     {"a\nb\n", "x\na\nb\n", []string{"@@ -1,2 +1,3 @@", "+x", " a", " b"}},
		"end":                       {"a\nb\n", "a\nb\nx\n", []string{"@@ -1,2 +1,3 @@", " a", " b", "+x"}},
		"last line without its end": {"a\nb", "a\nb\n", []string{"@@ -1,2 +1,2 @@", " a", "-b", "\\ No newline at end of file", "+b"}},
	} {
		t.Run(name, func(t *testing.T) { assert.Equal(t, c.want, lineDiff(change.Field{Old: c.old, New: c.new})) })
	}
}

// TestHugeTexts: a line diff of unrelated texts would take minutes and gigabytes.
func TestHugeTexts(t *testing.T) {
	begin := time.Now()
	lines := lineDiff(change.Field{Old: "same\n" + numbered(0, 50000, "a"), New: "same\n" + numbered(0, 50000, "b")})
	assert.Equal(t, "@@ -2,50000 +2,50000 @@", lines[0])
	assert.Len(t, lines, 100001)
	small := lineDiff(change.Field{Old: numbered(0, 100000, "a"), New: strings.Replace(numbered(0, 100000, "a"), "a 50000\n", "b\n", 1)})
	assert.Equal(t, "@@ -49998,7 +49998,7 @@", small[0])
	assert.Len(t, small, 9)
	assert.Less(t, time.Since(begin), 20*time.Second)
	text := Markdown(change.Plan{Items: []change.Item{{Cluster: "c", Bundle: "b", Action: change.Change, Object: change.Ref{APIVersion: "v1", Kind: "ConfigMap", Namespace: "n", Name: "c"}, Fields: []change.Field{{Path: "data.a", Old: numbered(0, 500, "a"), New: numbered(0, 500, "b")}}}}}, MaxMarkdown)
	assert.Contains(t, text, "… 921 more lines\n")
}
