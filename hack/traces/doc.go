// Command traces records the writes of Pergola to API servers and compares two recordings: before
// and after a change of the code that should not change the writes.
//
//	traces record DIR COMMAND [ARG…]   runs a command whose API servers write audit logs into a new folder
//	traces summarize DIR               prints the traces of Pergola's writes in these logs
//	traces compare OLD [OLD…] NEW      prints the differences of such texts; exit code 1 if there are any
//
// record.go puts scripts into the folder of KUBEBUILDER_ASSETS, from which hack/apiserver and
// hack/local start their servers, so the code under test has no part in the recording. Audit logs
// contain all objects but Secrets: keep them out of Git.
//
// A trace is the ordered list of the writes to one object: verb, subresource, field manager, and
// the paths of the fields that differ from the previous answer, to whichever client. "nothing" is a
// write that changed nothing. event.go normalises random names, paths.go compares objects,
// summarize.go folds writes whose number is chance, orders.go finds orders across objects.
//
// Several recordings of before show what is chance: an object differs if its trace is in none of
// them.
//
// Not here: the values of fields, which golden files and the tests of packages compare; requests
// that read.
package main
