// SPDX-License-Identifier: Apache-2.0

package receiver

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"net/http"
	"strconv"
	"strings"
	"time"

	landscapev1alpha1 "github.com/pergola-dev/pergola/api/landscape/v1alpha1"
)

// Headers of a signed request, and the tolerance for its timestamp.
const (
	SignatureHeader = "X-Signature"
	TimestampHeader = "X-Timestamp"
	// MaxClockSkew is the maximum difference between the timestamp of a signed request and the
	// receiver's clock.
	MaxClockSkew = 5 * time.Minute
)

// signingPrefix begins GitLab's signing tokens (Standard Webhooks).
const signingPrefix = "whsec_"

// Sign returns the headers X-Timestamp and X-Signature of a body, for receivers of type hmac and
// for Pergola's own webhooks.
func Sign(token, body []byte, at time.Time) (timestamp, signature string) {
	timestamp = strconv.FormatInt(at.Unix(), 10)
	return timestamp, "sha256=" + hex.EncodeToString(hmacSum(token, []byte(timestamp+"."), body))
}

func hmacSum(key []byte, parts ...[]byte) []byte {
	h := hmac.New(sha256.New, key)
	for _, part := range parts {
		h.Write(part)
	}
	return h.Sum(nil)
}

// proof is the result of a proven request: once, if set, must not be used again before until.
type proof struct {
	replayKey string
	until     time.Time
}

// verifyProof reports whether the sender knows the secret. It computes the same for each request,
// with or without such a receiver and for any headers, so that the duration reveals nothing.
func verifyProof(target Target, known bool, header http.Header, body []byte, now time.Time) (proof, bool) {
	kind := target.Type
	token := target.Token
	if !known {
		kind, token = landscapev1alpha1.ReceiverHMAC, []byte("no sender knows this one")
	}
	var given, want []byte
	var p proof
	fresh := true
	switch kind {
	case landscapev1alpha1.ReceiverGitHub:
		given, want = decodeSignature(header.Get("X-Hub-Signature-256"), "sha256="), hmacSum(token, body)
	case landscapev1alpha1.ReceiverGitea, landscapev1alpha1.ReceiverForgejo:
		signature := header.Get("X-Gitea-Signature")
		if own := header.Get("X-Forgejo-Signature"); own != "" {
			signature = own
		}
		given, want = decodeSignature(signature, ""), hmacSum(token, body)
	case landscapev1alpha1.ReceiverGitLab:
		if key, ok := strings.CutPrefix(string(token), signingPrefix); ok {
			id, timestamp := header.Get("Webhook-Id"), header.Get("Webhook-Timestamp")
			secret, err := base64.StdEncoding.DecodeString(key)
			want = hmacSum(secret, []byte(id+"."+timestamp+"."), body)
			given = findStandardSignature(header.Get("Webhook-Signature"), want)
			fresh = err == nil && len(secret) > 0 && isFresh(timestamp, now)
			p = proof{replayKey: id + "." + hex.EncodeToString(want), until: now.Add(2 * MaxClockSkew)}
			break
		}
		// The token itself is sent. Comparing checksums of equal length takes constant time.
		given, want = hmacSum([]byte("token"), []byte(header.Get("X-Gitlab-Token"))), hmacSum([]byte("token"), token)
		_ = hmacSum(token, body) // the same work as for the others
	case landscapev1alpha1.ReceiverHMAC:
		timestamp := header.Get(TimestampHeader)
		given, want = decodeSignature(header.Get(SignatureHeader), "sha256="), hmacSum(token, []byte(timestamp+"."), body)
		fresh = isFresh(timestamp, now)
		p = proof{replayKey: hex.EncodeToString(want), until: now.Add(2 * MaxClockSkew)}
	default:
		return proof{}, false
	}
	return p, hmac.Equal(given, want) && fresh && known
}

// decodeSignature decodes a signature; an invalid one is nil, which equals no signature.
func decodeSignature(text, prefix string) []byte {
	text, ok := strings.CutPrefix(text, prefix)
	out, err := hex.DecodeString(text)
	if !ok || err != nil || len(out) != sha256.Size {
		return nil
	}
	return out
}

// findStandardSignature searches the list of a Standard Webhooks header (v1,BASE64 v1,BASE64 …) for
// the wanted signature.
func findStandardSignature(list string, want []byte) []byte {
	for i, one := range strings.Fields(list) {
		text, ok := strings.CutPrefix(one, "v1,")
		given, err := base64.StdEncoding.DecodeString(text)
		if i == 8 {
			break
		}
		if ok && err == nil && hmac.Equal(given, want) {
			return given
		}
	}
	return nil
}

func isFresh(timestamp string, now time.Time) bool {
	seconds, err := strconv.ParseInt(timestamp, 10, 64)
	return err == nil && len(timestamp) <= 12 && now.Sub(time.Unix(seconds, 0)).Abs() <= MaxClockSkew
}
