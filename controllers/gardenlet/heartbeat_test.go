// SPDX-License-Identifier: Apache-2.0

package gardenlet

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/pergola-dev/pergola/controllers/seedpublication"
)

// TestSettingsMessage: the message does not present the settings' revision as the applied one.
func TestSettingsMessage(t *testing.T) {
	p := &seedpublication.Publication{Revision: "main@sha1:aaaa"}
	p.Catalogue = "1.2.3"
	assert.Equal(t, "The settings and overlays of the applied revision are in use: no commit has changed them since main@sha1:aaaa. The catalogue is 1.2.3.", settingsMessage(p))
}
