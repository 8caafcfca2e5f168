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

// Facts are what rendering needs to know about the world and a landscape folder
// does not say. They are typed and named; secret values are never among them.
type Facts struct {
	// Secrets by the name a component requested: the current name in the cluster.
	Secrets map[string]SecretFact `json:"secrets,omitempty"`
	// Clusters by role (runtime, virtual, seed, shoot).
	Clusters map[string]ClusterFact `json:"clusters,omitempty"`
	// Addresses that were discovered, e.g. of a load balancer or a Service.
	Addresses map[string]string `json:"addresses,omitempty"`
	// Extensions holds the status of extension objects by "<kind>/<name>" in lower case.
	Extensions map[string]map[string]any `json:"extensions,omitempty"`
	// References are the ConfigMaps and Secrets that the declaration refers to, by "<Kind>/<name>".
	References map[string]ReferenceFact `json:"references,omitempty"`
	// WildcardCertificate is that for all names under the ingress domains of a Garden; nil where
	// there is none, or none is known.
	WildcardCertificate *WildcardCertificateFact `json:"wildcardCertificate,omitempty"`
	// Seeds are those of a virtual garden, by name; none where it was not asked yet.
	Seeds []SeedFact `json:"seeds,omitempty"`
}

// SeedFact is what the Garden's monitoring and dashboard know of a Seed.
type SeedFact struct {
	Name string `json:"name"`
	// IngressDomain of the Seed; empty where it has none.
	IngressDomain string `json:"ingressDomain"`
	// Private says that it cannot be reached from outside (label
	// seed.gardener.cloud/network=private).
	Private bool `json:"private"`
	// Managed says that there is a ManagedSeed of its name.
	Managed bool `json:"managed"`
	// Monitored says that its gardenlet deploys a Prometheus that sums up what is to be known of
	// the Seed: upstream's does, and Pergola does not.
	Monitored bool `json:"monitored"`
}

// WildcardCertificateFact is what is known of a certificate of the user.
type WildcardCertificateFact struct {
	// Name of its Secret.
	Name string `json:"name"`
	// Checksum of the content.
	Checksum string `json:"checksum"`
	// CABundle is its ca.crt, where it has one: base64 of PEM.
	CABundle string `json:"caBundle,omitempty"`
}

// SecretFact is the public side of a generated secret.
type SecretFact struct {
	Name     string `json:"name"`
	Checksum string `json:"checksum"`
	// Bundle is the name of the bundle secret of a CA or key that rotates with overlap.
	Bundle string `json:"bundle"`
	// Old is the name of the one that it has replaced, while that is kept; empty where there is
	// none.
	Old string `json:"old,omitempty"`
	// CABundle is the PEM of the certificates of a CA, base64 encoded as in a webhook.
	CABundle string `json:"caBundle"`
	// PublicKey of an SSH key pair in authorized_keys form, base64 encoded; empty for other kinds.
	PublicKey string `json:"publicKey,omitempty"`
}

// ClusterFact is what a cluster tells about itself.
type ClusterFact struct {
	KubernetesVersion string `json:"kubernetesVersion"`
	Identity          string `json:"identity,omitempty"`
}

// DefaultKubernetesVersion is assumed for a cluster whose version is not
// recorded: the newest one supported by upstream (garden-operator docs: 1.32-1.36).
const DefaultKubernetesVersion = "1.36.0"

// symbolicMark is part of every value that stands for an unknown fact. Upper
// case is not allowed in names of objects, so it never meets a real one.
const symbolicMark = strict.SymbolicMark

// symbolicCAWords begin the text that stands for unknown certificates, in base64 where a component
// puts it.
const symbolicCAWords = "symbolic CA bundle of "

func symbolicSecret(name string) SecretFact {
	return SecretFact{
		Name:     name + "-" + symbolicMark,
		Checksum: name + "-checksum-" + symbolicMark,
		Bundle:   name + "-bundle-" + symbolicMark,
		CABundle: base64.StdEncoding.EncodeToString([]byte(symbolicCAWords + name + " " + symbolicMark)),
	}
}

// secretFacts gives the facts of the requested secrets, symbolic where unknown.
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

// unresolvedIn lists the requested secrets of which a symbolic value appears in text.
func unresolvedIn(text string, requested []string) []string {
	var missing []string
	for _, name := range requested {
		s := symbolicSecret(name)
		if mentions(text, s.Name) || mentions(text, s.Checksum) || mentions(text, s.Bundle) || strings.Contains(text, s.CABundle) {
			missing = append(missing, "secret "+name)
		}
	}
	sort.Strings(missing)
	return missing
}

// textOf is everything in objects that may hold a symbolic value, a line for each: that is quicker
// than to write them as YAML, and nothing is escaped or folded.
func textOf(objects []Object) string {
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

// FactTerminalHost is the name of the seed, beside the addresses, in which the dashboard's
// terminals for the garden run.
const FactTerminalHost = "terminal-host"

// symbolicAddress is what a component writes in the place of an address that is not known, with the
// name of its fact: address-of-NAME-XXXXXXXX.
var symbolicAddress = regexp.MustCompile("address-of-([a-z0-9.-]+)-" + symbolicMark)

// unresolvedAddresses lists the addresses that text needs and that are not known.
func unresolvedAddresses(text string) []string {
	var missing []string
	for _, match := range symbolicAddress.FindAllStringSubmatch(text, -1) {
		missing = append(missing, "address "+match[1])
	}
	slices.Sort(missing)
	return slices.Compact(missing)
}

// symbolicWildcard is what components write in the place of a wildcard certificate that they cannot
// do without.
const symbolicWildcard = "wildcard-certificate-" + symbolicMark

// unresolvedWildcard says that text needs a wildcard certificate where there is none.
func unresolvedWildcard(text string) []string {
	if !mentions(text, symbolicWildcard) {
		return nil
	}
	return []string{"wildcard certificate (a Secret of namespace garden with the label gardener.cloud/role=garden-cert)"}
}

// mentions finds a symbolic value that is not merely the end of a longer one.
func mentions(text, value string) bool {
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

// kubernetesInput is what components see of a Kubernetes version: CUE has no
// comparison of semantic versions, so the parts are given as numbers.
type kubernetesInput struct {
	Version string `json:"version"`
	Minor   int    `json:"minor"`
	Patch   int    `json:"patch"`
}

func kubernetesVersion(version string) (kubernetesInput, error) {
	if version == "" {
		version = DefaultKubernetesVersion
	}
	v, err := semver.NewVersion(version)
	if err != nil {
		return kubernetesInput{}, fmt.Errorf("version %q of Kubernetes: %w", version, err)
	}
	return kubernetesInput{Version: v.String(), Minor: int(v.Minor()), Patch: int(v.Patch())}, nil
}
