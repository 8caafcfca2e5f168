// SPDX-License-Identifier: Apache-2.0

package printable

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestPrintable(t *testing.T) {
	for in, want := range map[string][2]string{
		"":                            {"", ""},
		"grüße, 世界 ✓":                 {"grüße, 世界 ✓", "grüße, 世界 ✓"},
		"a\x1b[2Jb":                   {"a [2Jb", "a [2Jb"},
		"a\u009b2Jb":                  {"a 2Jb", "a 2Jb"},
		"a\r\nb\tc\n":                 {"a  b c ", "a \nb\tc\n"},
		"a\u202eb\u2066c\u200bd":      {"a b c d", "a b c d"},
		"a\x00\x07\x7fb\u2028c\u00ad": {"a   b c ", "a   b c "},
		"broken \xff":                 {"broken \uFFFD", "broken \uFFFD"},
	} {
		assert.Equal(t, want[0], Line(in), "%q", in)
		assert.Equal(t, want[1], MultiLine(in), "%q", in)
	}
}
