// SPDX-License-Identifier: Apache-2.0

// Package rendercache caches the renderings of owners.
package rendercache
