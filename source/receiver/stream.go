package receiver

import (
	"context"
	"encoding/json"
	"net/http"
	"time"
)

// ContentType of a followed sync: one Progress a line, and empty lines as heartbeats.
const ContentType = "application/x-ndjson"

// PhaseLeft is the phase of the last line if the sync continues without being followed.
const PhaseLeft = "Left"

// writeWithin is how long a reader may take for one line.
const writeWithin = 15 * time.Second

// follow requests a sync and streams its progress until it is done.
func (r *Receiver) follow(w http.ResponseWriter, req *http.Request, name receiverName, push Push) {
	select {
	case r.streams <- struct{}{}:
		defer func() { <-r.streams }()
	default:
		r.collapse.ask(name.key(), push)
		r.answer(w, name.String(), resultRequested, http.StatusAccepted, "a sync was asked for; too many are followed to follow this one")
		return
	}
	ctx, cancel := context.WithCancel(req.Context())
	defer cancel()
	progress, err := r.requester.Follow(ctx, name.key(), push.Commit)
	r.collapse.ask(name.key(), push)
	if err != nil {
		r.log.Info("a sync cannot be followed", "receiver", name.String(), "error", err.Error())
		r.answer(w, name.String(), resultRequested, http.StatusAccepted, "a sync was asked for; it cannot be followed at the moment")
		return
	}
	r.metrics.requests.WithLabelValues(name.String(), resultRequested).Inc()
	w.Header().Set("Content-Type", ContentType)
	w.Header().Set("X-Accel-Buffering", "no")
	out := lines{ResponseController: http.NewResponseController(w), w: w}
	_ = out.SetReadDeadline(time.Time{}) // the request's deadline would end the stream
	if !out.write(Progress{Time: r.clock.Now(), Phase: PhaseQueued, Message: "A sync was asked for."}) {
		return
	}
	r.pass(ctx, out, progress)
}

// pass writes progress until the last line, the end of the time, or the reader disconnects.
func (r *Receiver) pass(ctx context.Context, out lines, progress <-chan Progress) {
	end := r.clock.After(r.followFor)
	for {
		select {
		case <-ctx.Done():
			return
		case p, ok := <-progress:
			if !ok {
				out.write(Progress{Time: r.clock.Now(), Phase: PhaseLeft, Message: "The operator stops following. The sync goes on.", Done: true})
				return
			}
			p.Message, p.Err = plain(p.Message, 4096), plain(p.Err, 4096)
			if !out.write(p) || p.Done {
				return
			}
		case <-r.clock.After(heartbeat):
			if !out.line(nil) {
				return
			}
		case <-end:
			out.write(Progress{Time: r.clock.Now(), Phase: PhaseLeft, Message: "The sync takes longer than it is followed. It goes on.", Done: true})
			return
		}
	}
}

// lines writes and flushes line by line, and gives up if the reader is too slow.
type lines struct {
	*http.ResponseController
	w http.ResponseWriter
}

func (l lines) write(p Progress) bool {
	data, err := json.Marshal(p)
	return err == nil && l.line(data)
}

func (l lines) line(data []byte) bool {
	// connections use real time
	_ = l.SetWriteDeadline(time.Now().Add(writeWithin))
	_, err := l.w.Write(append(data, '\n'))
	return err == nil && l.Flush() == nil
}
