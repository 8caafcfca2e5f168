// SPDX-License-Identifier: Apache-2.0

package receiver

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"
)

// Limits for the input of a hook.
const (
	maxLines = 100_000
	maxRefs  = 20 // reported separately; more are reported as one push
)

// PostReceive is the hook of a bare repository: it requests syncs of pushed refs, and reports their
// progress to the pusher.
type PostReceive struct {
	Client *Client
	// Receivers are NAMESPACE/LANDSCAPE/NAME each.
	Receivers []string
	// Pusher is the pusher, if known.
	Pusher string
	// Follow enables following of the syncs, Within limits its duration.
	Follow        bool
	FollowTimeout time.Duration
	// Out is the output that Git shows to the pusher.
	Out io.Writer
}

// ParsePushes parses the input of a post-receive hook: a line with the old object, the new object
// and the name of each ref. It merges very many refs into one push without a name.
func ParsePushes(in io.Reader, by string) ([]Push, error) {
	var out []Push
	lines := bufio.NewScanner(in)
	lines.Buffer(nil, maxLineLength)
	for n := 0; lines.Scan(); n++ {
		if n == maxLines {
			return nil, errors.New("more refs than a push has")
		}
		fields := strings.Fields(lines.Text())
		if len(fields) == 0 {
			continue
		}
		if len(fields) != 3 || !commitHashPattern.MatchString(fields[0]) || !commitHashPattern.MatchString(fields[1]) {
			return nil, errors.New("standard input is not from a post-receive hook of Git: each line has to be OLD NEW REF")
		}
		push := Push{Ref: boundedText(fields[2], 255), Commit: fields[1], Pusher: boundedText(by, 100)}
		if strings.Trim(push.Commit, "0") == "" {
			push.Commit = ""
		}
		if isFollowable(push.Ref) {
			out = append(out, push)
		}
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("reading the pushed refs: %w", err)
	}
	if len(out) > maxRefs {
		return []Push{{Pusher: boundedText(by, 100)}}, nil
	}
	return out, nil
}

// isFollowable reports whether a Landscape can follow a ref at all.
func isFollowable(ref string) bool {
	return strings.HasPrefix(ref, "refs/heads/") || strings.HasPrefix(ref, "refs/tags/")
}

// Run requests all syncs at once, so that they start even if the pusher leaves, and returns when
// they are done. Failures are reported but not returned: the push has happened.
func (h *PostReceive) Run(ctx context.Context, pushes []Push) {
	var cancel context.CancelFunc
	ctx, cancel = context.WithTimeoutCause(ctx, h.FollowTimeout, fmt.Errorf("the time limit of %s is over", h.FollowTimeout))
	defer cancel()
	p := &progressPrinter{out: h.Out, showLandscape: len(h.Receivers) > 1}
	var group sync.WaitGroup
	for _, receiver := range h.Receivers {
		for _, push := range pushes {
			group.Go(func() { h.requestSync(ctx, p, receiver, push) })
		}
	}
	group.Wait()
}

func (h *PostReceive) requestSync(ctx context.Context, t *progressPrinter, receiver string, push Push) {
	landscape := receiver[:strings.LastIndex(receiver, "/")]
	var tell func(Progress)
	if h.Follow {
		tell = func(p Progress) { t.printProgress(landscape, p) }
	}
	last, followed, err := h.Client.RequestSync(ctx, receiver, push, tell)
	var refused *RefusedError
	switch {
	case errors.As(err, &refused):
		t.printLine(landscape, "Pergola rejected the request: "+refused.Error()+". It polls for new commits.")
	case err != nil && last.Phase == "" && !followed:
		t.printLine(landscape, "A sync cannot be requested now ("+boundedText(err.Error(), 300)+"). Pergola polls for new commits.")
	case err != nil:
		t.printLine(landscape, "The hook stops following the sync ("+boundedText(err.Error(), 300)+"). The sync continues.")
	case last.Done && last.Err != "":
		t.printFailure(landscape, last)
	case !followed || last.Phase != "":
	default:
		t.printLine(landscape, "A sync was requested.")
	}
}

// progressPrinter writes whole lines for concurrent callers.
type progressPrinter struct {
	mu            sync.Mutex
	out           io.Writer
	showLandscape bool
	last          map[string]string
}

func (t *progressPrinter) printLine(landscape, text string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.showLandscape {
		text = landscape + ": " + text
	}
	_, _ = fmt.Fprintln(t.out, text) // the pusher may have disconnected
}

func (t *progressPrinter) printProgress(landscape string, p Progress) {
	if p.Done && p.Err != "" {
		return // reported at the end
	}
	text := p.Phase
	if p.Message != "" {
		text += ": " + p.Message
	}
	t.mu.Lock()
	if t.last == nil {
		t.last = map[string]string{}
	}
	same := t.last[landscape] == text
	t.last[landscape] = text
	t.mu.Unlock()
	if !same {
		t.printLine(landscape, text)
	}
}

// printFailure is conspicuous: Git shows it among much other output.
func (t *progressPrinter) printFailure(landscape string, p Progress) {
	const rule = "**********************************************************************"
	what, stays := "SYNC FAILED of ", "The commit is pushed, but not or only partly applied. Objects that were applied before stay."
	if p.Applied {
		what, stays = "NOT DONE ON ALL SEEDS of ", "The commit is applied in the runtime cluster and the virtual garden. Each gardenlet applies the rest on its seed as soon as it can."
	}
	for _, line := range []string{rule, what + landscape + ": " + p.Err, stays, rule} {
		t.printLine(landscape, line)
	}
}
