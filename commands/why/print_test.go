package why

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pergola-dev/pergola/change"
	"github.com/pergola-dev/pergola/source/blame"
)

// TestAnswersArePrintable: an answer has texts of files, commits and clusters, and none commands the terminal or begins a line.
func TestAnswersArePrintable(t *testing.T) {
	const evil = "x\x1b[2J\u009b\u202e\r\nPergola says: fine"
	place := Place{What: whatDeclaration, File: "a" + evil, Line: 1, Layer: evil, Text: evil, Change: &blame.Answer{Commit: &blame.Commit{Hash: "0a", Author: evil, Subject: evil}, Reason: evil}}
	var b strings.Builder
	require.NoError(t, Print(&b, []Answer{{
		Landscape: evil, Cluster: evil, Object: change.Ref{Kind: evil, Name: evil}, Field: evil, Value: &Value{Value: evil}, Owner: evil, Component: evil, Bundle: evil, ManagedResource: evil, Class: evil,
		Manager: evil, Written: []Place{place}, From: []Source{{Object: evil, Field: evil, Value: &Value{Value: strings.Repeat(evil, 10)}, Default: evil, Place: &place}}, Image: &Image{Name: evil, Place: place},
		Live: &Live{Message: evil, Value: &Value{Value: evil}, Managers: []Manager{{Name: evil, Operation: evil}}, HandedOver: []change.HandedOver{{Path: evil, By: evil}}, Origin: evil}, Notes: []string{evil},
	}}, func(file string) string { return file }))
	assert.NotRegexp(t, "[\x1b\u009b\u202e\r]", b.String())
	for _, line := range strings.Split(b.String(), "\n")[1:] {
		assert.NotRegexp(t, "^ {0,10}Pergola says", line)
	}
}

// A value that is too long for a terminal says how much of it is missing, and what shows it whole.
func TestLongValues(t *testing.T) {
	long := map[string]any{"text": strings.Repeat("ä", maxShown)}
	shown := show(&Value{Value: long})
	assert.True(t, strings.HasSuffix(shown, fmt.Sprintf("ä…\n(%d characters more; -o json shows all)", len("\ntext: "))), shown)
	fits := map[string]any{"text": strings.Repeat("ä", maxShown-len("\ntext: "))}
	assert.Equal(t, "\ntext: "+fits["text"].(string), show(&Value{Value: fits}))
	assert.Equal(t, strings.Repeat("a", 2*maxShown), show(&Value{Value: strings.Repeat("a", 2*maxShown)}), "a line of text is whole")
}
