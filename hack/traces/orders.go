package main

import (
	"slices"
	"strings"
	"time"
)

// entry identifies an object as inventories do, without its cluster.
type entry struct{ group, kind, namespace, name string }

func entryOf(reference map[string]any) entry {
	group, _, found := strings.Cut(text(reference, "apiVersion"), "/")
	if !found {
		group = ""
	}
	return entry{group, text(reference, "kind"), text(reference, "namespace"), text(reference, "name")}
}

// entries returns the objects that an inventory lists, if the answer is one: a ConfigMap of package
// apply, or a ManagedResource.
func (e *event) entries() (out []entry, isInventory bool) {
	if !e.changes() || !e.answersObject() {
		return nil, false
	}
	switch e.ObjectRef.Resource {
	case "configmaps":
		data, _ := e.ResponseObject["data"].(map[string]any)
		for _, element := range entriesOf(text(data, "entries.json")) {
			out = append(out, entryOf(element.(map[string]any)))
		}
		return out, data["entries.json"] != nil
	case "managedresources":
		status, _ := e.ResponseObject["status"].(map[string]any)
		list, _ := status["resources"].([]any)
		for _, element := range list {
			reference, _ := element.(map[string]any)
			out = append(out, entryOf(reference))
		}
		return out, true
	}
	return nil, false
}

// unlisted are kinds that no inventory lists.
var unlisted = []string{"Lease", "Event"}

// created returns the object that the request has created. Audit events of Secrets lack answers.
func (e *event) created() (entry, bool) {
	o, kind := e.object(), text(e.ResponseObject, "kind")
	if e.ObjectRef.Resource == "secrets" {
		kind = "Secret"
	}
	_, isInventory := e.entries()
	return entry{e.ObjectRef.APIGroup, kind, o.namespace, o.name}, e.ResponseStatus.Code == 201 && e.ObjectRef.Subresource == "" &&
		(!isInventory || kind != "ConfigMap") && !slices.Contains(unlisted, kind)
}

var owners = []string{"gardens", "seeds", "shoots", "landscapes"}

// orders lists violations of the order across objects, and the kind of the first write after an
// owner was marked for deletion. A request comes after an answer if it was received later;
// overlapping requests have no order.
func orders(events []*event) traces {
	type moment struct {
		*event
		at       time.Time
		answered bool
	}
	var moments []moment
	for _, e := range events {
		if e.changes() {
			moments = append(moments, moment{e, e.RequestReceivedTimestamp, false}, moment{e, e.StageTimestamp, true})
		}
	}
	slices.SortStableFunc(moments, func(a, b moment) int { return a.at.Compare(b.at) })

	out := traces{}
	note := func(order string, of object) {
		if name := of.String(); !slices.Contains(out[order], name) {
			out[order] = append(out[order], name)
		}
	}
	inventories, early := map[object][]entry{}, map[entry]object{}
	// processing: owners with lastOperation.state Processing. leaving: owners that are marked for
	// deletion, until Pergola writes their status or deletes an object.
	processing, leaving, gone, known := map[object]bool{}, map[object]bool{}, map[object]bool{}, false
	for _, m := range moments {
		o := m.object()
		switch made, is := m.created(); {
		case m.answered:
		case is && m.isPergola():
			listed := false
			for _, entries := range inventories {
				listed = listed || slices.Contains(entries, made)
			}
			if !listed {
				early[made] = o
			}
		case m.Verb == "delete" && m.isPergola():
			if known && len(processing) == 0 {
				note("order: deleted while no owner and no Landscape is Processing", o)
			}
			for owner := range leaving {
				note("order: a deletion before the status says that the owner goes", owner)
			}
			clear(leaving)
		}
		if !m.answered {
			continue
		}
		if m.Verb == "delete" {
			delete(inventories, o)
		}
		if entries, is := m.entries(); is {
			inventories[o] = entries
			for _, listed := range entries {
				if late, is := early[listed]; is {
					note("order: created before an inventory lists it", late)
					delete(early, listed)
				}
			}
		}
		if slices.Contains(owners, m.ObjectRef.Resource) && m.answersObject() {
			known = true
			metadata, _ := m.ResponseObject["metadata"].(map[string]any)
			marked := metadata["deletionTimestamp"] != nil
			if delete(processing, o); text(m.ResponseObject, "status", "lastOperation", "state") == "Processing" && (!marked || metadata["finalizers"] != nil) {
				processing[o] = true
			}
			if leaving[o] && m.isPergola() && m.ObjectRef.Subresource == "status" {
				note("order: the status says that the owner goes before a deletion", o)
				delete(leaving, o)
			}
			if marked && !gone[o] {
				leaving[o] = true
			}
			gone[o] = marked
		}
	}
	for _, o := range early {
		note("order: created, and no inventory lists it", o)
	}
	for order := range out {
		slices.Sort(out[order])
	}
	return out
}
