// SPDX-License-Identifier: Apache-2.0

package crosscheck

import (
	"bytes"
	"crypto/sha256"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	gardencorev1beta1 "github.com/pergola-dev/pergola/api/core/v1beta1"
	"github.com/pergola-dev/pergola/schemas"
	"github.com/pergola-dev/pergola/schemas/resultcache"
)

// landscapeQuery is a query of a rule about other objects of the landscape.
type landscapeQuery struct {
	topic queryTopic
	identity
}

type queryTopic byte

const (
	topicContent    queryTopic = 'c' // content of an object
	topicOldContent queryTopic = 'o' // content of an object before and after the change
	topicPresence   queryTopic = 'p' // existence of an object
	topicKind       queryTopic = 'k' // all objects of a kind
	topicProject    queryTopic = 'n' // Project of a namespace
	topicKindName   queryTopic = 'g' // kinds of a name
	topicProfile    queryTopic = 'f' // current offers of a cloud profile
)

// cleanResult is cached for an object without findings. They are valid while the object and all
// answers stay the same.
type cleanResult struct {
	questions []landscapeQuery
	// claimedValues are the object's values that must be unique.
	claimedValues []uniqueValue
	// answersDigest is the digest of all answers.
	answersDigest resultcache.Key
}

func (i *objectIndex) recordQuery(q landscapeQuery) {
	if i.currentNotes != nil && !slices.Contains(i.currentNotes.questions, q) {
		i.currentNotes.questions = append(i.currentNotes.questions, q)
	}
}

// digestQueryResults returns the digest of the answers to questions.
func (c *checker) digestQueryResults(questions []landscapeQuery) resultcache.Key {
	to := make([]byte, 0, len(questions)*len(resultcache.Key{}))
	for _, q := range questions {
		answer, ok := c.answerDigests[q]
		if !ok {
			answer = c.digestQueryResult(q)
			c.answerDigests[q] = answer
		}
		to = append(to, answer[:]...)
	}
	return sha256.Sum256(to)
}

func (c *checker) digestQueryResult(q landscapeQuery) resultcache.Key {
	switch q.topic {
	case topicContent:
		return c.digestObject(c.objectsByID[q.identity])
	case topicOldContent:
		if in := c.objectsByID[q.identity]; in != nil {
			return in.Digest()
		}
		return resultcache.Key{}
	case topicProject:
		return c.digestObject(c.projectsByNamespace[q.namespace])
	case topicPresence:
		return resultcache.Key{boolToByte(c.objectsByID[q.identity] != nil)}
	case topicProfile:
		return c.digestProfile(q.identity)
	}
	var to []byte
	for _, kind := range c.queryKinds(q) {
		for _, in := range c.objectsByKind[kind] {
			digest := c.digestObject(in)
			if q.topic == topicKindName { // only the existence of the kind counts
				digest = sha256.Sum256([]byte(kind.String()))
			}
			to = append(to, digest[:]...)
			if q.topic == topicKindName {
				break
			}
		}
	}
	return sha256.Sum256(to)
}

func (c *checker) queryKinds(q landscapeQuery) []schema.GroupKind {
	if q.topic == topicKind {
		return []schema.GroupKind{q.kind}
	}
	noted := c.currentNotes
	c.currentNotes = nil
	defer func() { c.currentNotes = noted }()
	return c.kindsNamed(q.name)
}

func boolToByte(b bool) byte {
	if b {
		return 1
	}
	return 0
}

// digestObject returns the digest of an object, or zero for nil.
func (c *checker) digestObject(in *schemas.Input) resultcache.Key {
	if in == nil {
		return resultcache.Key{}
	}
	digest, ok := c.objectDigests[in]
	if !ok {
		digest = in.ContentDigest() // only the object itself depends on its previous revision
		c.objectDigests[in] = digest
	}
	return digest
}

// digestProfile returns the digest of a cloud profile, its parent and its version
// classifications.
func (c *checker) digestProfile(id identity) resultcache.Key {
	own, to := c.digestObject(c.objectsByID[id]), &bytes.Buffer{}
	to.Write(own[:])
	if in := c.objectsByID[id]; in != nil && id.kind == kindNamespacedProfile {
		parent := c.digestObject(c.objectsByID[parentProfile(in)])
		to.Write(parent[:])
	}
	p := c.loadProfile(id)
	if p == nil {
		return sha256.Sum256(to.Bytes())
	}
	writeClassifications(to, p.spec.Kubernetes.Versions, c.Now)
	for _, image := range p.spec.MachineImages {
		for _, v := range image.Versions {
			writeClassifications(to, []gardencorev1beta1.ExpirableVersion{v.ExpirableVersion}, c.Now)
		}
	}
	return sha256.Sum256(to.Bytes())
}

func writeClassifications(to *bytes.Buffer, versions []gardencorev1beta1.ExpirableVersion, now time.Time) {
	for _, v := range versions {
		class, _ := v.ClassificationAt(now)
		to.WriteString(string(class) + "\x00")
	}
}

// cacheRecord is the cache entry of an object.
type cacheRecord struct {
	// projectNamespace is the namespace of a Project, for other objects.
	projectNamespace string
	// cleanResult has the notes about an object without findings, else nil.
	cleanResult *cleanResult
}

func (r cacheRecord) encode() []byte {
	var w resultcache.Writer
	w.Text(r.projectNamespace)
	if r.cleanResult == nil {
		w.Uint(0)
		return w.Bytes()
	}
	w.Uint(1)
	w.Uint(uint64(len(r.cleanResult.questions)))
	for _, q := range r.cleanResult.questions {
		w.Uint(uint64(q.topic))
		for _, text := range []string{q.kind.Group, q.kind.Kind, q.identity.namespace, q.name} {
			w.Text(text)
		}
	}
	w.Uint(uint64(len(r.cleanResult.claimedValues)))
	for _, u := range r.cleanResult.claimedValues {
		w.Text(u.purpose)
		w.Text(u.value)
	}
	w.Key(r.cleanResult.answersDigest)
	return w.Bytes()
}

func decodeRecord(data []byte) (cacheRecord, bool) {
	r := resultcache.NewReader(data)
	out := cacheRecord{projectNamespace: r.Text()}
	if r.Uint() == 1 {
		out.cleanResult = &cleanResult{}
		for range r.Count() {
			q := landscapeQuery{topic: queryTopic(r.Uint())}
			q.kind.Group, q.kind.Kind, q.identity.namespace, q.name = r.Text(), r.Text(), r.Text(), r.Text()
			out.cleanResult.questions = append(out.cleanResult.questions, q)
		}
		for range r.Count() {
			out.cleanResult.claimedValues = append(out.cleanResult.claimedValues, uniqueValue{r.Text(), r.Text()})
		}
		out.cleanResult.answersDigest = r.Key()
	}
	return out, r.IsComplete()
}
