// SPDX-License-Identifier: Apache-2.0

package landscapes

import (
	"fmt"
	"strings"
	"testing"
	"unicode"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"
)

// TestScalarPosition: for each style of a scalar, a rune is found at its place in the file, and the
// order is right.
func TestScalarPosition(t *testing.T) {
	texts := []string{
		`self.status.phase == "Running"`, `self.a == "it's" && 'x' == "\\d"`, "self.a ==\n  self.b &&\n\n  self.c\n", "a\tb", `'"phase " + self.a`, "é == 'ü' && \u00a0x == '😀'",
		strings.Repeat("self.status.conditions.exists(c, c.type == 'Ready') || ", 6) + "false", `"a" + "b"`, "# no comment", "*a", "\x01\u2028x",
	}
	for _, style := range []yaml.Style{0, yaml.DoubleQuotedStyle, yaml.SingleQuotedStyle, yaml.LiteralStyle, yaml.FoldedStyle} {
		for i, text := range texts {
			t.Run(fmt.Sprintf("%d/%d", style, i), func(t *testing.T) {
				data, err := yaml.Marshal(&yaml.Node{Kind: yaml.MappingNode, Content: []*yaml.Node{
					{Kind: yaml.ScalarNode, Value: "before"}, {Kind: yaml.ScalarNode, Value: "x"},
					{Kind: yaml.ScalarNode, Value: "rule"}, {Kind: yaml.ScalarNode, Tag: "!!str", Value: text, Style: style},
				}})
				require.NoError(t, err)
				var node yaml.Node
				require.NoError(t, yaml.Unmarshal(data, &node))
				scalar := node.Content[0].Content[3]
				require.Equal(t, strings.Fields(text), strings.Fields(scalar.Value), "folding changes white space")
				lines, runes := strings.Split(string(data), "\n"), []rune(scalar.Value)
				lastLine, lastColumn := 0, 0
				for at, want := range runes {
					if unicode.IsSpace(want) {
						continue
					}
					line, column := scalarPosition(data, scalar.Line, scalar.Column, runes, at)
					have := []rune(lines[line-1])[column-1]
					if want == '\x01' || have == '\\' && want != '\\' {
						continue // an escape
					}
					assert.Equal(t, string(want), string(have), "%d of %s in\n%s", at, text, data)
					assert.True(t, line > lastLine || line == lastLine && column > lastColumn, "%d of %s in\n%s", at, text, data)
					lastLine, lastColumn = line, column
				}
			})
		}
	}
}

func TestScalarPositionWithoutScalar(t *testing.T) {
	text := []rune("self.a")
	for name, test := range map[string]struct {
		source       string
		line, column int
	}{
		"no file": {"", 3, 4}, "no place": {"a: self.a", 0, 0}, "beyond the file": {"a: self.a", 7, 4}, "beyond the line": {"a: self.a", 1, 40},
		"another text": {"a: self.bcd", 1, 4}, "an alias": {"a: *x", 1, 4}, "ends too early": {`a: "self\`, 1, 4}, "a broken escape": {`a: "\xzz"`, 1, 4}, "an unknown escape": {`a: "\qself.a"`, 1, 4},
	} {
		t.Run(name, func(t *testing.T) {
			for at := range text {
				line, column := scalarPosition([]byte(test.source), test.line, test.column, text, at)
				if at == len(text)-1 || name != "another text" && name != "ends too early" {
					assert.Equal(t, []int{test.line, test.column}, []int{line, column})
				}
			}
		})
	}
}
