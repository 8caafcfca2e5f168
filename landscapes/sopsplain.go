// SPDX-License-Identifier: Apache-2.0

package landscapes

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/pergola-dev/pergola/schemas"
)

// reportCiphertext reports encrypted values in an object without the metadata to decrypt them.
func (l *loader) reportCiphertext(d *Declaration) {
	walkScalars(d.Object().Object, nil, func(path []string, at func() *positionTree, value any) {
		text, ok := value.(string)
		if !ok || !isEncrypted(text) {
			return
		}
		where := schemas.Position{File: d.File, Line: d.Line, Column: d.Column}
		if place := at(); place != nil {
			where = place.position
		}
		l.violations = append(l.violations, schemas.Violation{
			Severity: schemas.SeverityError, File: where.File, Line: where.Line, Column: where.Column,
			Kind: d.kind.Kind, Namespace: d.namespace, Name: d.name,
			Field: strings.Join(path, "."), Type: schemas.TypeInvalid, Rule: "landscape/sops",
			Message: "the value is encrypted, but the object has no SOPS metadata (sops:), so it cannot be decrypted; restore them, or encrypt the file with `sops --encrypt`",
		})
	}, d.content(useShared).origins[0].tree)
}

// walkScalars visits all plain values in the order of their names, with their path of names
// (without indices), and a function that finds their place.
func walkScalars(value any, path []string, visit func([]string, func() *positionTree, any), at func() *positionTree) {
	switch v := value.(type) {
	case map[string]any:
		for _, name := range sortedKeys(v) {
			walkScalars(v[name], append(path[:len(path):len(path)], name), visit, func() *positionTree { return at().child(name) })
		}
	case []any:
		for i := range v {
			walkScalars(v[i], path, visit, func() *positionTree { return at().child(i) })
		}
	default:
		if len(path) > 0 {
			visit(path, at, value)
		}
	}
}

// encryptionSelector returns a function that reports whether SOPS encrypts the value at a path of
// names. It is nil if the metadata select by comments, which objects do not have. Rules: sops.go,
// shouldBeEncrypted.
func encryptionSelector(metadata map[string]any) (func(path []string) bool, error) {
	text := func(name string) string {
		text, _ := metadata[name].(string)
		return text
	}
	expressions := map[string]*regexp.Regexp{}
	for _, name := range []string{"unencrypted_regex", "encrypted_regex"} {
		if text(name) == "" {
			continue
		}
		expression, err := regexp.Compile(text(name))
		if err != nil {
			return nil, fmt.Errorf("sops.%s is not a regular expression", name)
		}
		expressions[name] = expression
	}
	matches := func(path []string, name string) bool { return slices.ContainsFunc(path, expressions[name].MatchString) }
	ends := func(path []string, name string) bool {
		return slices.ContainsFunc(path, func(step string) bool { return strings.HasSuffix(step, text(name)) })
	}
	switch {
	case text("encrypted_comment_regex") != "" || text("unencrypted_comment_regex") != "":
		return nil, nil
	case expressions["encrypted_regex"] != nil:
		return func(path []string) bool { return matches(path, "encrypted_regex") }, nil
	case expressions["unencrypted_regex"] != nil:
		return func(path []string) bool { return !matches(path, "unencrypted_regex") }, nil
	case text("encrypted_suffix") != "":
		return func(path []string) bool { return ends(path, "encrypted_suffix") }, nil
	case text("unencrypted_suffix") != "":
		return func(path []string) bool { return !ends(path, "unencrypted_suffix") }, nil
	}
	return func([]string) bool { return true }, nil
}

// isSecretField reports whether a field of a Secret has its values.
func isSecretField(name string) bool { return name == "data" || name == "stringData" }
