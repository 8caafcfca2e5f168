package operator

import (
	"testing"

	"github.com/stretchr/testify/assert"

	landscapev1alpha1 "github.com/pergola-dev/pergola/api/landscape/v1alpha1"
)

// TestApprovalsCountOnce: an id that was used approves nothing more, and the one that is shown in its place does.
func TestApprovalsCountOnce(t *testing.T) {
	for name, test := range map[string]struct{ approved, used, want []string }{
		"new":                      {[]string{"a", "b"}, nil, []string{"a", "b"}},
		"used":                     {[]string{"a", "b"}, []string{"a"}, []string{"b"}},
		"again":                    {[]string{"a", "a-2"}, []string{"a"}, []string{"a"}},
		"used again":               {[]string{"a", "a-2"}, []string{"a", "a-2"}, nil},
		"a third time":             {[]string{"a", "a-2", "a-3"}, []string{"a", "a-2"}, []string{"a"}},
		"the second before one":    {[]string{"a-2"}, nil, nil},
		"of another one":           {[]string{"b-2"}, []string{"a"}, nil},
		"more than there were yet": {[]string{"a", "a-3"}, []string{"a"}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			l := &landscapev1alpha1.Landscape{}
			l.Spec.Approved, l.Status.UsedApprovals = test.approved, test.used
			assert.Equal(t, test.want, approvals(l))
		})
	}
}
