// Package operator is the role `pergola operator`: it keeps the clusters of each Landscape object
// as its Git repository says. One syncer looks after one Landscape: it polls the source, decides
// what is due (due.go, a pure function), prepares a revision (preparation.go), for which it is
// loaded and validated (reading.go; examine.go while it has to wait) and compared with what
// reviewers saw (review.go), lets pass what was approved (approvals.go), publishes for seeds
// (publish.go), applies it (sync.go, and job.go in the background) and keeps it until there is a
// newer one, or the one before a restart where there is none (former.go, which also notes what was
// tried and not completed), and tells what it does in status, events, metrics and to whoever
// follows a sync.
//
// Read syncer.go first: step is the whole way of one Landscape.
//
// What does not live here: how a revision is applied (controllers/landscape), how it is fetched and
// verified (source), how requests of forges are read (source/receiver), who is told what
// (controllers/notification).
package operator
