// SPDX-License-Identifier: Apache-2.0

package notification

import (
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// Phase is the progress of a revision.
type Phase string

// The phases.
const (
	// Pending means that the revision is being synced, or waits (the reason says for what).
	Pending Phase = "Pending"
	// Succeeded means that the revision is applied and healthy.
	Succeeded Phase = "Succeeded"
	// Failed means that the revision could not be applied, or something is not healthy.
	Failed Phase = "Failed"
	// Neutral means that the event is not about a revision (suspended, resumed, drift repaired); it
	// is never a commit status.
	Neutral Phase = "Neutral"
)

// Severity filters events for destinations.
type Severity string

// The severities.
const (
	Info    Severity = "info"
	Warning Severity = "warning"
)

// Event is something that happened to a Landscape.
type Event struct {
	// Landscape is the Landscape of the event, and its UID.
	Landscape types.NamespacedName
	UID       types.UID
	// Revision has the form of the Landscape's status (main@sha1:…), and Commit is the commit in it
	// ("" for an OCI artifact: no commit status).
	Revision, Commit string
	// SourceURL is the repository, as in spec.source.url.
	SourceURL string
	Phase     Phase
	// Reason is the reason in CamelCase, as in the condition.
	Reason   string
	Severity Severity
	// Message is the message for people.
	Message string
	// At is the time of the event; zero: now.
	At time.Time
	// Detail has data for programs (objects changed, held ids, duration …). Only webhooks send it.
	Detail map[string]string
}
