// SPDX-License-Identifier: Apache-2.0

package deploy

import (
	"fmt"
	"slices"
	"strings"
)

// Role is the purpose of an installation; the value `role` of the chart.
type Role string

const (
	// Operator syncs Landscapes in the runtime cluster.
	Operator Role = "operator"
	// Gardenlet runs a Seed and its Shoots, in the seed.
	Gardenlet Role = "gardenlet"
	// GardenletAccess is the identity of a gardenlet in the virtual garden, with its rights there.
	// It has no process.
	GardenletAccess Role = "gardenlet-access"
)

// Roles returns all roles.
func Roles() []Role { return []Role{Operator, Gardenlet, GardenletAccess} }

// ParseRole parses a role.
func ParseRole(name string) (Role, error) {
	if slices.Contains(Roles(), Role(name)) {
		return Role(name), nil
	}
	names := make([]string, 0, len(Roles()))
	for _, r := range Roles() {
		names = append(names, string(r))
	}
	return "", fmt.Errorf("role %q does not exist: want one of %s", name, strings.Join(names, ", "))
}
