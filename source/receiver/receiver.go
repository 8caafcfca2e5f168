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

// Prefix of a Receiver's paths: Prefix + NAMESPACE/LANDSCAPE/NAME.
const Prefix = "/hooks/"

// Limits of followed syncs.
const (
	maxStreams = 256 // followed syncs at once
	quiet      = time.Second
	heartbeat  = 15 * time.Second
)

// Options of a Receiver.
type Options struct {
	Requester Requester
	Log       logr.Logger
	// Clock defaults to the real one.
	Clock clock.WithDelayedExecution
	// Proxies are the addresses of load balancers whose X-Forwarded-For counts. Default: none; then
	// all requests through one count as one source.
	Proxies []netip.Prefix
	// FollowFor is the maximum time to follow a sync. Default: 1h.
	FollowFor time.Duration
}

// Receiver answers requests for a sync. It is also a prometheus.Collector.
type Receiver struct {
	requester Requester
	log       logr.Logger
	clock     clock.WithDelayedExecution
	proxies   []netip.Prefix
	followFor time.Duration

	metrics  *counters
	paces    *paces
	seen     *seen
	collapse *collapse
	room     *room
	streams  chan struct{}
}

// New returns a Receiver.
func New(o Options) *Receiver {
	if o.Clock == nil {
		o.Clock = clock.RealClock{}
	}
	if o.FollowFor <= 0 {
		o.FollowFor = time.Hour
	}
	if o.Log.GetSink() == nil {
		o.Log = logr.Discard()
	}
	return &Receiver{
		requester: o.Requester, log: o.Log, clock: o.Clock, proxies: o.Proxies, followFor: o.FollowFor,
		metrics: newCounters(), paces: newPaces(o.Clock), seen: newSeen(o.Clock),
		collapse: newCollapse(o.Clock, o.Requester.Request),
		room:     newRoom(), streams: make(chan struct{}, maxStreams),
	}
}

// ServeHTTP answers a delivery. Without proof, the answer is the same for each path, whether a
// receiver exists or not.
func (r *Receiver) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	w.Header().Set("Cache-Control", "no-store")
	if req.Method != http.MethodPost {
		w.Header().Set("Allow", http.MethodPost)
		r.answer(w, "", resultInvalid, http.StatusMethodNotAllowed, "only POST is answered here")
		return
	}
	sender := r.sender(req)
	if !r.paces.request(req.URL.Path, sender) {
		hasten(w)
		r.slowDown(w, "")
		return
	}
	body := &incoming{room: r.room, sender: sender}
	defer body.release()
	switch status := body.read(w, req); status {
	case http.StatusOK:
	case http.StatusTooManyRequests:
		r.slowDown(w, "")
		return
	default:
		r.paces.failed(sender) // including senders whose body never arrives
		r.answer(w, "", resultTooLarge, status, "the body is larger than 1 MiB, compressed, or did not arrive")
		return
	}
	name, target, known := r.target(req)
	proof, proven := prove(target, known, req.Header, body.data, r.clock.Now())
	if !proven {
		r.paces.failed(sender)
		r.answer(w, "", resultRefused, http.StatusNotFound, "no such receiver, or not its secret")
		return
	}
	r.proven(w, req, delivery{name: name, target: target, proof: proof, source: sender.source, body: body})
}

// delivery is a request whose sender knows the secret.
type delivery struct {
	name   receiverName
	target Target
	proof  proof
	source string
	body   *incoming
}

func (r *Receiver) proven(w http.ResponseWriter, req *http.Request, d delivery) {
	label := d.name.String()
	if !r.paces.delivery(label) {
		r.slowDown(w, label)
		return
	}
	if d.proof.once != "" {
		switch ok, full := r.seen.first(label, d.proof.once, d.proof.until); {
		case full:
			r.slowDown(w, label)
			return
		case !ok:
			r.answer(w, label, resultReplayed, http.StatusConflict, "this signature was used before")
			return
		}
	}
	r.paces.proven(req.URL.Path, d.source)
	push, kind, err := read(d.target.Type, req.Header, d.body.data)
	d.body.release()
	switch {
	case err != nil:
		r.answer(w, label, resultInvalid, http.StatusBadRequest, "the body is not what a push looks like")
	case kind == ping:
		r.answer(w, label, resultPing, http.StatusOK, "pong")
	case kind == other || !follows(d.target.Ref, push.Ref):
		r.answer(w, label, resultIgnored, http.StatusAccepted, "nothing that this landscape follows")
	case d.target.Type == landscapev1alpha1.ReceiverHMAC && req.URL.Query().Get("follow") == "true":
		r.follow(w, req, d.name, push)
	default:
		r.log.V(1).Info("a push was told", "receiver", label, "ref", push.Ref, "commit", push.Commit)
		r.collapse.ask(d.name.key(), push)
		r.answer(w, label, resultRequested, http.StatusAccepted, "a sync was asked for")
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

var objectName = regexp.MustCompile(`^[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?$`)

// target returns the receiver of a path. It does not look up invalid names.
func (r *Receiver) target(req *http.Request) (receiverName, Target, bool) {
	path, ok := strings.CutPrefix(req.URL.Path, Prefix)
	parts := strings.Split(path, "/")
	if !ok || len(parts) != 3 || !objectName.MatchString(parts[0]) || !objectName.MatchString(parts[1]) || !objectName.MatchString(parts[2]) {
		return receiverName{}, Target{}, false
	}
	target, ok := r.requester.Receiver(req.Context(), parts[0], parts[1], parts[2])
	return receiverName{parts[0], parts[1], parts[2]}, target, ok && len(target.Token) > 0
}
