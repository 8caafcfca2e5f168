// Package manifest judges objects in files by themselves, without the landscape that they may
// belong to.
//
// What does not live here: rules (schemas), folders of landscapes (commands/revisions).
package manifest
