// SPDX-License-Identifier: Apache-2.0

package tokenrequestor

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/go-logr/logr"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	applycorev1 "k8s.io/client-go/applyconfigurations/core/v1"
	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// fieldManager owns the written fields of ServiceAccounts and Secrets.
const fieldManager = "token-requestor"

// IsRequested reports whether an object is a ServiceAccount that was created for a token.
func IsRequested(o *unstructured.Unstructured) bool {
	return o.GetKind() == "ServiceAccount" &&
		slices.ContainsFunc(o.GetManagedFields(), func(f metav1.ManagedFieldsEntry) bool { return f.Manager == fieldManager })
}

// Reasons of events.
const (
	// EventInvalid means that a Secret asks for something impossible.
	EventInvalid = "TokenRequestInvalid"
	// EventFailed means that a token could not be requested or written; it is retried.
	EventFailed = "TokenRequestFailed"
)

// reconcileTimeout bounds one run for a Secret; upstream's value.
const reconcileTimeout = 3 * time.Minute

// invalidError is an error that only a change of the Secret can fix.
type invalidError struct{ error }

func (e invalidError) Unwrap() error { return e.error }

// Reconcile renews the token of a Secret if necessary.
func (r *requestor) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	parent, logger := ctx, log.FromContext(ctx)
	ctx, cancel := context.WithTimeout(withoutLogger(ctx), reconcileTimeout)
	defer cancel()
	key := request.NamespacedName
	secret, err := r.source.CoreV1().Secrets(key.Namespace).Get(ctx, key.Name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) || err == nil && !r.options.selector().AsSelector().Matches(labels.Set(secret.Labels)) {
		r.forget(key)
		return reconcile.Result{}, nil
	}
	if err != nil {
		return reconcile.Result{}, fmt.Errorf("reading the Secret %s: %w", key, err)
	}
	after, err := r.renewIfDue(ctx, logger, secret)
	switch invalid := (invalidError{}); {
	case err == nil:
		return reconcile.Result{RequeueAfter: after}, nil
	case parent.Err() != nil:
		return reconcile.Result{}, parent.Err() // shutting down
	case apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err):
		// Someone wrote at the same time, for example the CA bundle of the kubeconfig.
		r.metrics.countRenewal(resultConflict)
		return reconcile.Result{RequeueAfter: minRetryPause}, nil
	case errors.As(err, &invalid):
		r.reportFailure(secret, EventInvalid, err)
		return reconcile.Result{}, reconcile.TerminalError(fmt.Errorf("the Secret %s: %w", key, err))
	default:
		r.reportFailure(secret, EventFailed, err)
		return reconcile.Result{}, fmt.Errorf("a token for the Secret %s: %w", key, err)
	}
}

// withoutLogger returns a context for requests: with a verbose logger, clients log what they send
// and receive.
func withoutLogger(ctx context.Context) context.Context { return logr.NewContext(ctx, logr.Discard()) }

func (r *requestor) reportFailure(secret *corev1.Secret, reason string, err error) {
	r.metrics.countRenewal(resultError)
	if r.options.Event != nil {
		r.options.Event(&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: secret.Namespace, Name: secret.Name, UID: secret.UID}}, reason, err.Error())
	}
}

func secretKey(s *corev1.Secret) types.NamespacedName {
	return types.NamespacedName{Namespace: s.Namespace, Name: s.Name}
}

// forget drops a Secret that was deleted or has other labels now.
func (r *requestor) forget(secret types.NamespacedName) {
	r.accounts.forget(secret)
	r.metrics.forget(secret)
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.renewedAt, secret)
}

// renewIfDue renews the token of a Secret if necessary and returns the time until the next check.
func (r *requestor) renewIfDue(ctx context.Context, logger logr.Logger, secret *corev1.Secret) (time.Duration, error) {
	o, err := parseTokenRequest(secret.Annotations, r.options.TargetNamespace)
	if err != nil {
		return 0, invalidError{err}
	}
	var bundle []byte
	if o.injectCA {
		if bundle, err = r.options.caBundle(); err != nil {
			return 0, err
		}
	}
	// place is the Secret with the token; cluster is its cluster.
	place, cluster := secret, r.source
	if o.target.Name != "" {
		cluster = r.target
		place, err = cluster.CoreV1().Secrets(o.target.Namespace).Get(ctx, o.target.Name, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			place, err = &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: o.target.Namespace, Name: o.target.Name}, Type: corev1.SecretTypeOpaque}, nil
		}
		if err != nil {
			return 0, fmt.Errorf("reading the Secret %s of the target cluster: %w", o.target, err)
		}
	}
	have, err := readTokenState(place.Data, bundle)
	if err != nil && place != secret {
		return 0, fmt.Errorf("the Secret %s of the target cluster: %w", o.target, err)
	}
	if err != nil {
		return 0, invalidError{err}
	}
	key := secretKey(secret)
	r.accounts.setAccount(key, o.account)
	r.mu.Lock()
	renewed := r.renewedAt[key]
	r.mu.Unlock()
	why, wait := renewalReason(have, secret.Annotations[AnnotationRenew], r.options.Clock.Now(), renewed)
	if c, ok := parseClaims(have.token); ok && why == "" {
		r.metrics.setExpiration(key, c.expires)
		if c.account != "" {
			same, err := r.accounts.hasUID(ctx, o.account, c.account)
			switch {
			case apierrors.IsNotFound(err):
				why = "the ServiceAccount no longer exists"
			case err != nil:
				return 0, fmt.Errorf("reading the ServiceAccount %s of the target cluster: %w", o.account, err)
			case !same:
				why = "the ServiceAccount was recreated"
			}
		}
	}
	if why == "" {
		return wait, nil
	}
	after, err := r.renew(ctx, secret, o, bundle, cluster, place)
	if err == nil {
		logger.Info("requested a token", "why", why, "serviceAccount", o.account.String(), "target", o.target.String(), "renewal", after.String())
	}
	return after, err
}

// renew requests a token, writes it and returns the time until its renewal.
func (r *requestor) renew(ctx context.Context, secret *corev1.Secret, o tokenRequest, bundle []byte, cluster kubernetes.Interface, place *corev1.Secret) (time.Duration, error) {
	token, expires, err := r.requestToken(ctx, o)
	if err != nil {
		return 0, err
	}
	now := r.options.Clock.Now()
	after := renewalDelay(tokenLifetime(token, expires, now), r.options.Jitter)
	data, err := dataWithToken(place.Data, token, bundle)
	if err != nil {
		return 0, err
	}
	annotations := map[string]string{AnnotationRenew: now.Add(after).UTC().Format(time.RFC3339)}
	if place != secret {
		// Write the target Secret first: if this process ends in between, it starts over.
		if err := writeSecret(ctx, cluster, place, data, nil); err != nil {
			return 0, fmt.Errorf("writing the token to the Secret %s of the target cluster: %w", o.target, err)
		}
		data = dataWithoutToken()
	}
	if err := writeSecret(ctx, r.source, secret, data, annotations); err != nil {
		return 0, fmt.Errorf("writing the token to the Secret: %w", err)
	}
	key := secretKey(secret)
	r.mu.Lock()
	r.renewedAt[key] = now
	r.mu.Unlock()
	r.metrics.countRenewal(resultSuccess)
	r.metrics.setExpiration(key, expires)
	return after, nil
}

// requestToken applies the ServiceAccount and returns a token with its expiry time.
func (r *requestor) requestToken(ctx context.Context, o tokenRequest) (string, time.Time, error) {
	accounts := r.target.CoreV1().ServiceAccounts(o.account.Namespace)
	account := applycorev1.ServiceAccount(o.account.Name, o.account.Namespace).WithLabels(o.labels).WithAutomountServiceAccountToken(false)
	if _, err := accounts.Apply(ctx, account, metav1.ApplyOptions{FieldManager: fieldManager, Force: true}); err != nil {
		return "", time.Time{}, fmt.Errorf("applying the ServiceAccount %s of the target cluster: %w", o.account, err)
	}
	seconds := int64(o.expiration / time.Second)
	answer, err := accounts.CreateToken(ctx, o.account.Name, &authenticationv1.TokenRequest{
		Spec: authenticationv1.TokenRequestSpec{Audiences: r.options.Audiences, ExpirationSeconds: &seconds},
	}, metav1.CreateOptions{})
	if err != nil {
		return "", time.Time{}, fmt.Errorf("requesting a token of the ServiceAccount %s of the target cluster: %w", o.account, err)
	}
	if answer.Status.Token == "" {
		return "", time.Time{}, fmt.Errorf("requesting a token of the ServiceAccount %s of the target cluster: the answer has no token", o.account)
	}
	return answer.Status.Token, answer.Status.ExpirationTimestamp.Time, nil
}

// writeSecret changes keys of a Secret, unless it changed since it was read; nil values are
// removed.
func writeSecret(ctx context.Context, cluster kubernetes.Interface, secret *corev1.Secret, data map[string][]byte, annotations map[string]string) error {
	secrets := cluster.CoreV1().Secrets(secret.Namespace)
	if secret.ResourceVersion == "" {
		created := secret.DeepCopy()
		created.Data = map[string][]byte{}
		for key, value := range data {
			if value != nil {
				created.Data[key] = value
			}
		}
		_, err := secrets.Create(ctx, created, metav1.CreateOptions{FieldManager: fieldManager})
		return err
	}
	metadata := map[string]any{"resourceVersion": secret.ResourceVersion}
	if len(annotations) > 0 {
		metadata["annotations"] = annotations
	}
	patch, err := json.Marshal(map[string]any{"metadata": metadata, "data": data})
	if err != nil {
		return fmt.Errorf("preparing the patch: %T", err) // the text may have parts of the content
	}
	_, err = secrets.Patch(ctx, secret.Name, types.MergePatchType, patch, metav1.PatchOptions{FieldManager: fieldManager})
	return err
}
