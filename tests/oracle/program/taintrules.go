package main

import (
	"context"
	"fmt"

	resourceapi "k8s.io/api/resource/v1"
	resourceinformers "k8s.io/client-go/informers/resource/v1"
	resourcelisters "k8s.io/client-go/listers/resource/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/dynamic-resource-allocation/resourceslice/tracker"
)

// withTaintRules lets the scheduler's own tracker add the taints of DeviceTaintRules to devices. The tracker expects
// informers; lists that never change stand in for them.
func withTaintRules(slices []*resourceapi.ResourceSlice, rules []*resourceapi.DeviceTaintRule) ([]*resourceapi.ResourceSlice, error) {
	patcher, err := tracker.StartTracker(context.Background(), tracker.Options{
		EnableDeviceTaintRules: true,
		SliceInformer:          resourceinformers.ToTypedResourceSliceInformer(fixedSlices{fixed(slices)}),
		TaintInformer:          resourceinformers.ToTypedDeviceTaintRuleInformer(fixedRules{fixed(rules)}),
	})
	if err != nil {
		return nil, err
	}
	defer patcher.Stop()
	patched, err := patcher.ListPatchedResourceSlices()
	if err != nil {
		return nil, err
	}
	// They come in random order.
	byName := make(map[string]*resourceapi.ResourceSlice, len(patched))
	for _, slice := range patched {
		byName[slice.Name] = slice
	}
	ordered := make([]*resourceapi.ResourceSlice, len(slices))
	for i, slice := range slices {
		if ordered[i] = byName[slice.Name]; ordered[i] == nil {
			return nil, fmt.Errorf("the tracker lost slice %s", slice.Name)
		}
	}
	return ordered, nil
}

// fixedInformer has only the methods that the tracker calls; the interface in it is nil.
type fixedInformer struct {
	cache.SharedIndexInformer
	indexer cache.Indexer
}

func fixed[T any](objects []T) *fixedInformer {
	indexer := cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{})
	for _, object := range objects {
		if err := indexer.Add(object); err != nil {
			panic(err)
		}
	}
	return &fixedInformer{indexer: indexer}
}

func (i *fixedInformer) AddIndexers(indexers cache.Indexers) error {
	return i.indexer.AddIndexers(indexers)
}
func (i *fixedInformer) GetIndexer() cache.Indexer { return i.indexer }
func (i *fixedInformer) GetStore() cache.Store     { return i.indexer }

func (i *fixedInformer) RemoveEventHandler(cache.ResourceEventHandlerRegistration) error { return nil }

// AddEventHandlerWithOptions tells of all objects before it returns.
func (i *fixedInformer) AddEventHandlerWithOptions(handler cache.ResourceEventHandler, _ cache.HandlerOptions) (cache.ResourceEventHandlerRegistration, error) {
	for _, object := range i.indexer.List() {
		handler.OnAdd(object, true)
	}
	return told{}, nil
}

type fixedSlices struct{ *fixedInformer }

func (f fixedSlices) Informer() cache.SharedIndexInformer { return f.fixedInformer }

func (f fixedSlices) Lister() resourcelisters.ResourceSliceLister {
	return resourcelisters.NewResourceSliceLister(f.indexer)
}

type fixedRules struct{ *fixedInformer }

func (f fixedRules) Informer() cache.SharedIndexInformer { return f.fixedInformer }

func (f fixedRules) Lister() resourcelisters.DeviceTaintRuleLister {
	return resourcelisters.NewDeviceTaintRuleLister(f.indexer)
}

// told is a registration whose handler knows everything.
type told struct{}

var finished = closedChannel()

func closedChannel() chan struct{} {
	channel := make(chan struct{})
	close(channel)
	return channel
}

func (told) HasSynced() bool                       { return true }
func (t told) HasSyncedChecker() cache.DoneChecker { return t }
func (told) Name() string                          { return "fixed" }
func (told) Done() <-chan struct{}                 { return finished }
