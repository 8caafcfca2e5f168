// SPDX-License-Identifier: Apache-2.0

package render

import (
	"crypto/tls"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/pergola-dev/pergola/schemas/fieldpath"
)

// This file finds settings that API servers and programs accept, or reject too late, whatever other
// objects exist.

// addWarning records a probably unintended setting: a warning, unless the component has it, too.
func (w *referenceWalk) addWarning(path fieldpath.Path, format string, args ...any) {
	message := fmt.Sprintf(format, args...)
	// The same item may have another index.
	plain := slices.DeleteFunc(slices.Clone(path), func(step any) bool { _, isIndex := step.(int); return isIndex })
	w.found = append(w.found, objectReference{
		path: path, id: plain.String() + " " + message,
		isMet:          func([]Object) bool { return false },
		missingMessage: func([]Object) string { return message },
	})
}

// publicSubjects are users and groups that include anyone
// (https://kubernetes.io/docs/reference/access-authn-authz/rbac/#discovery-roles).
var publicSubjects = []string{"system:anonymous", "system:authenticated", "system:serviceaccounts", "system:unauthenticated"}

// warnOfPublicBindings finds bindings that grant anyone a role, except the system: roles of
// Kubernetes.
func (w *referenceWalk) warnOfPublicBindings(object map[string]any) {
	role := textAt(object, "roleRef", "name")
	for i, subject := range mapsIn(object["subjects"]) {
		if name := textAt(subject, "name"); slices.Contains(publicSubjects, name) && !strings.HasPrefix(role, "system:") {
			w.addWarning(fieldpath.Path{"subjects", i, "name"}, "%q means anyone: each user, or each pod, gets the rights of %s %s", name, textAt(object, "roleRef", "kind"), role)
		}
	}
}

// warnOfClosedWebhooks finds webhooks for all pods that fail closed: without the webhook no pod
// starts, not even its own.
func (w *referenceWalk) warnOfClosedWebhooks(object map[string]any) {
	selects := func(selector any) bool {
		fields, _ := selector.(map[string]any)
		return len(fields) > 0
	}
	for i, webhook := range mapsIn(object["webhooks"]) {
		if policy := textAt(webhook, "failurePolicy"); policy == "Ignore" || selects(webhook["namespaceSelector"]) || selects(webhook["objectSelector"]) || len(mapsIn(webhook["matchConditions"])) > 0 {
			continue
		}
		for _, rule := range mapsIn(webhook["rules"]) {
			has := func(field string, words ...string) bool {
				items, _ := rule[field].([]any)
				return slices.ContainsFunc(items, func(item any) bool { text, _ := item.(string); return slices.Contains(words, text) })
			}
			if has("apiGroups", "", "*") && has("resources", "pods", "*", "*/*") && has("operations", "CREATE", "*") {
				w.addWarning(fieldpath.Path{"webhooks", i, "failurePolicy"}, "no pod of the cluster starts while the webhook does not answer: set Ignore, or exclude system pods by a namespaceSelector or objectSelector")
				break
			}
		}
	}
}

var (
	// durationEndings are endings of flags that take a duration in most programs.
	durationEndings = []string{"-delay", "-duration", "-grace-period", "-interval", "-period", "-timeout", "-ttl"}
	// secondsFlags are flags of Kubernetes with such an ending that take seconds.
	secondsFlags = []string{"min-request-timeout"}
	// repeatableFlags are flags of Kubernetes that may occur several times.
	repeatableFlags = []string{"api-audiences", "service-account-issuer", "service-account-key-file", "tls-sni-cert-key"}

	durationPattern = regexp.MustCompile(`^[0-9][0-9.]*[A-Za-z]*$`)
	flagPattern     = regexp.MustCompile(`^--?([A-Za-z][A-Za-z0-9.-]*)=(.*)$`)
)

// checkFlags finds values that Go programs reject, and flags that are set twice.
func (w *referenceWalk) checkFlags(path fieldpath.Path, spec map[string]any) {
	for _, list := range []string{"containers", "initContainers"} {
		for i, container := range mapsIn(spec[list]) {
			given := map[string]string{}
			for _, field := range []string{"command", "args"} {
				items, _ := container[field].([]any)
				for j, item := range items {
					text, _ := item.(string)
					parts := flagPattern.FindStringSubmatch(text)
					if parts == nil {
						continue
					}
					at, name, value := path.Append(list, i, field, j), parts[1], parts[2]
					if former, twice := given[name]; twice && former != value && !slices.Contains(repeatableFlags, name) {
						w.addWarning(at, "--%s is already given, as %s: most programs take the last one; replace it", name, former)
					}
					given[name] = value
					if words := flagValueFault(name, value); words != "" {
						w.addWarning(at, "--%s=%s: %s", name, value, words)
					}
				}
			}
		}
	}
}

// flagValueFault describes the fault of a flag's value; the result is "" if there is none, judging
// by the name.
func flagValueFault(name, value string) string {
	has := func(word string) bool { return slices.Contains(strings.Split(value, ","), word) }
	switch {
	case name == "authorization-mode" && has("AlwaysAllow"):
		return "everyone may do everything"
	case name == "anonymous-auth" && value == "true":
		return "requests without credentials are answered"
	case name == "tls-min-version" && !slices.Contains([]string{"VersionTLS10", "VersionTLS11", "VersionTLS12", "VersionTLS13"}, value):
		return "write VersionTLS12 or VersionTLS13"
	case name == "tls-cipher-suites":
		known := []string{}
		for _, suite := range slices.Concat(tls.CipherSuites(), tls.InsecureCipherSuites()) {
			known = append(known, suite.Name)
		}
		for suite := range strings.SplitSeq(value, ",") {
			if !slices.Contains(known, suite) {
				return fmt.Sprintf("there is no cipher suite %q%s", suite, suggestName(suite, known))
			}
		}
	case slices.Contains([]string{"yes", "no"}, value):
		return "a switch is true or false"
	case slices.ContainsFunc(durationEndings, func(ending string) bool { return strings.HasSuffix(name, ending) }) && !slices.Contains(secondsFlags, name) && durationPattern.MatchString(value):
		if _, err := time.ParseDuration(value); err != nil {
			return "is not a duration such as 30s, 5m or 1h30m"
		}
	case slices.Contains([]string{"audit-log-maxage", "audit-log-maxbackup", "audit-log-maxsize"}, name) && strings.Trim(value, "0123456789") != "":
		return "is not a whole number: days, files and megabytes have no unit"
	}
	return ""
}
