// SPDX-License-Identifier: Apache-2.0

package receiver

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"k8s.io/utils/clock"
)

// Limits for the answers that a Client reads and waits for.
const (
	maxLineLength   = 64 << 10
	silenceTimeout  = 4 * heartbeat
	responseTimeout = 30 * time.Second
)

// Client requests a sync, like the post-receive hook of a bare repository.
type Client struct {
	// URL is the URL of the operator's receivers, without the path of a receiver.
	URL string
	// Token is the token in the receiver's Secret.
	Token []byte
	// HTTP sends the requests; its Timeout must be unset, because following a sync may take long.
	HTTP  *http.Client
	Clock clock.PassiveClock
}

// RefusedError is an answer without a requested sync.
type RefusedError struct {
	Status   int
	Response Response
}

func (e *RefusedError) Error() string {
	if e.Response.Message == "" {
		return fmt.Sprintf("it answered %d %s", e.Status, http.StatusText(e.Status))
	}
	return fmt.Sprintf("it answered %d: %s", e.Status, e.Response.Message)
}

// RequestSync sends one push to the receiver NAMESPACE/LANDSCAPE/NAME and, with tell, follows the
// sync until its last Progress. It returns the last Progress, with Phase "" if the sync is not
// followed, and whether the Landscape follows the pushed ref.
func (c *Client) RequestSync(ctx context.Context, receiver string, push Push, tell func(Progress)) (last Progress, followed bool, err error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	body, err := json.Marshal(map[string]string{"ref": push.Ref, "commit": push.Commit, "by": push.Pusher})
	if err != nil {
		return Progress{}, false, err
	}
	address := strings.TrimRight(c.URL, "/") + Prefix + receiver
	if tell != nil {
		address += "?follow=true"
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, address, bytes.NewReader(body))
	if err != nil {
		return Progress{}, false, errors.New("the address of the operator is not a URL")
	}
	timestamp, signature := Sign(c.Token, body, c.Clock.Now())
	req.Header.Set(TimestampHeader, timestamp)
	req.Header.Set(SignatureHeader, signature)
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("User-Agent", "pergola")

	silence := time.AfterFunc(responseTimeout, func() { cancel(errors.New("it does not answer")) })
	defer silence.Stop()
	res, err := c.HTTP.Do(req)
	if err != nil {
		return Progress{}, false, causeOf(ctx, err)
	}
	defer res.Body.Close()
	if res.Header.Get("Content-Type") != ContentType {
		var answer Response
		data, _ := io.ReadAll(io.LimitReader(res.Body, maxLineLength)) // a partial body suffices
		// otherwise the status says it
		_ = json.Unmarshal(data, &answer)
		answer.Message = boundedText(answer.Message, 300)
		if res.StatusCode != http.StatusAccepted {
			return Progress{}, false, &RefusedError{res.StatusCode, answer}
		}
		return Progress{}, answer.Result != resultIgnored, nil
	}
	lines := bufio.NewScanner(res.Body)
	lines.Buffer(nil, maxLineLength)
	for lines.Scan() {
		silence.Reset(silenceTimeout)
		if len(bytes.TrimSpace(lines.Bytes())) == 0 {
			continue
		}
		var p Progress
		if err := json.Unmarshal(lines.Bytes(), &p); err != nil {
			return last, true, errors.New("its answer is not the progress of a sync")
		}
		p.Phase, p.Message, p.Err = boundedText(p.Phase, 64), boundedText(p.Message, 4096), boundedText(p.Err, 4096)
		last = p
		tell(p)
		if p.Done {
			return last, true, nil
		}
	}
	if err := lines.Err(); err != nil {
		return last, true, causeOf(ctx, err)
	}
	return last, true, errors.New("the connection ended")
}

// causeOf returns the cause of a failed request, without its address.
func causeOf(ctx context.Context, err error) error {
	if cause := context.Cause(ctx); cause != nil {
		return cause
	}
	var at *url.Error
	if errors.As(err, &at) {
		return at.Err
	}
	return err
}
