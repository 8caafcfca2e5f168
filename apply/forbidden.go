// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"fmt"
	"regexp"
	"strings"
)

// forbiddenNamePattern matches the name of the requested object.
var forbiddenNamePattern = regexp.MustCompile(`"([^"]+)" is forbidden: User`)

// shellWordPattern matches text that needs no quotes in a shell.
var shellWordPattern = regexp.MustCompile(`^[A-Za-z0-9:@._/-]+$`)

// explainForbidden names the missing right and the command that grants it.
func explainForbidden(e *ObjectError) {
	e.Reason = ReasonForbidden
	e.Hint = "an admission rule forbids it: follow the message"
	m := forbiddenByRBACPattern.FindStringSubmatch(e.Message)
	if m == nil {
		return
	}
	user, verb, resource, namespace := m[1], m[2], m[3], m[5]
	if m[4] != "" {
		resource += "." + m[4]
	}
	where := " in all namespaces"
	if namespace != "" {
		where = " in namespace " + namespace
	}
	e.Hint = fmt.Sprintf("allow user %q the verb %s on %s%s by a Role or ClusterRole: %s", user, verb, resource, where, grantCommand(user, verb, resource, namespace))
	if name := forbiddenNamePattern.FindStringSubmatch(e.Message); verb == "impersonate" && name != nil {
		e.Hint = fmt.Sprintf("allow user %q the verb %s on %s %s%s: run pergola install with operator.impersonation.serviceAccounts: [%s] (docs/howto/install.md)", user, verb, resource, name[1], where, name[1])
	}
}

// grantCommand returns the command that grants a right.
func grantCommand(user, verb, resource, namespace string) string {
	subject, name := "--user="+user, "pergola"
	if !shellWordPattern.MatchString(user) {
		subject = "--user='" + strings.ReplaceAll(user, "'", `'\''`) + "'"
	}
	if account, ok := strings.CutPrefix(user, "system:serviceaccount:"); ok {
		subject = "--serviceaccount=" + account
		_, name, _ = strings.Cut(account, ":")
	}
	role := name + "-" + verb + "-" + resource
	if namespace == "" {
		return fmt.Sprintf("kubectl create clusterrole %[1]s --verb=%[2]s --resource=%[3]s && kubectl create clusterrolebinding %[1]s --clusterrole=%[1]s %[4]s", role, verb, resource, subject)
	}
	return fmt.Sprintf("kubectl -n %[5]s create role %[1]s --verb=%[2]s --resource=%[3]s && kubectl -n %[5]s create rolebinding %[1]s --role=%[1]s %[4]s", role, verb, resource, subject, namespace)
}
