// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"encoding/base64"
	"fmt"
	"regexp"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

const (
	// maxDataBytes is the limit for all values of a ConfigMap or Secret together, in bytes
	// (k8s.io/api/core/v1 MaxSecretSize; ConfigMaps have the same).
	maxDataBytes = 1 << 20
	// maxStoredBytes is etcd's default for one request (--max-request-bytes), in bytes.
	maxStoredBytes = 3 << 19
)

// tooLargePattern matches errors of etcd and of the API server's client for it.
var tooLargePattern = regexp.MustCompile("request is too large|trying to send message larger than max")

// CheckSize returns an error, without a request, if a ConfigMap or Secret is too large for a
// cluster.
func (c *Cluster) CheckSize(o *unstructured.Unstructured) *ObjectError {
	size := 0
	switch groupKindOf(o) {
	case secretKind:
		size = encodedSize(o, "data") + plainSize(o, "stringData")
	case configMapKind:
		size = encodedSize(o, "binaryData") + plainSize(o, "data")
	}
	if size <= maxDataBytes {
		return nil
	}
	return &ObjectError{Cluster: c.name, Object: RefOf(o), Op: "apply", Reason: ReasonInvalid,
		Message: fmt.Sprintf("its values have %s, and a %s may have at most %s", formatBytes(size), o.GetKind(), formatBytes(maxDataBytes)),
		Hint:    "make it smaller, or split it into several objects"}
}

func plainSize(o *unstructured.Unstructured, field string) int {
	values, _ := o.Object[field].(map[string]any)
	n := 0
	for _, v := range values {
		text, _ := v.(string)
		n += len(text)
	}
	return n
}

func encodedSize(o *unstructured.Unstructured, field string) int {
	values, _ := o.Object[field].(map[string]any)
	n := 0
	for _, v := range values {
		text, _ := v.(string)
		n += base64.RawStdEncoding.DecodedLen(len(strings.TrimRight(text, "=\n")))
	}
	return n
}

func formatBytes(n int) string { return fmt.Sprintf("%.2f MiB (%d bytes)", float64(n)/(1<<20), n) }

// explainSize adds its size to the error of an object that the server or its storage finds too
// large.
func explainSize(e *ObjectError, o *unstructured.Unstructured) {
	if !apierrors.IsRequestEntityTooLargeError(e.Err) && !tooLargePattern.MatchString(e.Message) {
		return
	}
	body, err := encodeBody(o)
	if err != nil {
		return
	}
	e.Reason = ReasonInvalid
	e.Message = fmt.Sprintf("it has %s as JSON, and the storage of the API server accepts at most %s for an object with its managed fields", formatBytes(len(body)), formatBytes(maxStoredBytes))
	e.Hint = "make it smaller, or split it into several objects"
}
