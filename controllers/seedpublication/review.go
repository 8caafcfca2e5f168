// SPDX-License-Identifier: Apache-2.0

package seedpublication

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/pergola-dev/pergola/controllers/permit"
)

// ReviewName is the ConfigMap with the reviewed deletions, in the namespace of a seed.
const ReviewName = "pergola-review"

const (
	// keyEntries is the list of entries, in JSON. keyNumber is the number of the last change;
	// keyComplete is the number of the last completely applied one. keyChange is the id of the last
	// change.
	keyEntries  = "seen"
	keyNumber   = "number"
	keyComplete = "complete"
	keyChange   = "change"
)

// ReadReview parses the ConfigMap; nil is an empty review. The review of an unreadable one is
// empty, too.
func ReadReview(configMap *unstructured.Unstructured) (*permit.SeedReview, error) {
	r := &permit.SeedReview{}
	if configMap == nil {
		return r, nil
	}
	data, _, err := unstructured.NestedStringMap(configMap.Object, "data")
	if err == nil {
		err = parseReview(r, data)
	}
	if err != nil {
		return &permit.SeedReview{}, &InvalidError{fmt.Sprintf("ConfigMap %s has no valid review: %v", ReviewName, err)}
	}
	return r, nil
}

func parseReview(r *permit.SeedReview, data map[string]string) (err error) {
	if r.Number, err = strconv.Atoi(data[keyNumber]); err != nil || r.Number < 0 {
		return fmt.Errorf("data.%s is not a number", keyNumber)
	}
	if r.CompleteNumber, err = strconv.Atoi(data[keyComplete]); err != nil || r.CompleteNumber < 0 || r.CompleteNumber > r.Number {
		return fmt.Errorf("data.%s is not a number up to %d", keyComplete, r.Number)
	}
	if err := json.Unmarshal([]byte(data[keyEntries]), &r.Entries); err != nil {
		return fmt.Errorf("data.%s: %w", keyEntries, err)
	}
	r.ChangeID = data[keyChange]
	return nil
}

// reviewConfigMap returns the ConfigMap of a review.
func reviewConfigMap(r *permit.SeedReview, seed string) (*unstructured.Unstructured, error) {
	lines := make([]string, 0, len(r.Entries))
	for _, s := range r.Entries {
		line, err := json.Marshal(s)
		if err != nil {
			return nil, fmt.Errorf("publishing the review: %w", err)
		}
		lines = append(lines, string(line))
	}
	o := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap", "data": map[string]any{
			keyEntries: "[" + strings.Join(lines, ",\n") + "]", keyNumber: strconv.Itoa(r.Number), keyComplete: strconv.Itoa(r.CompleteNumber), keyChange: r.ChangeID,
		},
	}}
	o.SetNamespace(SeedNamespace(seed))
	o.SetName(ReviewName)
	return o, nil
}
