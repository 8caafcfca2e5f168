// SPDX-License-Identifier: Apache-2.0

package notification

import (
	"bytes"
	"context"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"time"

	landscapev1alpha1 "github.com/pergola-dev/pergola/api/landscape/v1alpha1"
	"github.com/pergola-dev/pergola/source/forge"
	"github.com/pergola-dev/pergola/source/receiver"
)

// messageSender sends the messages of a worker. Its connections stay open while the worker runs.
type messageSender struct {
	webhookClient  *http.Client
	forge          *forge.Forge
	settingsDigest string // digest of the settings
}

func (t *messageSender) close() {
	if t.webhookClient != nil {
		t.webhookClient.CloseIdleConnections()
	}
	if t.forge != nil {
		t.forge.Close()
	}
	*t = messageSender{}
}

func (t *messageSender) send(ctx context.Context, s *destinationQueue, it queuedEvent, lost int) error {
	if it.destination.Type == landscapev1alpha1.NotifyCommitStatus {
		return t.sendCommitStatus(ctx, s, it)
	}
	return t.sendWebhook(ctx, s, it, lost)
}

// closeIfChanged closes connections with other settings, and reports whether it did.
func (t *messageSender) closeIfChanged(parts ...string) bool {
	data, _ := json.Marshal(parts)
	digest := sha256.Sum256(data)
	key := hex.EncodeToString(digest[:])
	if t.settingsDigest == key {
		return false
	}
	t.close()
	t.settingsDigest = key
	return true
}

// sendCommitStatus sets the status of the commit on its forge.
func (t *messageSender) sendCommitStatus(ctx context.Context, s *destinationQueue, it queuedEvent) error {
	address, repository, err := forge.LocateRepository(it.event.SourceURL, it.destination.URL)
	if err != nil {
		return err
	}
	if t.closeIfChanged(it.destination.Provider, address, string(it.destination.Token), string(it.destination.CA)) {
		t.forge, err = forge.New(forge.Options{Provider: it.destination.Provider, URL: address, Token: string(it.destination.Token), CA: it.destination.CA, Timeout: requestTimeout, Proxy: s.notifier.Proxy})
		if err != nil {
			t.close()
			return err
		}
	}
	status := forge.Status{
		State:       map[Phase]forge.State{Pending: forge.Pending, Succeeded: forge.Success, Failed: forge.Failure}[it.event.Phase],
		Context:     "pergola/" + it.event.Landscape.Name,
		Description: it.event.Message,
	}
	if it.event.Reason != "" && it.event.Phase != Succeeded {
		status.Description = it.event.Reason + ": " + it.event.Message
	}
	if s.notifier.TargetURL != nil {
		status.Target = s.notifier.TargetURL(it.event)
	}
	return t.forge.SetStatus(ctx, repository, it.event.Commit, status)
}

// requestTimeout is the timeout of one request.
const requestTimeout = 15 * time.Second

// Message is the JSON body of a webhook.
type Message struct {
	// Version is the version of this format: 1. Fields may be added to it.
	Version int `json:"version"`
	// ID is the same for all tries of one message.
	ID        string    `json:"id"`
	Time      time.Time `json:"time"`
	Landscape Landscape `json:"landscape"`
	Severity  Severity  `json:"severity"`
	Phase     Phase     `json:"phase"`
	Reason    string    `json:"reason"`
	Message   string    `json:"message"`
	Revision  string    `json:"revision,omitempty"`
	Commit    string    `json:"commit,omitempty"`
	Source    string    `json:"source,omitempty"`
	// Detail has further data; its keys depend on the reason.
	Detail map[string]string `json:"detail,omitempty"`
	// Dropped is how many earlier messages were dropped because the queue was full.
	Dropped int `json:"dropped,omitempty"`
}

// Landscape is the Landscape of a Message.
type Landscape struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	UID       string `json:"uid,omitempty"`
}

// webhookStatusError is a webhook's answer other than 2xx.
type webhookStatusError struct {
	status     int
	retryAfter time.Duration
}

func (e *webhookStatusError) Error() string {
	return fmt.Sprintf("the webhook answered %d %s", e.status, http.StatusText(e.status))
}

// sendWebhook sends a webhook.
func (t *messageSender) sendWebhook(ctx context.Context, s *destinationQueue, it queuedEvent, lost int) error {
	e := it.event
	identity := sha256.Sum256([]byte(e.Landscape.String() + "\n" + it.identity + "\n" + e.At.UTC().Format(time.RFC3339Nano)))
	body, err := json.Marshal(Message{
		Version: 1, ID: hex.EncodeToString(identity[:16]), Time: e.At.UTC(), Landscape: Landscape{e.Landscape.Namespace, e.Landscape.Name, string(e.UID)},
		Severity: e.Severity, Phase: e.Phase, Reason: e.Reason, Message: e.Message, Revision: e.Revision, Commit: e.Commit, Source: e.SourceURL, Detail: e.Detail, Dropped: lost,
	})
	if err != nil {
		return fmt.Errorf("writing the message: %w", err)
	}
	if t.closeIfChanged(string(it.destination.CA)) {
		if t.webhookClient, err = webhookClient(it.destination.CA, s.notifier.Proxy); err != nil {
			t.close()
			return err
		}
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, it.destination.URL, bytes.NewReader(body))
	if err != nil {
		return errors.New("the URL of the webhook is invalid")
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("User-Agent", "pergola")
	if len(it.destination.Token) > 0 {
		timestamp, signature := receiver.Sign(it.destination.Token, body, s.notifier.Clock.Now())
		req.Header.Set(receiver.TimestampHeader, timestamp)
		req.Header.Set(receiver.SignatureHeader, signature)
	}
	res, err := t.webhookClient.Do(req)
	if err != nil {
		var at *url.Error
		if errors.As(err, &at) { // the address may contain a secret
			err = at.Err
		}
		return fmt.Errorf("sending a webhook: %w", err)
	}
	defer res.Body.Close()
	// The connection can be reused only after its body is read.
	_, _ = io.Copy(io.Discard, io.LimitReader(res.Body, 64<<10))
	if res.StatusCode/100 == 2 {
		return nil
	}
	answer := &webhookStatusError{status: res.StatusCode}
	if seconds, err := strconv.Atoi(res.Header.Get("Retry-After")); err == nil && seconds > 0 {
		answer.retryAfter = time.Duration(min(seconds, 3600)) * time.Second
	}
	return answer
}

// webhookClient follows no redirects: a message is only for the configured address.
func webhookClient(ca []byte, proxy func(*http.Request) (*url.URL, error)) (*http.Client, error) {
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.Proxy = proxy
	transport.MaxResponseHeaderBytes = 64 << 10
	if len(ca) > 0 {
		pool, err := x509.SystemCertPool()
		if err != nil {
			pool = x509.NewCertPool()
		}
		if !pool.AppendCertsFromPEM(ca) {
			return nil, errors.New("ca.crt has no PEM certificate")
		}
		transport.TLSClientConfig = &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: pool}
	}
	return &http.Client{Transport: transport, Timeout: requestTimeout, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}, nil
}
