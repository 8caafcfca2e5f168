// Command snapshot saves the data of an Etcd of a local cluster whose pods run for real, and puts
// it into the volume of one that has not started yet: what etcdctl snapshot save and etcdutl
// snapshot restore do elsewhere, with the claims of etcd-druid. It is a program of its own, since
// nothing else needs so much of etcd.
package main
