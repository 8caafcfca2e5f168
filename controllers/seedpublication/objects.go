// SPDX-License-Identifier: Apache-2.0

package seedpublication

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	landscapev1alpha1 "github.com/pergola-dev/pergola/api/landscape/v1alpha1"
	"github.com/pergola-dev/pergola/internal/filearchive"
)

const (
	// NamespacePrefix starts the name of a seed's namespace in the virtual garden (gardener:
	// seed-<name>).
	NamespacePrefix = "seed-"
	// PointerName is the ConfigMap that names the current publication.
	PointerName = "pergola-publication"
	// LabelPart marks the Secrets with parts; its value is the digest they belong to.
	LabelPart = "landscape.pergola.dev/publication"
	// AnnotationRevision is the revision that last changed an object.
	AnnotationRevision = "landscape.pergola.dev/revision"
)

// Keys of the pointer and the parts.
const (
	keyRevision       = "revision"
	keyCatalogue      = "catalogue"
	keyFolder         = "folder"
	keyDigest         = "digest"
	keyParts          = "parts"
	keyPublishedAt    = "since"
	keyPreviousDigest = "former"
	keyReview         = "review"
	keyData           = "data"
)

// partSize limits a Secret below 1 MiB, the maximum of etcd and API servers.
const partSize = 700 << 10

// SeedNamespace returns the namespace of a seed in the virtual garden.
func SeedNamespace(seed string) string { return NamespacePrefix + seed }

// Publication is a Content with its parts.
type Publication struct {
	Content
	// Revision is the revision that last changed the content.
	Revision string
	// Digest is the digest of catalogue, folder and files: SHA-256 in hexadecimal.
	Digest string
	// PublishedAt is the time of publication.
	PublishedAt time.Time
	// PreviousDigest is the digest of the previous publication; it is empty for the first.
	PreviousDigest string

	parts [][]byte
}

// New returns a publication of a content.
func New(c *Content, revision string) (*Publication, error) {
	data, err := filearchive.Pack(c.Files)
	if err != nil {
		return nil, err
	}
	p := &Publication{Content: *c, Revision: revision, Digest: digestOf(c.Catalogue, c.Folder, data)}
	for len(data) > partSize {
		p.parts, data = append(p.parts, data[:partSize]), data[partSize:]
	}
	p.parts = append(p.parts, data)
	return p, nil
}

func digestOf(catalogue, folder string, data []byte) string {
	sum := sha256.New()
	fmt.Fprintf(sum, "%s\n%s\n", strconv.Quote(catalogue), strconv.Quote(folder))
	sum.Write(data)
	return hex.EncodeToString(sum.Sum(nil))
}

// shortDigest returns a prefix that fits into names and labels.
func shortDigest(digest string) string { return digest[:min(len(digest), 16)] }

func partName(digest string, index int) string {
	return fmt.Sprintf("%s-%s-%d", PointerName, shortDigest(digest), index)
}

// Parts returns the Secrets with the content.
func (p *Publication) Parts(seed string) []*unstructured.Unstructured {
	var out []*unstructured.Unstructured
	for i, part := range p.parts {
		o := &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "v1", "kind": "Secret", "type": "Opaque", "immutable": true,
			"data": map[string]any{keyData: base64.StdEncoding.EncodeToString(part)},
		}}
		o.SetNamespace(SeedNamespace(seed))
		o.SetName(partName(p.Digest, i))
		o.SetLabels(map[string]string{LabelPart: shortDigest(p.Digest)})
		out = append(out, o)
	}
	return out
}

// Pointer returns the ConfigMap that makes the publication current.
func (p *Publication) Pointer(seed string) *unstructured.Unstructured {
	o := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap",
		"data": map[string]any{
			keyRevision: p.Revision, keyCatalogue: p.Catalogue, keyFolder: p.Folder, keyDigest: p.Digest,
			keyParts: strconv.Itoa(len(p.parts)), keyPublishedAt: p.PublishedAt.UTC().Format(time.RFC3339), keyPreviousDigest: p.PreviousDigest,
		},
	}}
	if p.Review != "" {
		o.Object["data"].(map[string]any)[keyReview] = string(p.Review)
	}
	o.SetNamespace(SeedNamespace(seed))
	o.SetName(PointerName)
	o.SetLabels(map[string]string{LabelPart: shortDigest(p.Digest)})
	o.SetAnnotations(map[string]string{AnnotationRevision: p.Revision})
	return o
}

// parsePointer parses a pointer.
func parsePointer(pointer *unstructured.Unstructured) (p Publication, parts int, err error) {
	data, _, err := unstructured.NestedStringMap(pointer.Object, "data")
	if err != nil {
		return p, 0, err
	}
	p = Publication{
		Content:  Content{Catalogue: data[keyCatalogue], Folder: data[keyFolder], Review: landscapev1alpha1.ReviewMode(data[keyReview])},
		Revision: data[keyRevision], Digest: data[keyDigest], PreviousDigest: data[keyPreviousDigest],
	}
	if len(p.Digest) != 2*sha256.Size || strings.Trim(p.Digest, "0123456789abcdef") != "" {
		return p, 0, fmt.Errorf("%s is not a digest", keyDigest)
	}
	if p.PublishedAt, err = time.Parse(time.RFC3339, data[keyPublishedAt]); err != nil {
		return p, 0, fmt.Errorf("%s is not a time", keyPublishedAt)
	}
	parts, err = strconv.Atoi(data[keyParts])
	if most := MaxSize*2/partSize + 1; err != nil || parts < 1 || parts > most {
		return p, 0, fmt.Errorf("%s is not a number from 1 to %d", keyParts, most)
	}
	return p, parts, nil
}
