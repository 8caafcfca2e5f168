// SPDX-License-Identifier: Apache-2.0

package tokenrequestor

import (
	"encoding/base64"
	"encoding/json"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

const (
	// maxPlannedLifetime caps the lifetime of a token when its renewal is planned.
	maxPlannedLifetime = 24 * time.Hour
	// renewalJitter is the maximum delay of a renewal, as a fraction, so that renewals spread out.
	renewalJitter = 0.05
)

// tokenClaims are the content of a token. Its signature is not verified: claims only decide about
// renewals.
type tokenClaims struct {
	issued, expires time.Time
	// account is the UID of the ServiceAccount.
	account types.UID
}

// parseClaims parses a token, or false if it does not look like one of an API server.
func parseClaims(token string) (tokenClaims, bool) {
	parts := strings.Split(token, ".")
	if len(parts) != 3 {
		return tokenClaims{}, false
	}
	raw, err := base64.RawURLEncoding.DecodeString(parts[1])
	if err != nil {
		return tokenClaims{}, false
	}
	var body struct {
		Issued     int64 `json:"iat"`
		Expires    int64 `json:"exp"`
		Kubernetes struct {
			ServiceAccount struct {
				UID types.UID `json:"uid"`
			} `json:"serviceaccount"`
		} `json:"kubernetes.io"`
	}
	if json.Unmarshal(raw, &body) != nil || body.Issued == 0 || body.Expires <= body.Issued {
		return tokenClaims{}, false
	}
	return tokenClaims{issued: time.Unix(body.Issued, 0), expires: time.Unix(body.Expires, 0), account: body.Kubernetes.ServiceAccount.UID}, true
}

// tokenLifetime returns the validity of a token, by the API server's clock if possible: ours may be
// wrong.
func tokenLifetime(token string, expires, now time.Time) time.Duration {
	if c, ok := parseClaims(token); ok {
		return c.expires.Sub(c.issued)
	}
	return expires.Sub(now)
}

// renewalDelay returns when to renew a token: at 80 % of its lifetime (at most one day), up to 5 %
// later.
func renewalDelay(lifetime time.Duration, spread func(time.Duration, float64) time.Duration) time.Duration {
	return spread(min(lifetime, maxPlannedLifetime)*80/100, renewalJitter)
}

// tokenState is the token and bundle of a Secret.
type tokenState struct {
	// token may come from a kubeconfig.
	token string
	// bundleDiffers says that the requested CA bundle is missing or differs.
	bundleDiffers bool
}

// renewalReason returns why a new token is needed, or else the time left. renewed is when this
// process wrote the last token; it is zero if it did not.
func renewalReason(h tokenState, annotation string, now, renewed time.Time) (why string, wait time.Duration) {
	if h.token == "" {
		return "the Secret has no token", 0
	}
	if h.bundleDiffers {
		return "the CA bundle changed", 0
	}
	if annotation == "" {
		return "a renewal is requested", 0
	}
	at, err := time.Parse(time.RFC3339, annotation)
	if err != nil {
		return "the renewal time is invalid", 0
	}
	if wait = at.Sub(now); wait <= 0 {
		return "the renewal is due", 0
	}
	if wait > maxPlannedLifetime {
		return "the renewal time is more than a day ahead", 0
	}
	if c, ok := parseClaims(h.token); ok {
		// This is later than the annotation if all clocks are right. Our clock is wrong if it
		// happens again soon after a renewal.
		whole := c.expires.Sub(c.issued)
		latest := c.expires.Add(-whole / 10)
		if renewed.IsZero() || now.Sub(renewed) > whole/10 {
			if !latest.After(now) {
				return "the token is about to expire", 0
			}
			wait = min(wait, latest.Sub(now))
		}
	}
	return "", wait
}
