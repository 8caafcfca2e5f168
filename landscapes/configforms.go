// SPDX-License-Identifier: Apache-2.0

package landscapes

import (
	"regexp"
	"strings"

	"github.com/pergola-dev/pergola/schemas"
)

// patternPrefix precedes the pattern in a message of the schema.
const patternPrefix = "does not have the form "

// quotesHint is the schema's hint for a number instead of text. It does not help with a share.
const quotesHint = "; put it in quotes"

const fieldMaxShare = "spec.deletionGate.maxShare"

// indexPattern is the index of an item of a list.
var indexPattern = regexp.MustCompile(`\[\d+\]`)

// configForm describes the form of a Landscape field in words; the result is empty for fields
// without a pattern.
func configForm(field string) string {
	switch indexPattern.ReplaceAllString(field, "[*]") {
	case fieldMaxShare:
		return "is not a share from 0% to 100% in whole percents, such as 25%"
	case "spec.catalogue.version":
		return "is not a semantic version, such as 1.2.3 or 1.2.3-rc.1"
	case "spec.source.url":
		return "is not an address that begins with https://, http://, ssh://, file:// or oci://, such as https://git.example.org/landscapes.git"
	case "spec.source.ref.digest":
		return "is not a digest, such as sha256: with 64 digits and small letters a to f"
	case "spec.pin.revision":
		return "is not a whole commit id of 40 (or 64) digits and small letters a to f, such as 0a1b2c3d4e5f60718293a4b5c6d7e8f901234567, or a digest"
	case "spec.receivers[*].name":
		return "is not a name of small letters, digits and -, such as github"
	case "spec.notifications[*].url":
		return "is not an address that begins with https:// or http://, such as https://chat.example.org/hook"
	case "spec.source.ref.commit":
		return "is not a whole commit id of 40 (or 64) digits and small letters a to f, such as 0a1b2c3d4e5f60718293a4b5c6d7e8f901234567"
	}
	return ""
}

// DescribeForms replaces the pattern in findings about Landscape fields by a description.
func DescribeForms(violations []schemas.Violation) []schemas.Violation {
	for i := range violations {
		v := &violations[i]
		if v.Kind != configKind {
			continue
		}
		before, _, found := strings.Cut(v.Message, patternPrefix)
		if words := configForm(v.Field); found && words != "" {
			v.Message = before + words
		}
		if number, isNumber := strings.CutSuffix(v.Message, quotesHint); isNumber && v.Field == fieldMaxShare {
			v.Message = number + "; write it as a share, such as 25%"
		}
	}
	return violations
}
