// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/pergola-dev/pergola/apply"
	"github.com/pergola-dev/pergola/change"
	"github.com/pergola-dev/pergola/controllers/landscape"
	"github.com/pergola-dev/pergola/controllers/owner/changecounts"
	"github.com/pergola-dev/pergola/controllers/permit"
)

func TestHelpOfApply(t *testing.T) {
	assert.Contains(t, pergola(t, "--help").stdout, "130: interrupted")
	help := pergola(t, "apply", "--help").stdout
	assert.Contains(t, help, "The command applies the files of the work tree")
	assert.Contains(t, help, "Exit code 1: something failed or was held. With --dry-run, 1 means that there are differences")
}

func TestSummary(t *testing.T) {
	report := &landscape.RunReport{}
	assert.Equal(t, "Applied in 1.2s: there was nothing to write.", runSummary(report, 1234*time.Millisecond))
	report.Written = changecounts.ChangeCounts{Deleted: 2}
	assert.Equal(t, "Applied in 1s: 2 objects deleted.", runSummary(report, time.Second))
	report.Written = changecounts.ChangeCounts{Deleting: 1}
	assert.Equal(t, "Applied in 1s: 1 object is being deleted.", runSummary(report, time.Second), "it has a finalizer")
	report.Written = changecounts.ChangeCounts{Created: 260, Changed: 5, DeliveryObjects: 20}
	kept := &landscape.RunReport{Held: []permit.HeldObjects{{Cluster: "runtime", Approval: "abc", Objects: []apply.HeldObject{
		{Ref: apply.Ref{Kind: "Service", Namespace: "a", Name: "b"}, Reason: change.Reason{Detail: "too many"}, ApprovalID: "123"}, {Ref: apply.Ref{Kind: "Shoot", Namespace: "a", Name: "c"}, Reason: change.Reason{Detail: "a Shoot"}},
		{Ref: apply.Ref{Kind: "Role", Namespace: "a", Name: "d"}, Reason: change.Reason{Detail: "too many"}},
	}}}}
	assert.Equal(t, "Applied in 1s: there was nothing to write; 3 objects are held, see above.", runSummary(kept, time.Second))
	var b bytes.Buffer
	printHeld(&b, kept)
	assert.Equal(t, "Held on cluster runtime: 2 objects: too many\n  Service a/b, its approval is 123\n  Role a/d\nHeld on cluster runtime: 1 object: a Shoot\n  Shoot a/c\n  Approve all of them with: --approve abc\n", b.String())
	assert.Equal(t, "Applied in 1m21s: 265 objects (260 created, 5 changed), and 20 ManagedResources and data Secrets that carry them.", runSummary(report, 81*time.Second))
}
