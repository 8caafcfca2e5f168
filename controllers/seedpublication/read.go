// SPDX-License-Identifier: Apache-2.0

package seedpublication

import (
	"encoding/base64"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/pergola-dev/pergola/internal/filearchive"
)

// IncompleteError means that a part is missing. It may appear later, so a retry helps.
type IncompleteError struct{ Part string }

func (e *IncompleteError) Error() string { return "part " + e.Part + " is missing" }

// InvalidError is why a publication cannot be used.
type InvalidError struct{ Reason string }

func (e *InvalidError) Error() string { return e.Reason }

// Read assembles a publication. part returns a Secret of the same namespace by name, or nil if it
// does not exist. The error is an *IncompleteError or an *InvalidError.
func Read(pointer *unstructured.Unstructured, part func(name string) *unstructured.Unstructured) (*Publication, error) {
	p, parts, err := parsePointer(pointer)
	if err != nil {
		return nil, &InvalidError{"ConfigMap " + PointerName + ": " + err.Error()}
	}
	var all []byte
	for i := range parts {
		name := partName(p.Digest, i)
		secret := part(name)
		if secret == nil {
			return nil, &IncompleteError{Part: "Secret " + qualifiedName(pointer, name)}
		}
		text, _, _ := unstructured.NestedString(secret.Object, "data", keyData)
		data, err := base64.StdEncoding.DecodeString(text)
		if err != nil || len(data) == 0 || len(data) > partSize {
			return nil, &InvalidError{fmt.Sprintf("Secret %s is not a part of a publication", qualifiedName(pointer, name))}
		}
		all, p.parts = append(all, data...), append(p.parts, data)
	}
	if digestOf(p.Catalogue, p.Folder, all) != p.Digest {
		return nil, &InvalidError{fmt.Sprintf("the parts do not match the digest %s of ConfigMap %s", shortDigest(p.Digest), PointerName)}
	}
	if p.Files, err = filearchive.Unpack(all, MaxFiles); err != nil {
		return nil, &InvalidError{"the files cannot be read: " + err.Error()}
	}
	if err := p.checkLimits(); err != nil {
		return nil, &InvalidError{err.Error()}
	}
	return &p, nil
}

func qualifiedName(pointer *unstructured.Unstructured, name string) string {
	return pointer.GetNamespace() + "/" + name
}
