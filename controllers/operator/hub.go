package operator

import (
	"context"
	"sync"

	"github.com/pergola-dev/pergola/source/receiver"
)

// hub broadcasts the progress of syncs to followers.
type hub struct {
	mu        sync.Mutex
	followers map[*follower]bool
}

type follower struct {
	commit string // "" for any sync
	lines  chan receiver.Progress
}

// backlog is how many lines a follower may lag behind before some are dropped.
const backlog = 256

// follow returns a channel that closes after the last line, or with the context.
func (h *hub) follow(ctx context.Context, commit string) <-chan receiver.Progress {
	f := &follower{commit: commit, lines: make(chan receiver.Progress, backlog)}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.followers == nil {
		h.followers = map[*follower]bool{}
	}
	h.followers[f] = true
	context.AfterFunc(ctx, func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		h.drop(f)
	})
	return f.lines
}

// drop ends a follower; the lock is held.
func (h *hub) drop(f *follower) {
	if h.followers[f] {
		delete(h.followers, f)
		close(f.lines)
	}
}

// tell sends a line about a commit to its followers.
func (h *hub) tell(commit string, p receiver.Progress) {
	h.each(func(f *follower) bool { return f.commit == "" || f.commit == commit }, p)
}

// tellAll sends a line to all followers.
func (h *hub) tellAll(p receiver.Progress) {
	h.each(func(*follower) bool { return true }, p)
}

// supersede ends the followers of all commits except the current one: theirs will not be synced.
func (h *hub) supersede(commit string, p receiver.Progress) {
	p.Done, p.Phase = true, receiver.PhaseSuperseded
	h.others(commit, p)
}

// others sends a line to the followers of other commits.
func (h *hub) others(commit string, p receiver.Progress) {
	h.each(func(f *follower) bool { return f.commit != "" && f.commit != commit }, p)
}

func (h *hub) each(wants func(*follower) bool, p receiver.Progress) {
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
			h.drop(f)
		}
	}
}
