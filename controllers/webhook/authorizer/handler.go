// SPDX-License-Identifier: Apache-2.0

package authorizer

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"runtime/debug"
	"strings"

	"github.com/prometheus/client_golang/prometheus"
	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
)

const (
	// Path is the prefix of all paths.
	Path = "/webhooks/auth/"
	// PathSeed is the path of the authorizer for clients of a seed.
	PathSeed = Path + "seed"
	// PathShoot is the path of the authorizer for clients of a self-hosted Shoot.
	PathShoot = Path + "shoot"

	// maxRequest is the largest request in bytes: names, groups and selectors.
	maxRequest = 1 << 20
)

// Options configure a Handler.
type Options struct {
	// AllowUnselectedReads lets gardenlets and extensions read all Seeds, Shoots, backups,
	// bastions, installations and ManagedSeeds of the garden, as upstream does. Clients without
	// field or label selectors need it.
	AllowUnselectedReads bool
	// Log gets a line for each request that was not allowed. The default is none.
	Log *slog.Logger
	// Clock decides which certificates have expired; the default is the real one.
	Clock clock.PassiveClock
}

// Handler answers SubjectAccessReviews (authorization.k8s.io/v1).
type Handler struct {
	graph                 *graph
	unreadKinds           func() []string
	allowsUnselectedReads bool
	log                   *slog.Logger
	clock                 clock.PassiveClock
	metrics               *metrics
}

// New watches the virtual garden until ctx ends. It needs permission to list and watch Resources.
// Until all are listed once, Ready returns an error, and requests get status 503.
func New(ctx context.Context, garden *rest.Config, opts Options) (*Handler, error) {
	h := newHandler(opts)
	w, err := watchAll(ctx, garden, h.graph)
	if err != nil {
		return nil, err
	}
	h.unreadKinds = w.unreadKinds
	return h, nil
}

func newHandler(opts Options) *Handler {
	h := &Handler{graph: newGraph(), unreadKinds: func() []string { return nil }, allowsUnselectedReads: opts.AllowUnselectedReads, log: opts.Log, clock: opts.Clock}
	h.metrics = newMetrics(h.graph.size, h.Ready)
	if h.log == nil {
		h.log = slog.New(slog.DiscardHandler)
	}
	if h.clock == nil {
		h.clock = clock.RealClock{}
	}
	return h
}

// Ready returns an error that lists the resources that are not read yet.
func (h *Handler) Ready() error {
	if unread := h.unreadKinds(); len(unread) > 0 {
		return fmt.Errorf("the authorizers have not read the virtual garden yet: %s", strings.Join(unread, "; "))
	}
	return nil
}

// Metrics returns the metrics of the authorizers.
func (h *Handler) Metrics() prometheus.Gatherer { return h.metrics.registry }

// ServeHTTP answers POST /webhooks/auth/seed and POST /webhooks/auth/shoot.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	started := h.clock.Now()
	seen := observation{authorizer: strings.TrimPrefix(r.URL.Path, Path), result: "error"}
	answer := h.decideForSeed
	switch r.URL.Path {
	case PathSeed:
	case PathShoot:
		answer = h.decideForShoot
	default:
		http.Error(w, fmt.Sprintf("nothing is served at this path; use %s or %s", PathSeed, PathShoot), http.StatusNotFound)
		return
	}
	defer func() {
		if p := recover(); p != nil {
			h.log.Error("a request caused a panic", "authorizer", seen.authorizer, "panic", fmt.Sprintf("%T", p), "stack", string(debug.Stack()))
			http.Error(w, "the authorizer failed on this request: this is a fault of Pergola; see its log", http.StatusInternalServerError)
		}
		h.metrics.observe(seen, h.clock.Since(started))
	}()
	review, code, err := readReview(w, r)
	if err != nil {
		h.log.Warn("a request is malformed", "authorizer", seen.authorizer, "reason", err.Error())
		http.Error(w, err.Error(), code)
		return
	}
	// Without data, both verdicts could be wrong. There is no Retry-After, because the API server
	// would hold the request until its timeout.
	if err := h.Ready(); err != nil {
		http.Error(w, err.Error(), http.StatusServiceUnavailable)
		return
	}
	result, reason := answer(&review.Spec)
	seen.result = string(result)
	if result != allowed && reason != "" {
		h.log.Info("not allowed", "authorizer", seen.authorizer, "user", review.Spec.User, "verdict", string(result), "reason", reason)
	}
	review.Status = authorizationv1.SubjectAccessReviewStatus{Allowed: result == allowed, Denied: result == denied, Reason: reason}
	review.Spec = authorizationv1.SubjectAccessReviewSpec{} // the API server has it
	w.Header().Set("Content-Type", "application/json")
	if err := json.NewEncoder(w).Encode(review); err != nil {
		h.log.Warn("an answer could not be sent", "authorizer", seen.authorizer, "error", err.Error())
	}
}

func readReview(w http.ResponseWriter, r *http.Request) (*authorizationv1.SubjectAccessReview, int, error) {
	if r.Method != http.MethodPost {
		w.Header().Set("Allow", http.MethodPost)
		return nil, http.StatusMethodNotAllowed, errors.New("only POST is allowed")
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxRequest))
	if err != nil {
		if tooLarge := (*http.MaxBytesError)(nil); errors.As(err, &tooLarge) {
			return nil, http.StatusRequestEntityTooLarge, fmt.Errorf("the request has more than %d bytes", maxRequest)
		}
		return nil, http.StatusBadRequest, fmt.Errorf("reading the request: %w", err)
	}
	review := &authorizationv1.SubjectAccessReview{}
	if err := json.Unmarshal(body, review); err != nil {
		return nil, http.StatusBadRequest, fmt.Errorf("the request is not a SubjectAccessReview: %w", err)
	}
	if review.APIVersion != authorizationv1.SchemeGroupVersion.String() || review.Kind != "SubjectAccessReview" {
		return nil, http.StatusBadRequest, fmt.Errorf("the request is %s of %q; want SubjectAccessReview of %q", review.Kind, review.APIVersion, authorizationv1.SchemeGroupVersion)
	}
	return review, http.StatusOK, nil
}

// decideForSeed answers for clients of a seed.
func (h *Handler) decideForSeed(spec *authorizationv1.SubjectAccessReviewSpec) (verdict, string) {
	name, as, problem := requester{spec.User, spec.Groups}.seedRole()
	rules := seedRules
	if as == roleExtension {
		rules = seedExtensionRules
	}
	return h.decide(spec, seedOwner(name), as, problem, rules)
}

// decideForShoot answers for clients of a self-hosted Shoot.
func (h *Handler) decideForShoot(spec *authorizationv1.SubjectAccessReviewSpec) (verdict, string) {
	shoot, as, problem := requester{spec.User, spec.Groups}.shootRole()
	rules := shootRules
	switch as {
	case roleExtension:
		rules = shootExtensionRules
	case roleGardenadm:
		rules = gardenadmRules
	}
	return h.decide(spec, ownerKey(shoot), as, problem, rules)
}

func (h *Handler) decide(spec *authorizationv1.SubjectAccessReviewSpec, of ownerKey, as role, problem string, rules map[kind]rule) (verdict, string) {
	switch {
	case problem != "":
		return denied, problem
	case as == roleNone, spec.ResourceAttributes == nil:
		return noOpinion, ""
	}
	r := requestOf(spec.ResourceAttributes)
	return requestScope{of, as, h.graph, h.clock.Now()}.decide(rules, &r, h.allowsUnselectedReads)
}
