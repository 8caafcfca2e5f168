// SPDX-License-Identifier: Apache-2.0

package hold

import (
	"os"
	"testing"

	"github.com/stretchr/testify/assert"
)

// TestExplainNamespaceError checks that the error names the setting that forbids namespaces, and no
// other.
func TestExplainNamespaceError(t *testing.T) {
	apparmor, clone := "kernel.apparmor_restrict_unprivileged_userns", "kernel.unprivileged_userns_clone"
	users := func(named string) string {
		if os.Geteuid() == 0 { // these settings do not apply to root
			return "namespaces are forbidden on this machine: "
		}
		return named
	}
	for name, test := range map[string]struct {
		reason  string
		setting map[string]string
		want    string
	}{
		"AppArmor": {"making mounts private: permission denied", map[string]string{apparmor: "1"}, users("namespaces are forbidden on this machine (sysctl " + apparmor + " is 1; its administrator allows them by sysctl -w " + apparmor + "=0): ")},
		"Debian":   {"fork/exec x: operation not permitted", map[string]string{clone: "0"}, users("namespaces are forbidden on this machine (sysctl " + clone + " is 0; its administrator allows them by sysctl -w " + clone + "=1): ")},
		"limit":    {"fork/exec x: no space left on device", map[string]string{"user.max_user_namespaces": "0"}, "namespaces are forbidden on this machine (sysctl user.max_user_namespaces is 0; its administrator allows them by sysctl -w user.max_user_namespaces=10000): "},
		"reached":  {"fork/exec x: no space left on device", map[string]string{"user.max_user_namespaces": "8"}, "the limits of this machine allow no more namespaces (sysctl user.max_user_namespaces and similar): "},
		"seccomp":  {"fork/exec x: operation not permitted", map[string]string{apparmor: "0", clone: "1"}, "namespaces are forbidden on this machine: "},
		"/proc":    {"mounting /proc: operation not permitted", nil, "namespaces are forbidden on this machine: "},
		"no veth":  {"creating a veth pair: operation not supported", map[string]string{apparmor: "1"}, "namespaces are not possible on this machine: "},
	} {
		err := explainNamespaceError(test.reason, func(name string) string { return test.setting[name] })
		assert.EqualError(t, err, test.want+test.reason, name)
	}
}
