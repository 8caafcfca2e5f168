// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	landscapev1alpha1 "github.com/pergola-dev/pergola/api/landscape/v1alpha1"
	"github.com/pergola-dev/pergola/apply"
	"github.com/pergola-dev/pergola/controllers/accesstokens"
	"github.com/pergola-dev/pergola/controllers/charts"
	"github.com/pergola-dev/pergola/controllers/owner/rendercache"
	"github.com/pergola-dev/pergola/controllers/permit"
	"github.com/pergola-dev/pergola/source"
)

// lifetime limits the work of a syncer.
type lifetime struct {
	// ctx ends with run.
	ctx context.Context
	// background are the syncer's goroutines; cancel ends them.
	background sync.WaitGroup
	cancel     context.CancelFunc
}

// sourceState is the source of a Landscape: the access to it, and the result of the last poll.
type sourceState struct {
	remote *sourceConnection
	// openedID identifies the part of the object that the access uses. reopenAt is when to retry
	// without access.
	openedID string
	reopenAt time.Time
	// previousClosed is closed with the previous connection.
	previousClosed <-chan struct{}
	head           source.Head
	polledAt       time.Time
	newest         atomic.Pointer[newestCommit]
	// pollErr is why the last poll failed.
	pollErr   error
	isPolling bool
}

// pendingRequests are pending requests of people and receivers.
type pendingRequests struct {
	// pollRequested means that a receiver or a person requested a poll. requested means that a
	// person requested a sync.
	pollRequested bool
	syncRequested bool
	// operationRequested means that someone requested an operation of the Garden since the last
	// sync began.
	operationRequested bool
	// isPollRunning means that a requested poll is running. answered means that it finished and
	// that followers must be notified.
	isPollRunning, isPollDone bool
	// awaitsPoll means that a person requested the sync, and the source did not answer yet.
	awaitsPoll bool
}

// objectFaults are errors in the object that a person has to fix.
type objectFaults struct {
	// misconfiguration describes the error. isNameTaken means that the name is the error: another
	// Landscape has or had it.
	misconfiguration string
	isNameTaken      bool
	// reportedMissing and reportedMisconfigured are the last reported texts.
	reportedMissing, reportedMisconfigured string
}

// sharedResources stay from one revision to the next, so that unchanged objects cost nothing.
type sharedResources struct {
	// tokens are renewed for the Garden until the syncer ends.
	tokens *accesstokens.Requester
	// clusters, engine and engineForces are guarded by building.
	clusters     clusterConnections
	engine       *apply.Engine
	engineForces bool
	// renderCache of the Garden and approved deletions stay from one revision to the next.
	renderCache  rendercache.Cache
	charts       *charts.Puller
	permitMemory permit.RunMemory
}

// jobs are the revisions in work: the preparation, the applied or maintained one, and the result of
// the last attempt.
type jobs struct {
	preparation *preparation
	// examination is the last examination of a waiting revision.
	examination *waitingValidation
	activeJob   *job
	// pausedDone is closed when the paused job is over.
	pausedDone chan struct{}
	// lastOutcome is the result of the last attempt in this process.
	lastOutcome syncOutcome
	// moveSources are the Landscapes that made the last sync fail. Other syncers read it.
	moveSources atomic.Pointer[[]string]
	// hasVerdict means that this process has a verdict on the source's revision.
	hasVerdict bool
	decision   decision
	// maintainFailure is why this process cannot maintain the applied revision; it is nil if it can
	// or did not try.
	maintainFailure *maintainFailure
}

// clusterFindings are differences between the clusters and Git.
type clusterFindings struct {
	// unhealthyConditions are the conditions that are False, by owner.
	unhealthyConditions map[string][]string
	// unrepairedDrift lists changes that could not be repaired since the last sync.
	unrepairedDrift []string
	// heldRepairs are repairs of drift that wait for an approval.
	heldRepairs []landscapev1alpha1.HeldDeletion
	// heldOnSeeds are deletions that gardenlets hold. gardenletWaiter is the wait of a successful
	// sync; it is nil for none.
	heldOnSeeds     []landscapev1alpha1.HeldDeletion
	gardenletWaiter *gardenletWaiter
}
