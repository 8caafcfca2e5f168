package change

// How the nodes of a worker pool change.
const (
	// NodesReplaced are drained and deleted after others took their place.
	NodesReplaced = "replaced"
	// NodesMaybeReplaced are if the provider's extension says so: it alone knows its
	// providerConfig, and what of a pool with updates in place it makes other machines for.
	NodesMaybeReplaced = "may be replaced"
	// NodesUpdated keep their machine: they are drained, and updated one after another.
	NodesUpdated = "updated in place"
	// NodesSelected are updated in place as somebody selects them.
	NodesSelected = "updated in place when selected"
	// NodesDeleted go with their pool.
	NodesDeleted = "deleted"
)

// PoolChange is what an item does to the nodes of one worker pool.
type PoolChange struct {
	Pool string `json:"pool"`
	// How is one of replaced, may be replaced, updated in place, updated in place when selected,
	// deleted.
	How string `json:"how"`
	// Nodes is the most that the pool may have.
	Nodes int64 `json:"nodes"`
	// Surge and Unavailable are how many nodes there may be more and less meanwhile, as numbers or
	// percentages.
	Surge       string `json:"surge,omitempty"`
	Unavailable string `json:"unavailable,omitempty"`
	// Why lists what of the pool differs that its nodes depend on.
	Why []string `json:"why,omitempty"`
}
