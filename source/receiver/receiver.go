package receiver

import (
	"errors"
	"io"
	"net"
	"net/http"
	"net/netip"
	"regexp"
	"strings"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/utils/clock"

	landscapev1alpha1 "github.com/pergola-dev/pergola/api/landscape/v1alpha1"
)

// Prefix of the paths that a Receiver answers: Prefix + NAMESPACE/LANDSCAPE/NAME.
const Prefix = "/hooks/"

// Bounds of one request and of all together.
const (
	maxBody       = 1 << 20 // bytes
	maxConcurrent = 64      // bodies in memory
	maxStreams    = 256     // syncs that are followed
	quiet         = time.Second
	heartbeat     = 15 * time.Second
)

// Options of a Receiver.
type Options struct {
	Requester Requester
	Log       logr.Logger
	// Clock is the real one unless set.
	Clock clock.WithDelayedExecution
	// Proxies are the addresses of load balancers in front, whose X-Forwarded-For counts. Unset: none; then all that comes
	// through one is one source.
	Proxies []netip.Prefix
	// FollowFor is how long a sync is followed at most. Default: 1h.
	FollowFor time.Duration
}

// Receiver answers requests for a sync. It is a prometheus.Collector, too.
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
	bodies   chan struct{}
	streams  chan struct{}
}

// New makes a Receiver.
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
		bodies:   make(chan struct{}, maxConcurrent), streams: make(chan struct{}, maxStreams),
	}
}

// ServeHTTP answers a delivery. Who proves nothing gets the same answer for each path, whether there is a receiver or not.
func (r *Receiver) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	w.Header().Set("Cache-Control", "no-store")
	if req.Method != http.MethodPost {
		w.Header().Set("Allow", http.MethodPost)
		r.answer(w, "", resultInvalid, http.StatusMethodNotAllowed, "only POST is answered here")
		return
	}
	source := r.source(req)
	if !r.paces.request(req.URL.Path, source) {
		r.slowDown(w, "")
		return
	}
	if !r.place(req) {
		r.slowDown(w, "")
		return
	}
	held := true
	release := func() {
		if held {
			held = false
			<-r.bodies
		}
	}
	defer release()

	body, status := readBody(w, req)
	if status != http.StatusOK {
		r.answer(w, "", resultTooLarge, status, "the body is larger than 1 MiB, compressed, or did not arrive")
		return
	}
	name, target, known := r.target(req)
	proof, proven := prove(target, known, req.Header, body, r.clock.Now())
	if !proven {
		r.paces.failed(source)
		r.answer(w, "", resultRefused, http.StatusNotFound, "no such receiver, or not its secret")
		return
	}
	r.proven(w, req, delivery{name: name, target: target, proof: proof, body: body, release: release})
}

// place waits a moment for one of the places of bodies in memory.
func (r *Receiver) place(req *http.Request) bool {
	select {
	case r.bodies <- struct{}{}:
		return true
	default:
	}
	select {
	case r.bodies <- struct{}{}:
		return true
	case <-req.Context().Done():
	case <-r.clock.After(5 * time.Second):
	}
	return false
}

// delivery is a request whose sender knows the secret.
type delivery struct {
	name    receiverName
	target  Target
	proof   proof
	body    []byte
	release func()
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
	push, kind, err := read(d.target.Type, req.Header, d.body)
	d.release()
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

// receiverName is what a path names.
type receiverName struct{ namespace, landscape, name string }

func (n receiverName) String() string {
	if n == (receiverName{}) {
		return ""
	}
	return n.namespace + "/" + n.landscape + "/" + n.name
}

func (n receiverName) key() Key { return Key{Namespace: n.namespace, Name: n.landscape} }

var objectName = regexp.MustCompile(`^[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?$`)

// target finds the receiver of a path; what cannot be a name is not asked for.
func (r *Receiver) target(req *http.Request) (receiverName, Target, bool) {
	path, ok := strings.CutPrefix(req.URL.Path, Prefix)
	parts := strings.Split(path, "/")
	if !ok || len(parts) != 3 || !objectName.MatchString(parts[0]) || !objectName.MatchString(parts[1]) || !objectName.MatchString(parts[2]) {
		return receiverName{}, Target{}, false
	}
	target, ok := r.requester.Receiver(req.Context(), parts[0], parts[1], parts[2])
	return receiverName{parts[0], parts[1], parts[2]}, target, ok && len(target.Token) > 0
}

// readBody gives the body, or the status of the answer.
func readBody(w http.ResponseWriter, req *http.Request) ([]byte, int) {
	if encoding := req.Header.Get("Content-Encoding"); encoding != "" && encoding != "identity" {
		return nil, http.StatusUnsupportedMediaType
	}
	if req.ContentLength > maxBody {
		w.Header().Set("Connection", "close")
		return nil, http.StatusRequestEntityTooLarge
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, req.Body, maxBody))
	var large *http.MaxBytesError
	switch {
	case errors.As(err, &large):
		return nil, http.StatusRequestEntityTooLarge
	case err != nil:
		return nil, http.StatusBadRequest
	}
	return body, http.StatusOK
}

// source is who sent a request: an address, or a network of IPv6, of which everybody has one.
func (r *Receiver) source(req *http.Request) string {
	host, _, err := net.SplitHostPort(req.RemoteAddr)
	if err != nil {
		return req.RemoteAddr
	}
	addr, err := netip.ParseAddr(host)
	if err != nil {
		return host
	}
	forwarded := strings.Split(strings.Join(req.Header.Values("X-Forwarded-For"), ","), ",")
	for i := len(forwarded) - 1; i >= 0 && r.proxy(addr); i-- {
		before, err := netip.ParseAddr(strings.TrimSpace(forwarded[i]))
		if err != nil {
			break
		}
		addr = before
	}
	addr = addr.Unmap().WithZone("")
	if addr.Is6() {
		if network, err := addr.Prefix(64); err == nil {
			return network.String()
		}
	}
	return addr.String()
}

func (r *Receiver) proxy(addr netip.Addr) bool {
	for _, p := range r.proxies {
		if p.Contains(addr.Unmap()) {
			return true
		}
	}
	return false
}
