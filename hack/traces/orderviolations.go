// SPDX-License-Identifier: Apache-2.0

package main

import (
	"slices"
	"strings"
	"time"
)

// inventoryEntry identifies an object as inventories do, without its cluster.
type inventoryEntry struct{ group, kind, namespace, name string }

func entryFromReference(reference map[string]any) inventoryEntry {
	group, _, found := strings.Cut(stringAt(reference, "apiVersion"), "/")
	if !found {
		group = ""
	}
	return inventoryEntry{group, stringAt(reference, "kind"), stringAt(reference, "namespace"), stringAt(reference, "name")}
}

// inventoryEntries returns the objects that an inventory lists, if the answer is one: a ConfigMap
// of package apply, or a ManagedResource.
func (e *event) inventoryEntries() (out []inventoryEntry, isInventory bool) {
	if !e.canChangeData() || !e.hasObjectAnswer() {
		return nil, false
	}
	switch e.ObjectRef.Resource {
	case "configmaps":
		data, _ := e.ResponseObject["data"].(map[string]any)
		for _, element := range parseInventory(stringAt(data, "entries.json")) {
			out = append(out, entryFromReference(element.(map[string]any)))
		}
		return out, data["entries.json"] != nil
	case "managedresources":
		status, _ := e.ResponseObject["status"].(map[string]any)
		list, _ := status["resources"].([]any)
		for _, element := range list {
			reference, _ := element.(map[string]any)
			out = append(out, entryFromReference(reference))
		}
		return out, true
	}
	return nil, false
}

// uninventoriedKinds are kinds that no inventory lists.
var uninventoriedKinds = []string{"Lease", "Event"}

// createdEntry returns the object that the request has created. Audit events of Secrets lack
// answers.
func (e *event) createdEntry() (inventoryEntry, bool) {
	o, kind := e.objectKey(), stringAt(e.ResponseObject, "kind")
	if e.ObjectRef.Resource == "secrets" {
		kind = "Secret"
	}
	_, isInventory := e.inventoryEntries()
	return inventoryEntry{e.ObjectRef.APIGroup, kind, o.namespace, o.name}, e.ResponseStatus.Code == 201 && e.ObjectRef.Subresource == "" &&
		(!isInventory || kind != "ConfigMap") && !slices.Contains(uninventoriedKinds, kind)
}

var ownerResources = []string{"gardens", "seeds", "shoots", "landscapes"}

// findOrderViolations lists violations of the order across objects, and the kind of the first write
// after an owner was marked for deletion. A request comes after an answer if it was received later;
// overlapping requests have no order.
func findOrderViolations(events []*event) traces {
	type moment struct {
		*event
		at       time.Time
		answered bool
	}
	var moments []moment
	for _, e := range events {
		if e.canChangeData() {
			moments = append(moments, moment{e, e.RequestReceivedTimestamp, false}, moment{e, e.StageTimestamp, true})
		}
	}
	slices.SortStableFunc(moments, func(a, b moment) int { return a.at.Compare(b.at) })

	out := traces{}
	note := func(order string, of objectID) {
		if name := of.String(); !slices.Contains(out[order], name) {
			out[order] = append(out[order], name)
		}
	}
	inventories, early := map[objectID][]inventoryEntry{}, map[inventoryEntry]objectID{}
	// processing has the owners with lastOperation.state Processing. leaving has the owners that
	// are marked for deletion, until Pergola writes their status or deletes an object.
	processing, leaving, gone, known := map[objectID]bool{}, map[objectID]bool{}, map[objectID]bool{}, false
	for _, m := range moments {
		o := m.objectKey()
		switch made, is := m.createdEntry(); {
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
				note("order: a deletion before the status shows the deletion of the owner", owner)
			}
			clear(leaving)
		}
		if !m.answered {
			continue
		}
		if m.Verb == "delete" {
			delete(inventories, o)
		}
		if entries, is := m.inventoryEntries(); is {
			inventories[o] = entries
			for _, listed := range entries {
				if late, is := early[listed]; is {
					note("order: created before an inventory lists it", late)
					delete(early, listed)
				}
			}
		}
		if slices.Contains(ownerResources, m.ObjectRef.Resource) && m.hasObjectAnswer() {
			known = true
			metadata, _ := m.ResponseObject["metadata"].(map[string]any)
			marked := metadata["deletionTimestamp"] != nil
			if delete(processing, o); stringAt(m.ResponseObject, "status", "lastOperation", "state") == "Processing" && (!marked || metadata["finalizers"] != nil) {
				processing[o] = true
			}
			if leaving[o] && m.isPergola() && m.ObjectRef.Subresource == "status" {
				note("order: the status shows the deletion of the owner before a deletion", o)
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
