// SPDX-License-Identifier: Apache-2.0

package render

import (
	"cmp"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/yaml"

	gardencorev1beta1 "github.com/pergola-dev/pergola/api/core/v1beta1"
	securityv1alpha1 "github.com/pergola-dev/pergola/api/security/v1alpha1"
	"github.com/pergola-dev/pergola/landscapes"
	"github.com/pergola-dev/pergola/schemas/crosscheck"
)

// ReferenceFact holds the facts of a ConfigMap or Secret that a declaration refers to.
type ReferenceFact struct {
	// Checksum is that of the content; another one restarts pods.
	Checksum string `json:"checksum"`
	// Data are the files of a ConfigMap that the control plane uses; never set for a Secret.
	Data map[string]string `json:"data,omitempty"`
	// Keys are the keys of a Secret, if they matter.
	Keys []string `json:"keys,omitempty"`
	// CABundle has the certificates in ca.crt of a Secret that acts as an authority: base64 of PEM,
	// without other content of the Secret.
	CABundle string `json:"caBundle,omitempty"`
}

// ReferenceKey names a fact of Facts.References.
func ReferenceKey(kind, name string) string { return kind + "/" + name }

// ReferenceFactOf returns the fact of an object that a declaration refers to.
func ReferenceFactOf(r crosscheck.ConfigReference, object *unstructured.Unstructured) (ReferenceFact, error) {
	content, err := contentOf(object)
	if err != nil {
		return ReferenceFact{}, fmt.Errorf("%s %s: %w", r.Kind, r.Name, err)
	}
	fact := ReferenceFact{Checksum: ChecksumOf(content)}
	if r.Kind == "ConfigMap" {
		for _, key := range r.MountedKeys() {
			if value, has := content[key]; has {
				if fact.Data == nil {
					fact.Data = map[string]string{}
				}
				fact.Data[key] = string(value)
			}
		}
	}
	if r.Kind == "Secret" && r.IsKeyDependent() {
		fact.Keys = sortedKeys(content)
	}
	if r.Kind == "Secret" && r.HasTrustedCertificates() {
		fact.CABundle = base64.StdEncoding.EncodeToString(certificatesIn(content["ca.crt"]))
	}
	return fact, nil
}

// certificatesIn drops PEM blocks that are not certificates, so that no private key is exposed.
func certificatesIn(text []byte) []byte {
	var out []byte
	for {
		var block *pem.Block
		if block, text = pem.Decode(text); block == nil {
			return out
		}
		if block.Type == "CERTIFICATE" {
			out = append(out, pem.EncodeToMemory(&pem.Block{Type: block.Type, Bytes: block.Bytes})...)
		}
	}
}

// contentOf returns the decoded values of a ConfigMap or Secret.
func contentOf(object *unstructured.Unstructured) (map[string][]byte, error) {
	out := map[string][]byte{}
	for _, field := range []string{"data", "binaryData", "stringData"} {
		values, _, err := unstructured.NestedStringMap(object.Object, field)
		if err != nil {
			return nil, fmt.Errorf("%s is not a map of text values", field)
		}
		for key, text := range values {
			value := []byte(text)
			if field == "binaryData" || field == "data" && object.GetKind() == "Secret" {
				if value, err = base64.StdEncoding.DecodeString(text); err != nil {
					return nil, fmt.Errorf("%s[%s] is not base64", field, key)
				}
			}
			out[key] = value
		}
	}
	return out, nil
}

// ChecksumOf returns a checksum of the content of a ConfigMap or Secret.
func ChecksumOf(content map[string][]byte) string {
	raw, _ := json.Marshal(content) // sorted by key; bytes always encode
	sum := sha256.Sum256(raw)
	return hex.EncodeToString(sum[:])
}

// encryptedFact represents a Secret that is encrypted in Git: its content is unknown, but changes
// are visible. It does not depend on the key, so that everyone renders the same.
func encryptedFact(r crosscheck.ConfigReference, sealed map[string]any) ReferenceFact {
	// The input was decoded from JSON or YAML.
	raw, _ := json.Marshal(map[string]any{"data": sealed["data"], "stringData": sealed["stringData"]})
	sum := sha256.Sum256(raw)
	return ReferenceFact{Checksum: strings.ToLower(r.Kind) + "-" + r.Name + "-" + hex.EncodeToString(sum[:4]) + "-" + symbolicMark}
}

func symbolicReference(r crosscheck.ConfigReference) ReferenceFact {
	return ReferenceFact{Checksum: strings.ToLower(r.Kind) + "-" + r.Name + "-checksum-" + symbolicMark}
}

// declarationKinds are the kinds of owners with references, by the folder of the catalogue.
var declarationKinds = map[string]string{"garden": "Garden", "shoot": "Shoot"}

// ControlPlaneReferences returns the ConfigMaps and Secrets in ReferenceNamespace that the control
// plane of the owner needs by name.
func (in Input) ControlPlaneReferences() []crosscheck.ConfigReference {
	kind, refers := declarationKinds[in.Owner.Kind]
	if !refers {
		return nil
	}
	return crosscheck.ControlPlaneReferences(kind, in.Objects[in.Owner.Kind])
}

// ReferenceNamespace is the namespace of the objects that the owner refers to: the namespace of a
// Shoot, or of a Garden's control plane.
func (in Input) ReferenceNamespace() string {
	return cmp.Or(in.Owner.Namespace, in.Owner.ControlPlaneNamespace)
}

// referenceFact returns the fact of the cluster, else of Git, else a symbolic one.
func (in Input) referenceFact(r crosscheck.ConfigReference) ReferenceFact {
	key := ReferenceKey(r.Kind, r.Name)
	if fact, known := in.Facts.References[key]; known {
		return fact
	}
	if fact, known := in.References[key]; known {
		return fact
	}
	return symbolicReference(r)
}

// referenceValues are the facts as components see them. They contain parsed configuration files,
// because users write YAML that CUE cannot read.
func (in Input) referenceValues() map[string]any {
	out := map[string]any{}
	for _, r := range in.ControlPlaneReferences() {
		fact := in.referenceFact(r)
		parsed := map[string]any{}
		for key, text := range fact.Data {
			var value map[string]any
			if raw, err := yaml.YAMLToJSON([]byte(text)); err == nil && utiljson.Unmarshal(raw, &value) == nil {
				parsed[key] = removeAllNulls(value)
			}
		}
		data := fact.Data
		if data == nil {
			data = map[string]string{}
		}
		out[ReferenceKey(r.Kind, r.Name)] = map[string]any{
			"checksum": fact.Checksum, "known": !isSymbolic(fact), "data": data, "parsed": parsed,
			"keys": append([]string{}, fact.Keys...), "caBundle": cmp.Or(fact.CABundle, base64.StdEncoding.EncodeToString([]byte("# "+fact.Checksum))),
		}
	}
	return out
}

// removeAllNulls removes nulls: Kubernetes treats them as absent, CUE as any value.
func removeAllNulls(value any) any {
	switch v := value.(type) {
	case map[string]any:
		for key, inner := range v {
			if inner == nil {
				delete(v, key)
			} else {
				v[key] = removeAllNulls(inner)
			}
		}
	case []any:
		for i := range v {
			v[i] = removeAllNulls(v[i])
		}
	}
	return value
}

func isSymbolic(fact ReferenceFact) bool { return strings.HasSuffix(fact.Checksum, symbolicMark) }

// unknownReferences are the owner's unknown references, by their placeholder.
func (in Input) unknownReferences() map[string]string {
	out := map[string]string{}
	for _, r := range in.ControlPlaneReferences() {
		if fact := in.referenceFact(r); isSymbolic(fact) {
			out[fact.Checksum] = r.Kind + " " + r.Name
		}
	}
	return out
}

// unresolvedReferences lists the references whose symbolic value appears in text.
func unresolvedReferences(text string, unknown map[string]string) []string {
	var out []string
	for symbol, name := range unknown {
		if hasSymbol(text, symbol) {
			out = append(out, name)
		}
	}
	slices.Sort(out)
	return out
}

// Credentials returns the binding, in ReferenceNamespace, that gives a Shoot its infrastructure
// account, or false if the owner has none.
func (in Input) Credentials() (crosscheck.ConfigReference, bool) {
	if in.Owner.Kind != "shoot" {
		return crosscheck.ConfigReference{}, false
	}
	return crosscheck.ShootBinding(in.Objects["shoot"])
}

// referenceDeclarations holds the declarations in Git that owners may refer to.
type referenceDeclarations map[declaredName]*landscapes.Declaration

type declaredName struct{ kind, namespace, name string }

func referenceDeclarationsIn(l *landscapes.Landscape) referenceDeclarations {
	out := referenceDeclarations{}
	for i := range l.Declarations {
		d := &l.Declarations[i]
		switch d.GroupVersionKind().GroupKind() {
		case schema.GroupKind{Kind: "ConfigMap"}, schema.GroupKind{Kind: "Secret"},
			schema.GroupKind{Group: securityv1alpha1.SchemeGroupVersion.Group, Kind: "CredentialsBinding"}, schema.GroupKind{Group: gardencorev1beta1.SchemeGroupVersion.Group, Kind: "SecretBinding"}:
			out[declaredName{d.GroupVersionKind().Kind, d.Namespace(), d.Name()}] = d
		}
	}
	return out
}

// addTo adds the references that Git declares to an input. Unreadable objects stay unknown:
// validation reports them.
func (all referenceDeclarations) addTo(in *Input) {
	namespace := in.ReferenceNamespace()
	for _, r := range in.ControlPlaneReferences() {
		d := all[declaredName{r.Kind, namespace, r.Name}]
		if d == nil {
			continue
		}
		if in.References == nil {
			in.References, in.DeclaredReferences = map[string]ReferenceFact{}, map[string]func() *unstructured.Unstructured{}
		}
		key := ReferenceKey(r.Kind, r.Name)
		if sealed := d.EncryptedContent(); sealed != nil {
			in.References[key] = encryptedFact(r, sealed)
		} else if fact, err := ReferenceFactOf(r, d.Object()); err == nil {
			in.References[key] = fact
		}
		if d.Secret != landscapes.SecretEncrypted {
			in.DeclaredReferences[key] = d.Copy
		}
	}
	if _, has := in.Credentials(); has {
		in.DeclaredCredentials = func(kind, namespace, name string) *unstructured.Unstructured {
			d := all[declaredName{kind, namespace, name}]
			if d == nil || d.Secret == landscapes.SecretEncrypted {
				return nil
			}
			return d.Copy()
		}
	}
}

// changedNamespaces returns the namespaces in which an object changed that owners may refer to.
func changedNamespaces(old, new referenceDeclarations) map[string]bool {
	out := map[string]bool{}
	for name, d := range old {
		if other := new[name]; other == nil || !d.HasSameContent(other) {
			out[name.namespace] = true
		}
	}
	for name := range new {
		if old[name] == nil {
			out[name.namespace] = true
		}
	}
	return out
}
