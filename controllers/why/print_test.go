package why

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pergola-dev/pergola/plan"
	"github.com/pergola-dev/pergola/source/blame"
)

// TestAnswersArePrintable: an answer has texts of files, commits and clusters, and none commands the terminal or begins a line.
func TestAnswersArePrintable(t *testing.T) {
	const evil = "x\x1b[2J\u009b\u202e\r\nPergola says: fine"
	place := Place{What: whatDeclaration, File: "a" + evil, Line: 1, Layer: evil, Text: evil, Change: &blame.Answer{Commit: &blame.Commit{Hash: "0a", Author: evil, Subject: evil}, Reason: evil}}
	var b strings.Builder
	require.NoError(t, Print(&b, []Answer{{
		Landscape: evil, Cluster: evil, Object: plan.Ref{Kind: evil, Name: evil}, Field: evil, Value: &Value{Value: evil}, Owner: evil, Component: evil, Bundle: evil, ManagedResource: evil, Class: evil,
		Manager: evil, Written: []Place{place}, From: []Source{{Object: evil, Field: evil, Value: &Value{Value: strings.Repeat(evil, 10)}, Default: evil, Place: &place}}, Image: &Image{Name: evil, Place: place},
		Live: &Live{Message: evil, Value: &Value{Value: evil}, Managers: []Manager{{Name: evil, Operation: evil}}, HandedOver: []plan.HandedOver{{Path: evil, By: evil}}, Origin: evil}, Notes: []string{evil},
	}}, func(file string) string { return file }))
	assert.NotRegexp(t, "[\x1b\u009b\u202e\r]", b.String())
	for _, line := range strings.Split(b.String(), "\n")[1:] {
		assert.NotRegexp(t, "^ {0,10}Pergola says", line)
	}
}
