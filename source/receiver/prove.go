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

// Headers of a signed request, and how far its timestamp may be off.
const (
	SignatureHeader = "X-Signature"
	TimestampHeader = "X-Timestamp"
	// Skew is how far the timestamp of a signed request may be from the receiver's clock.
	Skew = 5 * time.Minute
)

// signingPrefix begins the signing tokens of GitLab (Standard Webhooks).
const signingPrefix = "whsec_"

// Sign gives the headers X-Timestamp and X-Signature of a body, for receivers of type hmac;
// webhooks of Pergola have them, too.
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

// proof is what a proven request leaves behind: once, if set, must not come again before until.
type proof struct {
	once  string
	until time.Time
}

// prove says whether the sender knows the secret. For each request the same is computed, whether
// there is such a receiver or not, and whatever headers there are, so that the time tells nothing.
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
		// The token itself is sent. Sums of both have one length, and comparing them takes one
		// time.
		given, want = sum([]byte("token"), []byte(header.Get("X-Gitlab-Token"))), sum([]byte("token"), token)
		_ = sum(token, body) // as much work as for the others
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

// hexOf reads a signature; what is none equals nothing.
func hexOf(text, prefix string) []byte {
	text, ok := strings.CutPrefix(text, prefix)
	out, err := hex.DecodeString(text)
	if !ok || err != nil || len(out) != sha256.Size {
		return nil
	}
	return out
}

// standardSignature looks through the list of a Standard Webhooks header (v1,BASE64 v1,BASE64 …)
// for the wanted one.
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
