package deletion

import (
	"github.com/stretchr/testify/require"

	"github.com/pergola-dev/pergola/controllers/landscape"
	"github.com/pergola-dev/pergola/hack/world"
)

// snapshot returns every object of the runtime cluster.
func (s *deletionStage) snapshot() world.Objects {
	s.Helper()
	w, err := world.Read(s.context(), env.configs[landscape.Runtime])
	require.NoError(s, err)
	return w
}
