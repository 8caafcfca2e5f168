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
	// Skew is the maximum difference between the timestamp of a signed request and the receiver's
	// clock.
	Skew = 5 * time.Minute
)

// signingPrefix begins GitLab's signing tokens (Standard Webhooks).
const signingPrefix = "whsec_"

// Sign returns the headers X-Timestamp and X-Signature of a body, for receivers of type hmac and
// for Pergola's own webhooks.
func Sign(token, body []byte, at time.Time) (timestamp, signature string) {
	timestamp = strconv.FormatInt(at.Unix(), 10)
	return timestamp, "sha256=" + hex.EncodeToString(sum(token, []byte(timestamp+"."), body))
}

func sum(key []byte, parts ...[]byte) []byte {
	h := hmac.New(sha256.New, key)
	for _, part := range parts {
		h.Write(part)
	}
	return h.Sum(nil)
}

// proof is the result of a proven request: once, if set, must not be used again before until.
type proof struct {
	once  string
	until time.Time
}

// prove reports whether the sender knows the secret. It computes the same for each request, with or
// without such a receiver and for any headers, so that the duration reveals nothing.
func prove(target Target, known bool, header http.Header, body []byte, now time.Time) (proof, bool) {
	kind := target.Type
	token := target.Token
	if !known {
		kind, token = landscapev1alpha1.ReceiverHMAC, []byte("nobody knows this one")
	}
	var given, want []byte
	var p proof
	fresh := true
	switch kind {
	case landscapev1alpha1.ReceiverGitHub:
		given, want = hexOf(header.Get("X-Hub-Signature-256"), "sha256="), sum(token, body)
	case landscapev1alpha1.ReceiverGitea, landscapev1alpha1.ReceiverForgejo:
		signature := header.Get("X-Gitea-Signature")
		if own := header.Get("X-Forgejo-Signature"); own != "" {
			signature = own
		}
		given, want = hexOf(signature, ""), sum(token, body)
	case landscapev1alpha1.ReceiverGitLab:
		if key, ok := strings.CutPrefix(string(token), signingPrefix); ok {
			id, timestamp := header.Get("Webhook-Id"), header.Get("Webhook-Timestamp")
			secret, err := base64.StdEncoding.DecodeString(key)
			want = sum(secret, []byte(id+"."+timestamp+"."), body)
			given = standardSignature(header.Get("Webhook-Signature"), want)
			fresh = err == nil && len(secret) > 0 && near(timestamp, now)
			p = proof{once: id + "." + hex.EncodeToString(want), until: now.Add(2 * Skew)}
			break
		}
		// The token itself is sent. Comparing checksums of equal length takes constant time.
		given, want = sum([]byte("token"), []byte(header.Get("X-Gitlab-Token"))), sum([]byte("token"), token)
		_ = sum(token, body) // the same work as for the others
	case landscapev1alpha1.ReceiverHMAC:
		timestamp := header.Get(TimestampHeader)
		given, want = hexOf(header.Get(SignatureHeader), "sha256="), sum(token, []byte(timestamp+"."), body)
		fresh = near(timestamp, now)
		p = proof{once: hex.EncodeToString(want), until: now.Add(2 * Skew)}
	default:
		return proof{}, false
	}
	return p, hmac.Equal(given, want) && fresh && known
}

// hexOf decodes a signature; an invalid one is nil, which equals no signature.
func hexOf(text, prefix string) []byte {
	text, ok := strings.CutPrefix(text, prefix)
	out, err := hex.DecodeString(text)
	if !ok || err != nil || len(out) != sha256.Size {
		return nil
	}
	return out
}

// standardSignature searches the list of a Standard Webhooks header (v1,BASE64 v1,BASE64 …) for the
// wanted signature.
func standardSignature(list string, want []byte) []byte {
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

func near(timestamp string, now time.Time) bool {
	seconds, err := strconv.ParseInt(timestamp, 10, 64)
	return err == nil && len(timestamp) <= 12 && now.Sub(time.Unix(seconds, 0)).Abs() <= Skew
}
