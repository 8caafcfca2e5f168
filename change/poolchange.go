// SPDX-License-Identifier: Apache-2.0

package change

// Effects of a change on the nodes of a worker pool.
const (
	// NodesReplaced means new nodes replace them; the old ones are drained and deleted.
	NodesReplaced = "replaced"
	// NodesMaybeReplaced means only the provider's extension knows. The reason is its
	// providerConfig, or a change that cannot be made in place in a pool with in-place updates.
	NodesMaybeReplaced = "may be replaced"
	// NodesUpdatedInPlace means nodes keep their machine and are drained and updated one after
	// another.
	NodesUpdatedInPlace = "updated in place"
	// NodesUpdatedOnSelection means nodes are updated in place when someone selects them.
	NodesUpdatedOnSelection = "updated in place when selected"
	// NodesDeleted means nodes are deleted with their pool.
	NodesDeleted = "deleted"
)

// PoolChange is the effect of an item on the nodes of one worker pool.
type PoolChange struct {
	Pool string `json:"pool"`
	// Effect is replaced, may be replaced, updated in place, updated in place when selected, or
	// deleted.
	Effect string `json:"how"`
	// MaxNodes is the maximum of the pool.
	MaxNodes int64 `json:"nodes"`
	// Surge and Unavailable are the additional and missing nodes during the change, as numbers or
	// percentages.
	Surge       string `json:"surge,omitempty"`
	Unavailable string `json:"unavailable,omitempty"`
	// Causes lists the changed properties of the pool that its nodes depend on.
	Causes []string `json:"why,omitempty"`
}
