// SPDX-License-Identifier: Apache-2.0

package render

import (
	"encoding/base64"
	"fmt"
	"regexp"
	"slices"
	"sort"
	"strings"

	"github.com/Masterminds/semver/v3"

	"github.com/pergola-dev/pergola/render/strict"
)

// Facts are the inputs of rendering that a landscape folder does not contain. They are typed and
// named, and never contain secret values.
type Facts struct {
	// Secrets are the current names in the cluster, by the name that a component requested.
	Secrets map[string]SecretFact `json:"secrets,omitempty"`
	// Clusters are by role (runtime, virtual, seed, shoot).
	Clusters map[string]ClusterFact `json:"clusters,omitempty"`
	// Addresses were discovered, e.g. of a load balancer or a Service.
	Addresses map[string]string `json:"addresses,omitempty"`
	// Extensions holds the status of extension objects by "<kind>/<name>" in lower case.
	Extensions map[string]map[string]any `json:"extensions,omitempty"`
	// References are the ConfigMaps and Secrets that the declaration refers to, by "<Kind>/<name>".
	References map[string]ReferenceFact `json:"references,omitempty"`
	// WildcardCertificate is for all names under the ingress domains of a Garden; it is nil if it
	// does not exist or is unknown.
	WildcardCertificate *WildcardCertificateFact `json:"wildcardCertificate,omitempty"`
	// Seeds are the Seeds of a virtual garden, by name; they are empty if it was not queried yet.
	Seeds []SeedFact `json:"seeds,omitempty"`
}

// SeedFact holds the facts of a Seed for the Garden's monitoring and dashboard.
type SeedFact struct {
	Name string `json:"name"`
	// IngressDomain is the ingress domain of the Seed; it is empty if it has none.
	IngressDomain string `json:"ingressDomain"`
	// Private means that the Seed is not reachable from outside (label
	// seed.gardener.cloud/network=private).
	Private bool `json:"private"`
	// Managed means that a ManagedSeed has its name.
	Managed bool `json:"managed"`
	// Monitored means that its gardenlet deploys an aggregate Prometheus for the Seed: upstream's
	// does, Pergola's does not.
	Monitored bool `json:"monitored"`
}

// WildcardCertificateFact holds the facts of a certificate of the user.
type WildcardCertificateFact struct {
	// Name is the name of its Secret.
	Name string `json:"name"`
	// Checksum is the checksum of its content.
	Checksum string `json:"checksum"`
	// CABundle is its ca.crt, if set: base64 of PEM.
	CABundle string `json:"caBundle,omitempty"`
}

// SecretFact is the public side of a generated secret.
type SecretFact struct {
	Name     string `json:"name"`
	Checksum string `json:"checksum"`
	// Bundle is the name of the bundle secret of a CA or key that rotates with overlap.
	Bundle string `json:"bundle"`
	// Predecessor is the name of its predecessor while that exists; it is empty if there is none.
	Predecessor string `json:"old,omitempty"`
	// CABundle is the PEM of the certificates of a CA, base64 encoded as in a webhook.
	CABundle string `json:"caBundle"`
	// PublicKey is the public key of an SSH key pair in authorized_keys form, base64 encoded; it is
	// empty for other kinds.
	PublicKey string `json:"publicKey,omitempty"`
}

// ClusterFact holds the facts that a cluster reports about itself.
type ClusterFact struct {
	KubernetesVersion string `json:"kubernetesVersion"`
	Identity          string `json:"identity,omitempty"`
}

// DefaultKubernetesVersion is assumed for a cluster without a recorded version: the newest version
// that upstream supports (garden-operator docs: 1.32-1.36).
const DefaultKubernetesVersion = "1.36.0"

// symbolicMark is part of every placeholder of an unknown fact. Names of objects cannot have upper
// case, so it never matches a real one.
const symbolicMark = strict.SymbolicMark

// symbolicCAWords begin the text for unknown certificates, in base64 if a component encodes it.
const symbolicCAWords = "symbolic CA bundle of "

func symbolicSecret(name string) SecretFact {
	return SecretFact{
		Name:     name + "-" + symbolicMark,
		Checksum: name + "-checksum-" + symbolicMark,
		Bundle:   name + "-bundle-" + symbolicMark,
		CABundle: base64.StdEncoding.EncodeToString([]byte(symbolicCAWords + name + " " + symbolicMark)),
	}
}

// secretFacts returns the facts of the requested secrets, symbolic if unknown.
func (f Facts) secretFacts(requested []string) map[string]SecretFact {
	out := make(map[string]SecretFact, len(requested))
	for _, name := range requested {
		symbolic := symbolicSecret(name)
		fact, ok := f.Secrets[name]
		if !ok {
			fact = symbolic
		}
		if fact.CABundle == "" {
			fact.CABundle = symbolic.CABundle
		}
		out[name] = fact
	}
	return out
}

// unresolvedIn lists the requested secrets whose symbolic value appears in text.
func unresolvedIn(text string, requested []string) []string {
	var missing []string
	for _, name := range requested {
		s := symbolicSecret(name)
		if hasSymbol(text, s.Name) || hasSymbol(text, s.Checksum) || hasSymbol(text, s.Bundle) || strings.Contains(text, s.CABundle) {
			missing = append(missing, "secret "+name)
		}
	}
	sort.Strings(missing)
	return missing
}

// searchText returns all strings of objects, a line each, to search for symbolic values. It is
// faster than YAML, and does not escape or fold.
func searchText(objects []Object) string {
	var out strings.Builder
	var walk func(any)
	walk = func(v any) {
		switch v := v.(type) {
		case string:
			out.WriteString(v)
			out.WriteByte('\n')
		case []any:
			for _, each := range v {
				walk(each)
			}
		case map[string]any:
			for key, each := range v {
				walk(key)
				walk(each)
			}
		}
	}
	for _, o := range objects {
		walk(o.Object)
	}
	return out.String()
}

// FactTerminalHost is the key in Addresses for the name of the Seed that runs the dashboard's
// terminals for the garden.
const FactTerminalHost = "terminal-host"

// symbolicAddressPattern is the placeholder for an unknown address, with the name of its fact:
// address-of-NAME-XXXXXXXX.
var symbolicAddressPattern = regexp.MustCompile("address-of-([a-z0-9.-]+)-" + symbolicMark)

// unresolvedAddresses lists the unknown addresses that text needs.
func unresolvedAddresses(text string) []string {
	var missing []string
	for _, match := range symbolicAddressPattern.FindAllStringSubmatch(text, -1) {
		missing = append(missing, "address "+match[1])
	}
	slices.Sort(missing)
	return slices.Compact(missing)
}

// symbolicWildcard is the placeholder for a missing wildcard certificate that a component requires.
const symbolicWildcard = "wildcard-certificate-" + symbolicMark

// unresolvedWildcard names the wildcard certificate if text needs it and it does not exist.
func unresolvedWildcard(text string) []string {
	if !hasSymbol(text, symbolicWildcard) {
		return nil
	}
	return []string{"wildcard certificate (a Secret of namespace garden with the label gardener.cloud/role=garden-cert)"}
}

// hasSymbol reports whether text has a symbolic value that is not just the end of a longer one.
func hasSymbol(text, value string) bool {
	for at := 0; ; {
		i := strings.Index(text[at:], value)
		if i < 0 {
			return false
		}
		at += i
		if at == 0 || !strings.ContainsRune("abcdefghijklmnopqrstuvwxyz0123456789-.", rune(text[at-1])) {
			return true
		}
		at += len(value)
	}
}

// kubernetesInput is a Kubernetes version for components. CUE cannot compare semantic versions, so
// the parts are numbers.
type kubernetesInput struct {
	Version string `json:"version"`
	Minor   int    `json:"minor"`
	Patch   int    `json:"patch"`
}

func parseKubernetesVersion(version string) (kubernetesInput, error) {
	if version == "" {
		version = DefaultKubernetesVersion
	}
	v, err := semver.NewVersion(version)
	if err != nil {
		return kubernetesInput{}, fmt.Errorf("version %q of Kubernetes: %w", version, err)
	}
	return kubernetesInput{Version: v.String(), Minor: int(v.Minor()), Patch: int(v.Patch())}, nil
}
