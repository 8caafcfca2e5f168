// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/labels"
)

// flagPolicyNamespaces is upstream's controllers.networkPolicy.additionalNamespaceSelectors.
const flagPolicyNamespaces = "policy-namespaces"

func addPolicyNamespaces(cmd *cobra.Command, to *[]string) {
	cmd.Flags().StringArrayVar(to, flagPolicyNamespaces, nil, "label selector of further namespaces that get the network policies of Gardener's namespaces (deny-all, allow-to-dns, …), such as team=network; may be given several times")
}

func policyNamespaces(texts []string) ([]labels.Selector, error) {
	var out []labels.Selector
	for _, text := range texts {
		selector, err := labels.Parse(text)
		if err != nil {
			return nil, fmt.Errorf("--%s %q: %w", flagPolicyNamespaces, text, err)
		}
		if selector.Empty() {
			return nil, fmt.Errorf("--%s: an empty selector would select all namespaces", flagPolicyNamespaces)
		}
		out = append(out, selector)
	}
	return out, nil
}
