// SPDX-License-Identifier: Apache-2.0

package deletion

import (
	"github.com/stretchr/testify/require"

	"github.com/pergola-dev/pergola/controllers/landscape"
	"github.com/pergola-dev/pergola/hack/clusterobjects"
)

// snapshot returns every object of the runtime cluster.
func (s *deletionStage) snapshot() clusterobjects.Objects {
	s.Helper()
	w, err := clusterobjects.Read(s.context(), env.configs[landscape.Runtime])
	require.NoError(s, err)
	return w
}
