// SPDX-License-Identifier: Apache-2.0

package render

import (
	"fmt"
	"io/fs"
	"net"
	"path"
	"reflect"
	"slices"
	"strings"

	"github.com/Masterminds/semver/v3"
	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/yaml"

	"github.com/pergola-dev/pergola/internal/suggest"
	"github.com/pergola-dev/pergola/internal/unknown"
	"github.com/pergola-dev/pergola/landscapes"
	"github.com/pergola-dev/pergola/schemas"
	"github.com/pergola-dev/pergola/schemas/fieldpath"
)

// RecordedFacts reads the facts file of a landscape: facts by owner, e.g. "garden local". The error
// has all faults with their positions.
func RecordedFacts(l *landscapes.Landscape) (map[string]Facts, error) {
	name := l.Config.Spec.Facts
	if name == "" {
		return nil, nil
	}
	raw, err := fs.ReadFile(l.FS, path.Join(l.Path, name))
	if err != nil {
		at := configPosition(l, "spec.facts")
		return nil, finding{Position: at, field: "spec.facts", kind: schemas.TypeInvalid, rule: ruleFacts, message: fmt.Sprintf("the file %q cannot be read", name)}
	}
	file, err := readYAMLFile(path.Clean(name), raw)
	if err != nil {
		return nil, withRule(err, ruleFacts)
	}
	if found := file.checkShape(reflect.TypeFor[map[string]Facts]()); len(found) > 0 {
		return nil, withRule(found.err(), ruleFacts)
	}
	var facts map[string]Facts
	if err := yaml.UnmarshalStrict(raw, &facts); err != nil {
		return nil, finding{Position: file.position(""), kind: schemas.TypeInvalid, rule: ruleFacts, message: firstLine(err.Error())}
	}
	return facts, withRule(checkFacts(file, facts, ownerNames(l)).err(), ruleFacts)
}

// checkFacts finds facts about unknown owners and objects.
func checkFacts(file yamlFile, facts map[string]Facts, owners []string) findings {
	var out findings
	report := func(path fieldpath.Path, kind schemas.ViolationType, format string, args ...any) {
		out = append(out, finding{Position: file.position(path.String()), field: path.String(), kind: kind, message: fmt.Sprintf(format, args...)})
	}
	roles := []string{ClusterRuntime, ClusterVirtual, ClusterSeed, ClusterShoot}
	for _, owner := range sortedKeys(facts) {
		at := fieldpath.Path{fieldpath.Key(owner)}
		if !slices.Contains(owners, owner) {
			hint := ""
			if guess := suggest.Closest(owner, owners); guess != "" {
				hint = fmt.Sprintf("; did you mean %q?", guess)
			} else if len(owners) > 0 {
				hint = ", which has " + strings.Join(owners[:min(8, len(owners))], ", ")
			}
			report(at, schemas.TypeNotSupported, "there is no %s in this landscape%s", owner, hint)
		}
		clusters := facts[owner].Clusters
		for _, role := range sortedKeys(clusters) {
			if !slices.Contains(roles, role) {
				report(at.Append("clusters", fieldpath.Key(role)), schemas.TypeNotSupported, "this is not a cluster role; the roles are %s", strings.Join(roles, ", "))
			}
			if version := clusters[role].KubernetesVersion; version != "" {
				if _, err := semver.NewVersion(version); err != nil {
					report(at.Append("clusters", fieldpath.Key(role), "kubernetesVersion"), schemas.TypeInvalid, "%q is not a Kubernetes version such as %s", version, DefaultKubernetesVersion)
				}
			}
		}
		kind, _, _ := strings.Cut(owner, " ")
		addresses := facts[owner].Addresses
		for _, name := range sortedKeys(addresses) {
			if known := knownAddresses[kind]; !slices.Contains(known, name) {
				report(at.Append("addresses", fieldpath.Key(name)), schemas.TypeNotSupported, "no component of a %s asks for this address%s", kind, unknown.Hint(name, known))
			} else if name != FactTerminalHost && !isAddress(addresses[name]) {
				report(at.Append("addresses", fieldpath.Key(name)), schemas.TypeInvalid, "%q is neither an IP address nor a host name", addresses[name])
			}
		}
		for _, key := range sortedKeys(facts[owner].Extensions) {
			if kind, name, _ := strings.Cut(key, "/"); !slices.Contains(extensionFacts, kind) || name == "" {
				report(at.Append("extensions", fieldpath.Key(key)), schemas.TypeNotSupported, "it must be a kind in small letters and a name, such as worker/NAME; kinds are %s", strings.Join(extensionFacts, ", "))
			}
		}
		for _, key := range sortedKeys(facts[owner].References) {
			if kind, name, _ := strings.Cut(key, "/"); kind != "ConfigMap" && kind != "Secret" || name == "" {
				report(at.Append("references", fieldpath.Key(key)), schemas.TypeNotSupported, "it must be a kind and a name: ConfigMap/NAME or Secret/NAME")
			}
		}
	}
	return out
}

// isAddress reports whether text is an IP address or a host name, not ending in a number.
func isAddress(text string) bool {
	if net.ParseIP(text) != nil {
		return true
	}
	last := text[strings.LastIndex(text, ".")+1:]
	return len(validation.IsDNS1123Subdomain(text)) == 0 && strings.Trim(last, "0123456789") != ""
}

// knownAddresses are the addresses that components use, by kind of owner.
var knownAddresses = map[string][]string{
	"garden": {"gardener-apiserver", FactTerminalHost, "virtual-garden-istio-ingress"},
	"shoot":  {"kube-apiserver"},
}

// extensionFacts are the lower-case kinds of extension objects whose status components use.
var extensionFacts = []string{"backupbucket", "controlplane", "infrastructure", "network", "operatingsystemconfig", "worker"}

// ownerNames are the names of all declared owners, bound or not.
func ownerNames(l *landscapes.Landscape) []string {
	var out []string
	for _, d := range l.Declarations {
		switch kind := d.GroupVersionKind().Kind; kind {
		case "Garden", "Seed", "Shoot":
			out = append(out, Owner{Kind: strings.ToLower(kind), Namespace: d.Namespace(), Name: d.Name()}.String())
		}
	}
	return out
}
