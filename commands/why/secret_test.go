// SPDX-License-Identifier: Apache-2.0

package why

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/pergola-dev/pergola/change"
)

// TestValuesOfSecretsUnderEitherName: stringData in Git matches data in a cluster; no answer shows
// the value.
func TestValuesOfSecretsUnderEitherName(t *testing.T) {
	code := func(text string) string { return base64.StdEncoding.EncodeToString([]byte(text)) }
	l := writeDemoLandscape(t, map[string]string{"secret.yaml": "apiVersion: v1\nkind: Secret\nmetadata:\n  name: mine\n  namespace: garden-local\nstringData:\n  password: correct-horse\n  both: horse-one\n" +
		"data:\n  user: " + code("horse-rider") + "\n  both: " + code("horse-two") + "\n"})
	live := map[string]any{"password": code("correct-horse"), "user": code("horse-rider"), "both": code("horse-one"), "extra": code("horse-extra")}
	ask := func(question string) Answer {
		t.Helper()
		answers := explain(t, l, "Secret garden-local/mine."+question, func(o *Options) {
			o.Clusters = []string{"virtual"}
			o.ReadObject = func(context.Context, string, change.Ref) (*unstructured.Unstructured, error) {
				return &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "Secret",
					"metadata": map[string]any{"name": "mine", "namespace": "garden-local"}, "data": live}}, nil
			}
		})
		require.Len(t, answers, 1)
		raw, err := json.Marshal(answers)
		require.NoError(t, err)
		for _, hidden := range []string{"horse", code("correct-horse"), code("horse-rider"), code("horse-one"), code("horse-two"), code("horse-extra")} {
			assert.NotContains(t, string(raw)+answersText(t, answers), hidden, question)
		}
		return answers[0]
	}
	for _, test := range []struct {
		question, field string
		line            int
		verdict         string
		noted           bool
	}{
		{"data.password", "stringData.password", 7, VerdictSame, true},
		{"stringData.password", "stringData.password", 7, VerdictSame, false},
		{"data[password]", "stringData.password", 7, VerdictSame, true},
		{"data.user", "data.user", 10, VerdictSame, false},
		{"stringData.user", "data.user", 10, VerdictSame, true},
		{"data.both", "stringData.both", 8, VerdictSame, true},
		{"stringData", "stringData", 7, VerdictSame, false},
		{"data.extra", "data.extra", 0, VerdictUndeclared, true},
		{"stringData.extra", "data.extra", 0, VerdictUndeclared, true},
	} {
		a := ask(test.question)
		assert.Equal(t, test.field, a.Subject.Field, test.question)
		if test.line > 0 {
			require.NotEmpty(t, a.WrittenAt, test.question)
			assert.Equal(t, test.line, a.WrittenAt[0].Line, test.question)
		}
		assert.Equal(t, test.verdict, a.Live.Verdict, "%s: %s", test.question, a.Live.Message)
		assert.Equal(t, test.noted, len(a.Notes) > 0, "%s: %q", test.question, a.Notes)
	}
	live["password"] = code("horse-other")
	assert.Equal(t, VerdictDiffers, ask("data.password").Live.Verdict)
	delete(live, "password")
	assert.Equal(t, VerdictMissing, ask("data.password").Live.Verdict)
}
