// SPDX-License-Identifier: Apache-2.0

package receiver

import (
	"context"
	"encoding/json"
	"net/http"
	"time"
)

// ContentType is the content type of a followed sync: one Progress a line, and empty lines as
// heartbeats.
const ContentType = "application/x-ndjson"

// PhaseUnfollowed is the phase of the last line if the sync continues without being followed.
const PhaseUnfollowed = "Left"

// lineTimeout is how long a reader may take for one line.
const lineTimeout = 15 * time.Second

// streamSync requests a sync and streams its progress until it is done.
func (r *Receiver) streamSync(w http.ResponseWriter, req *http.Request, name receiverName, push Push) {
	select {
	case r.streams <- struct{}{}:
		defer func() { <-r.streams }()
	default:
		r.debouncer.add(name.key(), push)
		r.writeResponse(w, name.String(), resultRequested, http.StatusAccepted, "a sync was requested; it cannot be followed, because too many are followed")
		return
	}
	ctx, cancel := context.WithCancel(req.Context())
	defer cancel()
	progress, err := r.requester.Follow(ctx, name.key(), push.Commit)
	r.debouncer.add(name.key(), push)
	if err != nil {
		r.log.Info("a sync cannot be followed", "receiver", name.String(), "error", err.Error())
		r.writeResponse(w, name.String(), resultRequested, http.StatusAccepted, "a sync was requested; it cannot be followed at the moment")
		return
	}
	r.metrics.requests.WithLabelValues(name.String(), resultRequested).Inc()
	w.Header().Set("Content-Type", ContentType)
	w.Header().Set("X-Accel-Buffering", "no")
	out := lineWriter{ResponseController: http.NewResponseController(w), w: w}
	_ = out.SetReadDeadline(time.Time{}) // the request's deadline would end the stream
	if !out.writeProgress(Progress{Time: r.clock.Now(), Phase: PhaseQueued, Message: "A sync was requested."}) {
		return
	}
	r.streamProgress(ctx, out, progress)
}

// streamProgress writes progress until the last line is written, the time is over, or the reader
// disconnects.
func (r *Receiver) streamProgress(ctx context.Context, out lineWriter, progress <-chan Progress) {
	end := r.clock.After(r.maxFollow)
	for {
		select {
		case <-ctx.Done():
			return
		case p, ok := <-progress:
			if !ok {
				out.writeProgress(Progress{Time: r.clock.Now(), Phase: PhaseUnfollowed, Message: "The operator stops following. The sync continues.", Done: true})
				return
			}
			p.Message, p.Err = boundedText(p.Message, 4096), boundedText(p.Err, 4096)
			if !out.writeProgress(p) || p.Done {
				return
			}
		case <-r.clock.After(heartbeat):
			if !out.writeLine(nil) {
				return
			}
		case <-end:
			out.writeProgress(Progress{Time: r.clock.Now(), Phase: PhaseUnfollowed, Message: "The sync takes longer than the operator follows it. It continues.", Done: true})
			return
		}
	}
}

// lineWriter writes and flushes line by line, and gives up if the reader is too slow.
type lineWriter struct {
	*http.ResponseController
	w http.ResponseWriter
}

func (l lineWriter) writeProgress(p Progress) bool {
	data, err := json.Marshal(p)
	return err == nil && l.writeLine(data)
}

func (l lineWriter) writeLine(data []byte) bool {
	// connections use real time
	_ = l.SetWriteDeadline(time.Now().Add(lineTimeout))
	_, err := l.w.Write(append(data, '\n'))
	return err == nil && l.Flush() == nil
}
