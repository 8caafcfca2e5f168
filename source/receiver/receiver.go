// SPDX-License-Identifier: Apache-2.0

package receiver

import (
	"net/http"
	"net/netip"
	"regexp"
	"strings"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/utils/clock"

	landscapev1alpha1 "github.com/pergola-dev/pergola/api/landscape/v1alpha1"
)

// Prefix is the prefix of a Receiver's paths: Prefix + NAMESPACE/LANDSCAPE/NAME.
const Prefix = "/hooks/"

// Limits of followed syncs.
const (
	maxStreams       = 256 // followed syncs at once
	debounceInterval = time.Second
	heartbeat        = 15 * time.Second
)

// Options are the options of a Receiver.
type Options struct {
	Requester Requester
	Log       logr.Logger
	// Clock defaults to the real one.
	Clock clock.WithDelayedExecution
	// Proxies are the addresses of load balancers whose X-Forwarded-For counts. The default is
	// none; then all requests through one count as one source.
	Proxies []netip.Prefix
	// MaxFollow is the maximum time to follow a sync. The default is 1h.
	MaxFollow time.Duration
}

// Receiver answers requests for a sync. It is also a prometheus.Collector.
type Receiver struct {
	requester Requester
	log       logr.Logger
	clock     clock.WithDelayedExecution
	proxies   []netip.Prefix
	maxFollow time.Duration

	metrics        *counters
	rateLimits     *rateLimits
	usedSignatures *usedSignatures
	debouncer      *pushDebouncer
	bodyMemory     *bodyMemory
	streams        chan struct{}
}

// New returns a Receiver.
func New(o Options) *Receiver {
	if o.Clock == nil {
		o.Clock = clock.RealClock{}
	}
	if o.MaxFollow <= 0 {
		o.MaxFollow = time.Hour
	}
	if o.Log.GetSink() == nil {
		o.Log = logr.Discard()
	}
	return &Receiver{
		requester: o.Requester, log: o.Log, clock: o.Clock, proxies: o.Proxies, maxFollow: o.MaxFollow,
		metrics: newCounters(), rateLimits: newRateLimits(o.Clock), usedSignatures: newUsedSignatures(o.Clock),
		debouncer:  newPushDebouncer(o.Clock, o.Requester.Request),
		bodyMemory: newBodyMemory(), streams: make(chan struct{}, maxStreams),
	}
}

// ServeHTTP answers a delivery. Without proof, the answer is the same for each path, whether a
// receiver exists or not.
func (r *Receiver) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	w.Header().Set("Cache-Control", "no-store")
	if req.Method != http.MethodPost {
		w.Header().Set("Allow", http.MethodPost)
		r.writeResponse(w, "", resultInvalid, http.StatusMethodNotAllowed, "only POST is answered here")
		return
	}
	sender := r.senderOf(req)
	if !r.rateLimits.allowRequest(req.URL.Path, sender) {
		limitReadTime(w)
		r.respondRateLimited(w, "")
		return
	}
	body := &requestBody{memory: r.bodyMemory, sender: sender}
	defer body.release()
	switch status := body.read(w, req); status {
	case http.StatusOK:
	case http.StatusTooManyRequests:
		r.respondRateLimited(w, "")
		return
	default:
		r.rateLimits.countFailure(sender) // including senders whose body never arrives
		r.writeResponse(w, "", resultTooLarge, status, "the body is larger than 1 MiB, compressed, or did not arrive")
		return
	}
	name, target, known := r.targetOf(req)
	proof, proven := verifyProof(target, known, req.Header, body.data, r.clock.Now())
	if !proven {
		r.rateLimits.countFailure(sender)
		r.writeResponse(w, "", resultRefused, http.StatusNotFound, "no such receiver, or a wrong secret")
		return
	}
	r.serveDelivery(w, req, delivery{name: name, target: target, proof: proof, source: sender.source, body: body})
}

// delivery is a request whose sender knows the secret.
type delivery struct {
	name   receiverName
	target Target
	proof  proof
	source string
	body   *requestBody
}

func (r *Receiver) serveDelivery(w http.ResponseWriter, req *http.Request, d delivery) {
	label := d.name.String()
	if !r.rateLimits.allowDelivery(label) {
		r.respondRateLimited(w, label)
		return
	}
	if d.proof.replayKey != "" {
		switch ok, full := r.usedSignatures.add(label, d.proof.replayKey, d.proof.until); {
		case full:
			r.respondRateLimited(w, label)
			return
		case !ok:
			r.writeResponse(w, label, resultReplayed, http.StatusConflict, "this signature was used before")
			return
		}
	}
	r.rateLimits.recordProof(req.URL.Path, d.source)
	push, kind, err := parsePush(d.target.Type, req.Header, d.body.data)
	d.body.release()
	switch {
	case err != nil:
		r.writeResponse(w, label, resultInvalid, http.StatusBadRequest, "the body does not have the form of a push")
	case kind == kindPing:
		r.writeResponse(w, label, resultPing, http.StatusOK, "pong")
	case kind == kindOther || !isFollowed(d.target.Ref, push.Ref):
		r.writeResponse(w, label, resultIgnored, http.StatusAccepted, "this landscape does not follow it")
	case d.target.Type == landscapev1alpha1.ReceiverHMAC && req.URL.Query().Get("follow") == "true":
		r.streamSync(w, req, d.name, push)
	default:
		r.log.V(1).Info("push received", "receiver", label, "ref", push.Ref, "commit", push.Commit)
		r.debouncer.add(d.name.key(), push)
		r.writeResponse(w, label, resultRequested, http.StatusAccepted, "a sync was requested")
	}
}

// receiverName identifies a receiver by its path.
type receiverName struct{ namespace, landscape, name string }

func (n receiverName) String() string {
	if n == (receiverName{}) {
		return ""
	}
	return n.namespace + "/" + n.landscape + "/" + n.name
}

func (n receiverName) key() Key { return Key{Namespace: n.namespace, Name: n.landscape} }

var objectNamePattern = regexp.MustCompile(`^[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?$`)

// targetOf returns the receiver of a path. It does not look up invalid names.
func (r *Receiver) targetOf(req *http.Request) (receiverName, Target, bool) {
	path, ok := strings.CutPrefix(req.URL.Path, Prefix)
	parts := strings.Split(path, "/")
	if !ok || len(parts) != 3 || !objectNamePattern.MatchString(parts[0]) || !objectNamePattern.MatchString(parts[1]) || !objectNamePattern.MatchString(parts[2]) {
		return receiverName{}, Target{}, false
	}
	target, ok := r.requester.Receiver(req.Context(), parts[0], parts[1], parts[2])
	return receiverName{parts[0], parts[1], parts[2]}, target, ok && len(target.Token) > 0
}
