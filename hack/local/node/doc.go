// Program node is what a local cluster with living pods consists of besides its control plane:
// `node kubelet` is one node, `node cluster` does what Services, names, volumes and Etcds need,
// once for the cluster. Program local starts them inside of the namespaces of package hold; nobody
// else does.
//
// It is a program of its own because it is made of the kubelet, which takes minutes to compile;
// program local compiles in seconds.
package main
