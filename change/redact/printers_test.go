// SPDX-License-Identifier: Apache-2.0

package redact_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/pergola-dev/pergola/change"
	"github.com/pergola-dev/pergola/change/redact"
	"github.com/pergola-dev/pergola/plan"
)

func init() {
	*redact.PrintFields = func(t testing.TB, fields []change.Field) string {
		t.Helper()
		p := change.Plan{Items: []change.Item{{Cluster: "c", Bundle: "b", Action: change.Change, Object: change.Ref{APIVersion: "v1", Kind: "Secret", Namespace: "n", Name: "s"}, Fields: fields}}}
		p.SortAndCount()
		var b strings.Builder
		for _, format := range []string{plan.FormatText, plan.FormatMarkdown, plan.FormatJSON, plan.FormatHTML} {
			require.NoError(t, plan.Print(&b, p, format, false))
		}
		return b.String()
	}
}
