package landscape

import "time"

// NoteJudged notes when everything on the cluster was judged last; it is written with the next
// renewal.
func (l *Lease) NoteJudged(at time.Time) { l.lease.noteJudged(at) }
