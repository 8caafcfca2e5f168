// SPDX-License-Identifier: Apache-2.0

package why

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pergola-dev/pergola/change"
	"github.com/pergola-dev/pergola/source/blame"
)

// TestAnswersArePrintable: texts of files, commits and clusters can neither control the terminal
// nor begin a line.
func TestAnswersArePrintable(t *testing.T) {
	const evil = "x\x1b[2J\u009b\u202e\r\nPergola says: fine"
	place := Position{Kind: positionDeclaration, File: "a" + evil, Line: 1, Layer: evil, Text: evil, Change: &blame.Result{Commit: &blame.Commit{Hash: "0a", Author: evil, Subject: evil}, Reason: evil}}
	var b strings.Builder
	require.NoError(t, Print(&b, []Answer{{
		Subject: Subject{Landscape: evil, Cluster: evil, Object: change.Ref{Kind: evil, Name: evil}, Field: evil}, Value: &Value{Value: evil}, Owner: evil, Component: evil, Bundle: evil, ManagedResource: evil, Class: evil,
		Manager: evil, WrittenAt: []Position{place}, DerivedFrom: []SourceField{{Object: evil, Field: evil, Value: &Value{Value: strings.Repeat(evil, 10)}, Default: evil, Position: &place}}, Image: &Image{Name: evil, Position: place},
		Live: &LiveState{Message: evil, Value: &Value{Value: evil}, Managers: []Manager{{Name: evil, Operation: evil}}, HandedOver: []change.HandedOver{{Path: evil, Manager: evil}}, Origin: evil}, Notes: []string{evil},
	}}, func(file string) string { return file }))
	assert.NotRegexp(t, "[\x1b\u009b\u202e\r]", b.String())
	for _, line := range strings.Split(b.String(), "\n")[1:] {
		assert.NotRegexp(t, "^ {0,10}Pergola says", line)
	}
}

// TestLongValues: a cut value says how much is missing and how to see it whole.
func TestLongValues(t *testing.T) {
	long := map[string]any{"text": strings.Repeat("ä", maxShownValue)}
	shown := valueText(&Value{Value: long})
	assert.True(t, strings.HasSuffix(shown, fmt.Sprintf("ä…\n(%d characters more; -o json shows all)", len("\ntext: "))), shown)
	fits := map[string]any{"text": strings.Repeat("ä", maxShownValue-len("\ntext: "))}
	assert.Equal(t, "\ntext: "+fits["text"].(string), valueText(&Value{Value: fits}))
	assert.Equal(t, strings.Repeat("a", 2*maxShownValue), valueText(&Value{Value: strings.Repeat("a", 2*maxShownValue)}), "a line of text is whole")
}

// TestAnswerAsJSON: the order of the fields is stable.
func TestAnswerAsJSON(t *testing.T) {
	got, err := json.Marshal([]Answer{{
		Subject: Subject{Landscape: "l", Cluster: "c", Object: change.Ref{APIVersion: "v1", Kind: "Secret", Name: "s"}, Field: "f"},
		Value:   &Value{Value: 1}, Owner: "o", Component: "co", Bundle: "b", ManagedResource: "m", Class: "cl", Inventory: "i", Manager: "ma",
		WrittenAt: []Position{{Kind: "template", File: "t"}}, DerivedFrom: []SourceField{{Object: "Garden local", Field: "x"}}, Notes: []string{"n"},
	}, {Subject: Subject{Landscape: "l", Cluster: "c"}, Manager: "ma"}})
	require.NoError(t, err)
	assert.Equal(t, `[{"landscape":"l","cluster":"c","object":{"apiVersion":"v1","kind":"Secret","name":"s"},"field":"f","value":{"value":1},`+
		`"owner":"o","component":"co","bundle":"b","managedResource":"m","class":"cl","inventory":"i","manager":"ma",`+
		`"written":[{"what":"template","file":"t","exact":false}],"from":[{"object":"Garden local","field":"x"}],"notes":["n"]},`+
		`{"landscape":"l","cluster":"c","object":{"apiVersion":"","kind":"","name":""},"manager":"ma"}]`, string(got))
}
