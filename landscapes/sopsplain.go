package landscapes

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/pergola-dev/pergola/schemas"
)

// reportPlainValues reports every value of an encrypted file that should be encrypted and is not: somebody added it
// without `sops`, and everyone can read it. This needs no key.
func (l *loader) reportPlainValues(name string, c content) bool {
	metadata, _ := c.object[sopsField].(map[string]any)
	wanted, err := selectionOf(metadata)
	if err != nil {
		l.report(name, c.line, c.column, "landscape/sops", schemas.TypeInvalid, "%s", err)
		return true
	}
	found := false
	walkTexts(c.object, nil, func(path []string, at func() *place, value any) {
		if value == "" || value == nil || path[0] == sopsField || !wanted(path) {
			return
		}
		if text, ok := value.(string); ok && isEncrypted(text) {
			return
		}
		found = true
		line, column := c.line, c.column
		if place := at(); place != nil {
			line, column = place.position.Line, place.position.Column
		}
		l.report(name, line, column, "landscape/sops", schemas.TypeForbidden,
			"%s is not encrypted, though the SOPS metadata say it has to be: edit the file with `sops FILE`, and renew the value", strings.Join(path, "."))
	}, c.tree)
	return found
}

// reportCiphertext reports encrypted values in an object without the metadata to decrypt them.
func (l *loader) reportCiphertext(d *Declaration) {
	walkTexts(d.Object().Object, nil, func(path []string, at func() *place, value any) {
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
			Message: "the value is encrypted, but the object has no SOPS metadata (sops:), so nobody can decrypt it; restore them, or encrypt the file again with `sops --encrypt`",
		})
	}, d.content(toRead).origins[0].tree)
}

// walkTexts visits all plain values in the order of their names, with the names that lead there (indices have none),
// and a function that finds their place.
func walkTexts(value any, path []string, visit func([]string, func() *place, any), at func() *place) {
	switch v := value.(type) {
	case map[string]any:
		for _, name := range sortedKeys(v) {
			walkTexts(v[name], append(path[:len(path):len(path)], name), visit, func() *place { return at().child(name) })
		}
	case []any:
		for i := range v {
			walkTexts(v[i], path, visit, func() *place { return at().child(i) })
		}
	default:
		if len(path) > 0 {
			visit(path, at, value)
		}
	}
}

// selectionOf gives what SOPS encrypts by the metadata of a file, by the names that lead to a value. Where the metadata
// select by comments, which are not part of an object, or not at all, it is what a Secret has to hide. Rules of SOPS:
// sops.go, shouldBeEncrypted.
func selectionOf(metadata map[string]any) (func(path []string) bool, error) {
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
		return func([]string) bool { return false }, nil
	case expressions["encrypted_regex"] != nil:
		return func(path []string) bool { return matches(path, "encrypted_regex") }, nil
	case expressions["unencrypted_regex"] != nil:
		return func(path []string) bool { return !matches(path, "unencrypted_regex") }, nil
	case text("encrypted_suffix") != "":
		return func(path []string) bool { return ends(path, "encrypted_suffix") }, nil
	case text("unencrypted_suffix") != "":
		return func(path []string) bool { return isSecretField(path[0]) && !ends(path, "unencrypted_suffix") }, nil
	}
	return func(path []string) bool { return isSecretField(path[0]) }, nil
}

// isSecretField tells whether a field of a Secret holds its values.
func isSecretField(name string) bool { return name == "data" || name == "stringData" }
