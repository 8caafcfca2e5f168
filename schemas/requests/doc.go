// SPDX-License-Identifier: Apache-2.0

// Package requests knows the words of API server requests: groups, resources and verbs. API servers
// accept any word in roles, audit policies, encryption and quotas, but unknown words have no
// effect. The package is pure.
package requests
