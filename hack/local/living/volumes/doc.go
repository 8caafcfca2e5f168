// Package volumes gives claims of a living cluster volumes that are folders of this machine: claims
// of every StorageClass whose provisioner is Provisioner.
//
// That a claim and its volume are bound, and that a class waits for a Pod, is the controller
// manager's and the scheduler's business; mounting is the kubelets'. Volumes of other provisioners
// are left alone, and so are claims that select volumes or ask for a block device.
//
// Rights that it needs: persistentvolumeclaims and storageclasses list, watch; persistentvolumes
// list, watch, create, delete.
package volumes
