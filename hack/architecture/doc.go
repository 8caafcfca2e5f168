// SPDX-License-Identifier: Apache-2.0

// Package architecture checks the rules of docs/explanation/architecture.md: imports go down, never
// up or to a folder of the same floor. No struct of controllers or commands is too large. No
// program parses a text that is for people. It has only tests; tests and hack itself may import
// what they need.
package architecture
