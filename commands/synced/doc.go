// SPDX-License-Identifier: Apache-2.0

// Package synced checks a Landscape object before it is applied, with the operator's functions that
// open its source and notifications. Stand-ins replace their Secrets, which exist only in the
// cluster. Package landscapes checks the settings that the object shares with landscape.yaml.
package synced
