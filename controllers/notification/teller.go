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

// teller sends the messages of a worker. Its connections stay open while the worker runs.
type teller struct {
	webhook *http.Client
	forge   *forge.Forge
	madeFor string // digest of the settings
}

func (t *teller) close() {
	if t.webhook != nil {
		t.webhook.CloseIdleConnections()
	}
	if t.forge != nil {
		t.forge.Close()
	}
	*t = teller{}
}

func (t *teller) send(ctx context.Context, s *sink, it item, lost int) error {
	if it.to.Type == landscapev1alpha1.NotifyCommitStatus {
		return t.status(ctx, s, it)
	}
	return t.post(ctx, s, it, lost)
}

// renew closes connections with other settings, and reports whether it did.
func (t *teller) renew(parts ...string) bool {
	data, _ := json.Marshal(parts)
	digest := sha256.Sum256(data)
	key := hex.EncodeToString(digest[:])
	if t.madeFor == key {
		return false
	}
	t.close()
	t.madeFor = key
	return true
}

// status sets the status of the commit on its forge.
func (t *teller) status(ctx context.Context, s *sink, it item) error {
	address, repository, err := forge.Locate(it.event.SourceURL, it.to.URL)
	if err != nil {
		return err
	}
	if t.renew(it.to.Provider, address, string(it.to.Token), string(it.to.CA)) {
		t.forge, err = forge.New(forge.Options{Provider: it.to.Provider, URL: address, Token: string(it.to.Token), CA: it.to.CA, Timeout: requestTimeout, Proxy: s.notifier.Proxy})
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
	// Version of this format: 1. Fields may be added to it.
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

// Landscape of a Message.
type Landscape struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	UID       string `json:"uid,omitempty"`
}

// answerError is a webhook's answer other than 2xx.
type answerError struct {
	status     int
	retryAfter time.Duration
}

func (e *answerError) Error() string {
	return fmt.Sprintf("the webhook answered %d %s", e.status, http.StatusText(e.status))
}

// post sends a webhook.
func (t *teller) post(ctx context.Context, s *sink, it item, lost int) error {
	e := it.event
	identity := sha256.Sum256([]byte(e.Landscape.String() + "\n" + it.message + "\n" + e.At.UTC().Format(time.RFC3339Nano)))
	body, err := json.Marshal(Message{
		Version: 1, ID: hex.EncodeToString(identity[:16]), Time: e.At.UTC(), Landscape: Landscape{e.Landscape.Namespace, e.Landscape.Name, string(e.UID)},
		Severity: e.Severity, Phase: e.Phase, Reason: e.Reason, Message: e.Message, Revision: e.Revision, Commit: e.Commit, Source: e.SourceURL, Detail: e.Detail, Dropped: lost,
	})
	if err != nil {
		return fmt.Errorf("writing the message: %w", err)
	}
	if t.renew(string(it.to.CA)) {
		if t.webhook, err = webhookClient(it.to.CA, s.notifier.Proxy); err != nil {
			t.close()
			return err
		}
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, it.to.URL, bytes.NewReader(body))
	if err != nil {
		return errors.New("the url of the webhook is not one")
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("User-Agent", "pergola")
	if len(it.to.Token) > 0 {
		timestamp, signature := receiver.Sign(it.to.Token, body, s.notifier.Clock.Now())
		req.Header.Set(receiver.TimestampHeader, timestamp)
		req.Header.Set(receiver.SignatureHeader, signature)
	}
	res, err := t.webhook.Do(req)
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
	answer := &answerError{status: res.StatusCode}
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
			return nil, errors.New("ca.crt holds no certificate as PEM")
		}
		transport.TLSClientConfig = &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: pool}
	}
	return &http.Client{Transport: transport, Timeout: requestTimeout, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}, nil
}
