// SPDX-License-Identifier: Apache-2.0

package schemas

import (
	"net"

	"golang.org/x/crypto/ssh"
)

// checkBastionForms checks the SSH key and the ingress ranges of a Bastion.
func checkBastionForms(in ruleInput) []finding {
	r, spec := &findingCollector{}, fieldValue{value: in.object}.lookup("spec")
	if key := spec.lookup("sshPublicKey"); key.text() != "" {
		if _, _, _, _, err := ssh.ParseAuthorizedKey([]byte(key.text())); err != nil {
			r.add(key, TypeInvalid, "is not a public key in the form of authorized_keys, such as ssh-ed25519 AAAA…")
		}
	}
	ingress := spec.lookup("ingress")
	for i, item := range ingress.items() {
		cidr := item.lookup("ipBlock", "cidr")
		if cidr.text() == "" {
			r.add(ingress, TypeInvalid, "the range of addresses of item %d is empty", i)
		} else if _, _, err := net.ParseCIDR(cidr.text()); err != nil {
			r.add(ingress, TypeInvalid, "%q is not a range of addresses such as 192.0.2.1/32", cidr.text())
		}
	}
	return r.findings
}
