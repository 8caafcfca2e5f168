// SPDX-License-Identifier: Apache-2.0

package landscapes

import (
	"bytes"
	"fmt"
	"io/fs"
	"path"
	"regexp"
	"slices"
	"strings"

	sopsage "github.com/getsops/sops/v3/age"
	"go.yaml.in/yaml/v3"

	"github.com/pergola-dev/pergola/internal/suggest"
	"github.com/pergola-dev/pergola/schemas"
)

// SopsFile configures which keys `sops` uses for files in a folder and below.
const SopsFile = ".sops.yaml"

// SopsRule is a creation rule of a SopsFile.
type SopsRule struct {
	Line int
	// Recipients are the age keys of all groups of the rule.
	Recipients []string
	// groups is the number of key groups; with several, encrypted files have another structure.
	groups    int
	pathRegex *regexp.Regexp
	// encryptedRegex is the encrypted_regex, if set.
	encryptedRegex *regexp.Regexp
	// hasKeys reports whether it names keys of any type, and partly whether it encrypts only parts.
	hasKeys, isPartial bool
	// hasExclusion reports whether it encrypts a file except some parts.
	hasExclusion bool
}

// SopsProblem is an entry of a SopsFile that breaks sops, or that sops ignores.
type SopsProblem struct {
	Line, Column int
	Message      string
	// IsIgnored reports whether sops works without the entry.
	IsIgnored bool
}

// Fields of a creation rule and of a group of keys (getsops/sops: config/config.go).
var (
	sopsRuleFields = []string{
		"path_regex", "kms", "aws_profile", "age", "pgp", "gcp_kms", "hckms", "azure_keyvault", "hc_vault_transit_uri", "key_groups", "shamir_threshold",
		"unencrypted_suffix", "encrypted_suffix", "unencrypted_regex", "encrypted_regex", "unencrypted_comment_regex", "encrypted_comment_regex", "mac_only_encrypted",
	}
	sopsGroupFields = []string{"merge", "kms", "gcp_kms", "hckms", "azure_keyvault", "hc_vault", "age", "pgp"}
	sopsTopFields   = []string{"creation_rules", "destination_rules", "stores"}
	// sopsKeyFields are the fields of both that name keys.
	sopsKeyFields = []string{"kms", "gcp_kms", "hckms", "azure_keyvault", "hc_vault", "hc_vault_transit_uri", "age", "pgp"}
)

// ParseSopsRules reads the creation rules of a SopsFile, and finds problems in them.
func ParseSopsRules(data []byte) ([]SopsRule, []SopsProblem) {
	var s sopsRulesParser
	var node yaml.Node
	if err := yaml.Unmarshal(data, &node); err != nil {
		line, column, message := YAMLFault(data, err)
		return nil, []SopsProblem{{Line: line, Column: column, Message: message}}
	}
	if len(node.Content) == 0 {
		return nil, nil
	}
	s.visitFields(node.Content[0], sopsTopFields, false, func(field string, value *yaml.Node) {
		if field == "creation_rules" {
			s.visitItems(value, field, func(item *yaml.Node) { s.parseRule(item) })
		}
	})
	return s.rules, s.problems
}

type sopsRulesParser struct {
	rules    []SopsRule
	problems []SopsProblem
}

func (s *sopsRulesParser) add(at *yaml.Node, format string, args ...any) {
	s.problems = append(s.problems, SopsProblem{Line: at.Line, Column: at.Column, Message: fmt.Sprintf(format, args...)})
}

// reportIgnored reports a field that sops ignores.
func (s *sopsRulesParser) reportIgnored(key *yaml.Node, hint string) {
	s.add(key, "sops ignores the field %q, which it does not know; %s", key.Value, hint)
	s.problems[len(s.problems)-1].IsIgnored = true
}

// visitFields visits the fields of an object. Unless strict, unknown fields are allowed for
// anchors, but not if they look like a misspelt field of sops.
func (s *sopsRulesParser) visitFields(node *yaml.Node, known []string, strict bool, visit func(string, *yaml.Node)) {
	node = resolveAlias(node)
	if node.Kind != yaml.MappingNode {
		s.add(node, "must be an object with %s", strings.Join(known, ", "))
		return
	}
	for i := 0; i+1 < len(node.Content); i += 2 {
		key, value := node.Content[i], node.Content[i+1]
		guess := suggest.Closest(key.Value, known)
		switch {
		case key.ShortTag() == "!!merge" && resolveAlias(value).Kind == yaml.MappingNode:
			s.visitFields(value, known, strict, visit)
		case key.ShortTag() == "!!merge":
		case slices.Contains(known, key.Value):
			visit(key.Value, resolveAlias(value))
		case guess != "":
			s.reportIgnored(key, fmt.Sprintf("did you mean %q?", guess))
		case strict:
			s.reportIgnored(key, "it knows "+strings.Join(known, ", "))
		}
	}
}

func (s *sopsRulesParser) visitItems(node *yaml.Node, field string, visit func(*yaml.Node)) {
	if node.Kind != yaml.SequenceNode {
		s.add(node, "%s must be a list", field)
		return
	}
	for _, item := range node.Content {
		visit(resolveAlias(item))
	}
}

func (s *sopsRulesParser) parseRule(node *yaml.Node) {
	rule := SopsRule{Line: node.Line, groups: 1}
	s.visitFields(node, sopsRuleFields, true, func(field string, value *yaml.Node) {
		switch {
		case slices.Contains(sopsKeyFields, field):
			rule.hasKeys = rule.hasKeys || hasValue(value)
		case strings.Contains(field, "encrypted_") && field != "mac_only_encrypted":
			rule.isPartial = rule.isPartial || hasValue(value)
			rule.hasExclusion = rule.hasExclusion || strings.HasPrefix(field, "unencrypted_") && hasValue(value)
		}
		switch {
		case strings.HasSuffix(field, "_regex"):
			compiled, err := regexp.Compile(value.Value)
			if err != nil {
				s.add(value, "%s does not compile, so sops fails: %s", field, strings.TrimPrefix(err.Error(), "error parsing regexp: "))
			} else if field == "path_regex" && value.Value != "" {
				rule.pathRegex = compiled
			} else if field == "encrypted_regex" && value.Value != "" {
				rule.encryptedRegex = compiled
			}
		case field == "age":
			rule.Recipients = append(rule.Recipients, s.parseRecipients(value)...)
		case field == "key_groups":
			rule.groups = len(value.Content)
			s.visitItems(value, field, func(group *yaml.Node) {
				rule.Recipients = append(rule.Recipients, s.parseGroup(group, &rule.hasKeys)...)
			})
		}
	})
	if node.Kind == yaml.MappingNode && !rule.hasKeys && !s.hasIgnoredField(node) {
		s.add(node, "the rule names no key, so its files could not be decrypted; set age to a public key from age-keygen")
	}
	s.rules = append(s.rules, rule)
}

// hasIgnoredField reports whether a rule has a field that sops ignores: it may be a misspelt field
// for keys.
func (s *sopsRulesParser) hasIgnoredField(rule *yaml.Node) bool {
	return slices.ContainsFunc(s.problems, func(p SopsProblem) bool { return p.IsIgnored && p.Line >= rule.Line })
}

// hasValue reports whether a field has a value.
func hasValue(value *yaml.Node) bool { return value.Value != "" || len(value.Content) > 0 }

// parseGroup returns the recipients of a key group, and sets keyed if it names any key.
func (s *sopsRulesParser) parseGroup(node *yaml.Node, keyed *bool) []string {
	var out []string
	s.visitFields(node, sopsGroupFields, true, func(field string, value *yaml.Node) {
		*keyed = *keyed || slices.Contains(sopsKeyFields, field) && hasValue(value)
		switch field {
		case "age":
			out = append(out, s.parseRecipients(value)...)
		case "merge":
			s.visitItems(value, field, func(group *yaml.Node) { out = append(out, s.parseGroup(group, keyed)...) })
		}
	})
	return out
}

// parseRecipients reads a text with commas between keys, or a list of such texts.
func (s *sopsRulesParser) parseRecipients(node *yaml.Node) []string {
	if node.Kind == yaml.SequenceNode {
		var out []string
		for _, item := range node.Content {
			out = append(out, s.parseRecipients(resolveAlias(item))...)
		}
		return out
	}
	var out []string
	for one := range strings.SplitSeq(node.Value, ",") {
		if one = strings.TrimSpace(one); one == "" || node.Kind != yaml.ScalarNode {
			continue
		}
		_, err := sopsage.MasterKeyFromRecipient(one)
		switch {
		case strings.HasPrefix(strings.ToUpper(one), "AGE-SECRET-KEY-"):
			s.add(node, "this is a private age key, which everyone with the repository can read; make a new key, and use its public key, age1…")
		case err != nil && strings.HasPrefix(one, "age1"):
			s.add(node, "%q is not a public age key: it begins like one, but is too short or misspelt", one)
		case err != nil:
			s.add(node, "%q is not a public age key, which begins with age1", one)
		default:
			out = append(out, one)
		}
	}
	return out
}

func resolveAlias(node *yaml.Node) *yaml.Node {
	if node.Kind == yaml.AliasNode {
		return node.Alias
	}
	return node
}

// CheckSops checks the SopsFiles that apply to the landscape, and its encrypted files against them.
// It is separate from Load, because only sops needs these files.
func (l *Landscape) CheckSops() []schemas.Violation {
	c := sopsCheck{landscape: l, files: map[string]*sopsRulesFile{}}
	c.rulesFor(l.Path)
	checked := map[string]bool{}
	for i := range l.Declarations {
		if d := &l.Declarations[i]; d.Secret != "" && d.Secret != SecretPlain && !checked[d.File] {
			checked[d.File] = true
			c.checkRecipients(d)
		}
	}
	return c.found
}

type sopsCheck struct {
	landscape *Landscape
	// files are the SopsFiles by folder; they are nil for a folder without one.
	files map[string]*sopsRulesFile
	found []schemas.Violation
}

type sopsRulesFile struct {
	folder, name string
	rules        []SopsRule
	isInvalid    bool
}

// rulesFor returns the SopsFile for a folder: its own or the closest one above, within the
// repository.
func (c *sopsCheck) rulesFor(folder string) *sopsRulesFile {
	if known, ok := c.files[folder]; ok {
		return known
	}
	name := path.Join(folder, SopsFile)
	info, err := fs.Stat(c.landscape.FS, name)
	var data []byte
	if err == nil && info.Mode().IsRegular() && info.Size() <= MaxFileSize {
		data, err = fs.ReadFile(c.landscape.FS, name)
	}
	var file *sopsRulesFile
	switch {
	case err == nil && data != nil:
		file = &sopsRulesFile{folder: folder, name: (&loader{home: c.landscape.Path}).relative(name)}
		var problems []SopsProblem
		file.rules, problems = ParseSopsRules(data)
		file.isInvalid = len(problems) > 0
		for _, p := range problems {
			c.found = append(c.found, schemas.Violation{
				Severity: schemas.SeverityError, File: file.name, Line: p.Line, Column: p.Column, Type: schemas.TypeInvalid, Rule: ruleSops, Message: p.Message,
			})
		}
		if !file.isInvalid && isBelow(folder, c.landscape.Path) {
			c.checkSelection(file)
		}
	case folder != ".":
		file = c.rulesFor(path.Dir(folder))
	}
	if other := strings.TrimSuffix(name, ".yaml") + ".yml"; data == nil {
		if _, err := fs.Stat(c.landscape.FS, other); err == nil {
			c.found = append(c.found, schemas.Violation{
				Severity: schemas.SeverityError, File: (&loader{home: c.landscape.Path}).relative(other), Line: 1, Column: 1, Type: schemas.TypeInvalid, Rule: ruleSops,
				Message: "sops does not read this file: it reads " + SopsFile + " only; rename it",
			})
		}
	}
	c.files[folder] = file
	return file
}

const ruleSops = "landscape/sops-rules"

func isBelow(folder, parent string) bool {
	return parent == "." || folder == parent || strings.HasPrefix(folder, parent+"/")
}

var fieldNamePattern = regexp.MustCompile("[A-Za-z]+")

// misspeltField returns a name in a regular expression that is similar to data or stringData, if
// the expression does not match that field. Otherwise it is "".
func misspeltField(only *regexp.Regexp) string {
	for _, name := range fieldNamePattern.FindAllString(only.String(), -1) {
		for _, field := range []string{"data", "stringData"} {
			if !only.MatchString(field) && suggest.ClosestWithin(name, []string{field}, 2) != "" && len(name) > 2 {
				return name
			}
		}
	}
	return ""
}

// checkSelection warns of rules that make sops write files that a landscape cannot contain.
func (c *sopsCheck) checkSelection(file *sopsRulesFile) {
	for i, rule := range file.rules {
		if j := slices.IndexFunc(file.rules[:i], func(before SopsRule) bool { return isSupersetOf(before.pathRegex, rule.pathRegex) }); j >= 0 {
			c.found = append(c.found, schemas.Violation{
				Severity: schemas.SeverityWarning, File: file.name, Line: rule.Line, Column: 1, Type: schemas.TypeInvalid, Rule: ruleSops,
				Message: fmt.Sprintf("the rule is never used: line %d matches all of its files, and sops uses the first match; move this rule up, or remove it", file.rules[j].Line),
			})
		}
		message := ""
		switch {
		case !rule.isPartial:
			message = "sops encrypts whole files by this rule, but apiVersion, kind and metadata must be readable; add encrypted_regex: ^(data|stringData)$"
		case rule.hasExclusion && rule.encryptedRegex == nil:
			message = "sops encrypts all but some fields by this rule, but apiVersion, kind and metadata must be readable; write encrypted_regex: ^(data|stringData)$ instead"
		case rule.encryptedRegex != nil && !rule.encryptedRegex.MatchString("data") && !rule.encryptedRegex.MatchString("stringData"):
			message = "encrypted_regex matches neither data nor stringData, so sops does not encrypt the values of Secrets; write ^(data|stringData)$"
		case rule.encryptedRegex != nil && misspeltField(rule.encryptedRegex) != "":
			message = fmt.Sprintf("encrypted_regex matches %q, which is misspelt, so sops does not encrypt the values; write ^(data|stringData)$", misspeltField(rule.encryptedRegex))
		case rule.encryptedRegex != nil && !rule.encryptedRegex.MatchString("stringData") && regexp.MustCompile("(?i)"+rule.encryptedRegex.String()).MatchString("stringData"):
			message = "encrypted_regex matches stringData only in other letter case, so sops does not encrypt it; write ^(data|stringData)$"
		case rule.encryptedRegex != nil && !rule.encryptedRegex.MatchString("stringData") && rule.encryptedRegex.MatchString("data"):
			message = "encrypted_regex matches data but not stringData, so sops does not encrypt the values there; write ^(data|stringData)$"
		case len(rule.Recipients) == 0:
			message = "the rule names no age key, and Pergola opens files only with age keys; give age, too"
		default:
			continue
		}
		c.found = append(c.found, schemas.Violation{
			Severity: schemas.SeverityWarning, File: file.name, Line: rule.Line, Column: 1, Type: schemas.TypeInvalid, Rule: ruleSops, Message: message,
		})
	}
}

// checkRecipients warns of an encrypted file whose recipients differ from its rule.
func (c *sopsCheck) checkRecipients(d *Declaration) {
	name := path.Join(c.landscape.Path, d.File)
	rules := c.rulesFor(path.Dir(name))
	if rules == nil || rules.isInvalid {
		return
	}
	inside := strings.TrimPrefix(strings.TrimPrefix(name, rules.folder), "/")
	if rules.folder == "." {
		inside = name
	}
	i := slices.IndexFunc(rules.rules, func(r SopsRule) bool { return r.pathRegex == nil || r.pathRegex.MatchString(inside) })
	if i < 0 && len(rules.rules) > 0 {
		c.found = append(c.found, schemas.Violation{
			Severity: schemas.SeverityWarning, File: d.File, Line: 1, Column: 1, Type: schemas.TypeInvalid, Rule: "landscape/sops-recipients",
			Message: fmt.Sprintf("no rule in %s matches the file, so `sops updatekeys` cannot change its keys; correct a path_regex there, or add a rule", rules.name),
		})
	}
	if i < 0 || rules.rules[i].groups != 1 || len(rules.rules[i].Recipients) == 0 {
		return
	}
	line, recipients := c.recipients(name)
	var differences []string
	if more := itemsMissingIn(rules.rules[i].Recipients, recipients); len(more) > 0 {
		differences = append(differences, "is not encrypted for "+strings.Join(more, ", ")+", which cannot open it")
	}
	if gone := itemsMissingIn(recipients, rules.rules[i].Recipients); len(gone) > 0 {
		differences = append(differences, "is still encrypted for "+strings.Join(gone, ", "))
	}
	if len(recipients) == 0 || len(differences) == 0 {
		return
	}
	c.found = append(c.found, schemas.Violation{
		Severity: schemas.SeverityWarning, File: d.File, Line: line, Column: 1, Type: schemas.TypeInvalid, Rule: "landscape/sops-recipients",
		Message: fmt.Sprintf("the file %s, unlike the rule in %s:%d: run `sops updatekeys %s`", strings.Join(differences, ", and "), rules.name, rules.rules[i].Line, d.File),
	})
}

// recipients returns the recipients of an encrypted file, and the line that has them.
func (c *sopsCheck) recipients(name string) (line int, out []string) {
	data, err := fs.ReadFile(c.landscape.FS, name)
	if err != nil {
		return 1, nil // Load reports it
	}
	var encrypted struct {
		Sops struct {
			Age yaml.Node `yaml:"age"`
		} `yaml:"sops"`
	}
	var keys []struct {
		Recipient string `yaml:"recipient"`
	}
	if yaml.NewDecoder(bytes.NewReader(data)).Decode(&encrypted) != nil || encrypted.Sops.Age.Decode(&keys) != nil {
		return 1, nil
	}
	for _, key := range keys {
		out = append(out, key.Recipient)
	}
	return max(encrypted.Sops.Age.Line, 1), out
}

// itemsMissingIn returns the items of a list that the other one does not have.
func itemsMissingIn(list, other []string) []string {
	return slices.DeleteFunc(slices.Clone(list), func(item string) bool { return slices.Contains(other, item) })
}
