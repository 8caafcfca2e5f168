// SPDX-License-Identifier: Apache-2.0

// Command traces records the writes of Pergola to API servers and compares recordings. It is for
// changes of the code that should not change the writes.
//
//	traces record DIR COMMAND [ARG…]  runs COMMAND; its API servers log into DIR, a new folder
//	traces summarize DIR              prints the traces of Pergola's writes in these audit logs
//	traces compare OLD [OLD…] NEW     prints differences of summaries; exits with 1 if they differ
//
// record.go sets KUBEBUILDER_ASSETS to a folder of scripts, from which hack/apiserver and
// hack/local start their servers, so the code under test is not involved. Audit logs contain all
// objects but Secrets: keep them out of Git.
//
// A trace is the ordered list of the writes to one object: verb, subresource, field manager, and
// the paths of changed fields. A field has changed if it differs from the previous answer to any
// client; a write without changes is "nothing". event.go normalises random names, paths.go compares
// objects, summarize.go folds writes whose number depends on timing, orderviolations.go finds
// orders across objects. Several old recordings cover variations between runs: an object differs if
// its trace is in none of them.
//
// Traces have no values of fields, which golden files and package tests compare, and no reads.
package main
