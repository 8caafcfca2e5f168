// Package hold keeps the namespaces in which a local landscape lives: one user, network, process-id
// and mount namespace per state folder, held open by a process that is process 1 of it, the holder.
// Pods and Services have real addresses in there, nothing collides with the machine, and all that
// runs inside ends with the holder, however the holder ends.
//
// The holder is this program itself, started again ("local hold"): Serve is its whole life. Other
// processes of the same user reach it by a socket in the state folder: they run commands inside,
// forward loopback ports of the machine to addresses inside, and end it. What the commands are is
// not this package's business, nor are the namespaces of single pods (package podnet).
//
// Files keep their paths: only mounts made later are not seen outside. The caller is root inside,
// and no other user or group exists there. Whether a holder lives is told by a lock on its record
// file and not by what is written there, so that a reused process id is never mistaken for it.
//
// Linux only; elsewhere Possible says so.
package hold
