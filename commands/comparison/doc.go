// SPDX-License-Identifier: Apache-2.0

// Package comparison shows how a change of revision affects a landscape's clusters. It reads and
// checks both revisions, renders affected owners and returns a plan with held, rejected and other
// special changes (commands/preview).
//
// It makes no requests to clusters. Other packages read revisions (commands/revisions), compare
// rendered objects (plan) and print (cmd/pergola).
package comparison
