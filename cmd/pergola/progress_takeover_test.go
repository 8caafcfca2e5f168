// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/pergola-dev/pergola/apply"
)

// TestProgressPrintsTakeovers: changes to objects of other owners are printed without a flag.
func TestProgressPrintsTakeovers(t *testing.T) {
	for name, c := range map[string]struct {
		action  apply.Action
		message string
		said    bool
	}{
		"adopted":    {apply.Adopted, "it already exists", true},
		"taken over": {apply.Configured, "takes over the fields of helm", true},
		"changed":    {apply.Configured, "", false},
		"created":    {apply.Created, "", false},
		"unchanged":  {apply.Unchanged, "", false},
	} {
		t.Run(name, func(t *testing.T) {
			var out bytes.Buffer
			p := newProgress(&out, false, false, false)
			p.printObject("Garden local", "b", apply.ObjectResult{Ref: apply.Ref{APIVersion: "v1", Kind: "ConfigMap", Namespace: "garden", Name: "mal"}, Action: c.action, Message: c.message})
			if !c.said {
				assert.Empty(t, out.String())
				return
			}
			assert.Equal(t, "  "+string(c.action)+" ConfigMap garden/mal (Garden local, b): "+c.message+"\n", out.String())
		})
	}
}

func TestTimeoutMustBePositive(t *testing.T) {
	for _, timeout := range []time.Duration{0, -5 * time.Second} {
		_, err := accessFlags{timeout: timeout}.resolve(nil)
		assert.ErrorContains(t, err, "--timeout "+timeout.String())
	}
}
