// SPDX-License-Identifier: Apache-2.0

// Package renders caches the renderings of owners.
package renders
