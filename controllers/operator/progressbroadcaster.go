// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"context"
	"sync"

	"github.com/pergola-dev/pergola/source/receiver"
)

// progressBroadcaster broadcasts the progress of syncs to followers.
type progressBroadcaster struct {
	mu        sync.Mutex
	followers map[*follower]bool
}

type follower struct {
	commit string // "" for any sync
	lines  chan receiver.Progress
}

// followerBacklog is how many lines a follower may lag behind before some are dropped.
const followerBacklog = 256

// follow returns a channel that closes after the last line, or with the context.
func (h *progressBroadcaster) follow(ctx context.Context, commit string) <-chan receiver.Progress {
	f := &follower{commit: commit, lines: make(chan receiver.Progress, followerBacklog)}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.followers == nil {
		h.followers = map[*follower]bool{}
	}
	h.followers[f] = true
	context.AfterFunc(ctx, func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		h.removeFollower(f)
	})
	return f.lines
}

// removeFollower ends a follower; the lock is held.
func (h *progressBroadcaster) removeFollower(f *follower) {
	if h.followers[f] {
		delete(h.followers, f)
		close(f.lines)
	}
}

// broadcast sends a line about a commit to its followers.
func (h *progressBroadcaster) broadcast(commit string, p receiver.Progress) {
	h.sendTo(func(f *follower) bool { return f.commit == "" || f.commit == commit }, p)
}

// broadcastToAll sends a line to all followers.
func (h *progressBroadcaster) broadcastToAll(p receiver.Progress) {
	h.sendTo(func(*follower) bool { return true }, p)
}

// endSuperseded ends the followers of all commits except the current one: theirs are not synced.
func (h *progressBroadcaster) endSuperseded(commit string, p receiver.Progress) {
	p.Done, p.Phase = true, receiver.PhaseSuperseded
	h.broadcastToOthers(commit, p)
}

// broadcastToOthers sends a line to the followers of other commits.
func (h *progressBroadcaster) broadcastToOthers(commit string, p receiver.Progress) {
	h.sendTo(func(f *follower) bool { return f.commit != "" && f.commit != commit }, p)
}

func (h *progressBroadcaster) sendTo(wants func(*follower) bool, p receiver.Progress) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for f := range h.followers {
		if !wants(f) {
			continue
		}
		if p.Done && len(f.lines) == cap(f.lines) {
			<-f.lines // the last line is never dropped
		}
		select {
		case f.lines <- p:
		default:
		}
		if p.Done {
			h.removeFollower(f)
		}
	}
}
