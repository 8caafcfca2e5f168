package across

import (
	"bytes"
	"crypto/sha256"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	gardencorev1beta1 "github.com/pergola-dev/pergola/api/core/v1beta1"
	"github.com/pergola-dev/pergola/schemas"
	"github.com/pergola-dev/pergola/schemas/kept"
)

// question is a query of a rule about other objects of the landscape.
type question struct {
	about about
	identity
}

type about byte

const (
	aboutContent  about = 'c' // content of an object
	aboutFormer   about = 'o' // content of an object before and after the change
	aboutPresence about = 'p' // existence of an object
	aboutKind     about = 'k' // all objects of a kind
	aboutProject  about = 'n' // Project of a namespace
	aboutKindName about = 'g' // kinds of a name
	aboutProfile  about = 'f' // current offers of a cloud profile
)

// notes are cached for an object without findings. They are valid while the object and all answers
// stay the same.
type notes struct {
	questions []question
	// uses are the object's values that must be unique.
	uses []use
	// answers is the digest of all answers.
	answers kept.Key
}

func (i *index) ask(q question) {
	if i.noted != nil && !slices.Contains(i.noted.questions, q) {
		i.noted.questions = append(i.noted.questions, q)
	}
}

// answersTo returns the digest of the answers to questions.
func (c *check) answersTo(questions []question) kept.Key {
	to := make([]byte, 0, len(questions)*len(kept.Key{}))
	for _, q := range questions {
		answer, ok := c.answers[q]
		if !ok {
			answer = c.answer(q)
			c.answers[q] = answer
		}
		to = append(to, answer[:]...)
	}
	return sha256.Sum256(to)
}

func (c *check) answer(q question) kept.Key {
	switch q.about {
	case aboutContent:
		return c.digestOf(c.objects[q.identity])
	case aboutFormer:
		if in := c.objects[q.identity]; in != nil {
			return in.Digest()
		}
		return kept.Key{}
	case aboutProject:
		return c.digestOf(c.projects[q.namespace])
	case aboutPresence:
		return kept.Key{btoi(c.objects[q.identity] != nil)}
	case aboutProfile:
		return c.digestOfProfile(q.identity)
	}
	var to []byte
	for _, kind := range c.kindsOf(q) {
		for _, in := range c.names[kind] {
			digest := c.digestOf(in)
			if q.about == aboutKindName { // only the existence of the kind counts
				digest = sha256.Sum256([]byte(kind.String()))
			}
			to = append(to, digest[:]...)
			if q.about == aboutKindName {
				break
			}
		}
	}
	return sha256.Sum256(to)
}

func (c *check) kindsOf(q question) []schema.GroupKind {
	if q.about == aboutKind {
		return []schema.GroupKind{q.kind}
	}
	noted := c.noted
	c.noted = nil
	defer func() { c.noted = noted }()
	return c.kindsNamed(q.name)
}

func btoi(b bool) byte {
	if b {
		return 1
	}
	return 0
}

// digestOf returns the digest of an object; zero for nil.
func (c *check) digestOf(in *schemas.Input) kept.Key {
	if in == nil {
		return kept.Key{}
	}
	digest, ok := c.digests[in]
	if !ok {
		digest = in.ContentDigest() // only the object itself depends on its previous revision
		c.digests[in] = digest
	}
	return digest
}

// digestOfProfile returns the digest of a cloud profile, its parent and its version
// classifications.
func (c *check) digestOfProfile(id identity) kept.Key {
	own, to := c.digestOf(c.objects[id]), &bytes.Buffer{}
	to.Write(own[:])
	if in := c.objects[id]; in != nil && id.kind == kindNamespacedProfile {
		parent := c.digestOf(c.objects[parentOf(in)])
		to.Write(parent[:])
	}
	p := c.profile(id)
	if p == nil {
		return sha256.Sum256(to.Bytes())
	}
	classes(to, p.spec.Kubernetes.Versions, c.Now)
	for _, image := range p.spec.MachineImages {
		for _, v := range image.Versions {
			classes(to, []gardencorev1beta1.ExpirableVersion{v.ExpirableVersion}, c.Now)
		}
	}
	return sha256.Sum256(to.Bytes())
}

func classes(to *bytes.Buffer, versions []gardencorev1beta1.ExpirableVersion, now time.Time) {
	for _, v := range versions {
		class, _ := v.ClassificationAt(now)
		to.WriteString(string(class) + "\x00")
	}
}

// record is the cache entry of an object.
type record struct {
	// namespace is the namespace of a Project, for other objects.
	namespace string
	// clean are the notes about an object without findings, else nil.
	clean *notes
}

func (r record) write() []byte {
	var w kept.Writer
	w.Text(r.namespace)
	if r.clean == nil {
		w.Uint(0)
		return w.Bytes()
	}
	w.Uint(1)
	w.Uint(uint64(len(r.clean.questions)))
	for _, q := range r.clean.questions {
		w.Uint(uint64(q.about))
		for _, text := range []string{q.kind.Group, q.kind.Kind, q.identity.namespace, q.name} {
			w.Text(text)
		}
	}
	w.Uint(uint64(len(r.clean.uses)))
	for _, u := range r.clean.uses {
		w.Text(u.what)
		w.Text(u.value)
	}
	w.Key(r.clean.answers)
	return w.Bytes()
}

func readRecord(data []byte) (record, bool) {
	r := kept.NewReader(data)
	out := record{namespace: r.Text()}
	if r.Uint() == 1 {
		out.clean = &notes{}
		for range r.Count() {
			q := question{about: about(r.Uint())}
			q.kind.Group, q.kind.Kind, q.identity.namespace, q.name = r.Text(), r.Text(), r.Text(), r.Text()
			out.clean.questions = append(out.clean.questions, q)
		}
		for range r.Count() {
			out.clean.uses = append(out.clean.uses, use{r.Text(), r.Text()})
		}
		out.clean.answers = r.Key()
	}
	return out, r.Whole()
}
