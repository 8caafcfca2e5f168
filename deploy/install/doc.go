// SPDX-License-Identifier: Apache-2.0

// Package install installs and removes a rendered Pergola (package deploy) with package apply. The
// inventory makes an upgrade delete objects that a newer chart no longer has. Without changes it
// sends no write request.
//
// Other packages have the objects (the chart in package deploy), flags and output (cmd/pergola).
package install
