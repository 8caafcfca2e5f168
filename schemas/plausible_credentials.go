// SPDX-License-Identifier: Apache-2.0

package schemas

import (
	"slices"
	"strings"

	"github.com/pergola-dev/pergola/internal/suggest"
)

// This file has the warnings about credentials; gorules_plausible.go lists them.

// credentialKeys lists the keys that extensions read from the credentials of their provider (docs
// of github.com/gardener/gardener-extension-provider-*).
var credentialKeys = map[string][]string{
	"alicloud": {"accessKeyID", "accessKeySecret"},
	"aws":      {"accessKeyID", "secretAccessKey"},
	"azure":    {"clientID", "clientSecret", "subscriptionID", "tenantID"},
	"gcp":      {"serviceaccount.json"},
}

// alertingKeys lists the keys of a Secret with the role alerting (docs/usage/monitoring of
// upstream).
var alertingKeys = []string{
	"auth_identity", "auth_password", "auth_type", "auth_username", "ca.crt", "from", "insecure_skip_verify", "password", "smarthost", "tls.crt", "tls.key", "to", "url", "username",
}

// SuggestCredentialKey returns the key of a provider's credentials that the given key most likely
// means, or "" if it has no known mistake.
func SuggestCredentialKey(provider, key string) string {
	return suggestKey(key, credentialKeys[provider])
}

func suggestKey(key string, known []string) string {
	if slices.Contains(known, key) {
		return ""
	}
	for _, other := range known {
		if strings.EqualFold(other, key) {
			return other
		}
	}
	return suggest.ClosestWithin(key, known, min(2, len(key)/3))
}

// Labels of Secrets that state their purpose.
const (
	providerLabel = "provider.shoot.gardener.cloud/"
	roleLabel     = "gardener.cloud/role"
)

// checkMisnamedCredentials reports keys of a provider's Secret that are nearly keys that its
// extension reads. It ignores other keys.
func checkMisnamedCredentials(in ruleInput) []finding {
	r := &findingCollector{}
	object := fieldValue{value: in.object}
	labels := object.lookup("metadata", "labels")
	for _, label := range labels.keys() {
		known := credentialKeys[strings.TrimPrefix(label, providerLabel)]
		if label == roleLabel && labels.entry(label).text() == "alerting" {
			known = alertingKeys
		} else if !strings.HasPrefix(label, providerLabel) {
			continue
		}
		for _, field := range []string{"data", "stringData"} {
			for _, key := range object.lookup(field).keys() {
				if meant := suggestKey(key, known); meant != "" {
					r.add(object.lookup(field).entry(key), TypeNotSupported, "the extension does not read a key of this name; did you mean %q?", meant)
				}
			}
		}
	}
	return r.findings
}

func checkBindingLabels(in ruleInput) []finding {
	r, object := &findingCollector{}, fieldValue{value: in.object}
	labels, typ := object.lookup("metadata", "labels"), object.lookup("provider", "type").text()
	for _, label := range labels.keys() {
		if of, is := strings.CutPrefix(label, providerLabel); is && typ != "" && of != typ {
			r.add(labels.entry(label), TypeInvalid, "the binding is for the provider %q", typ)
		}
	}
	return r.findings
}
