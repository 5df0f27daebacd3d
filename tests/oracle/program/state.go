package main

import (
	resourceapi "k8s.io/api/resource/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/dynamic-resource-allocation/structured"
)

// What lies around the allocator in the scheduler and in the API server, done again with their rules.

// inUse collects what the allocations of claims hold (plugins/dynamicresources/allocateddevices.go): admin access holds
// nothing, a share identity makes a share, and all else holds the whole device.
func inUse(claims []*resourceapi.ResourceClaim, consumableCapacity bool) structured.AllocatedState {
	state := structured.AllocatedState{
		AllocatedDevices:         sets.New[structured.DeviceID](),
		AllocatedSharedDeviceIDs: sets.New[structured.SharedDeviceID](),
		AggregatedCapacity:       structured.NewConsumedCapacityCollection(),
	}
	for _, claim := range claims {
		for _, result := range claim.Status.Allocation.Devices.Results {
			device := structured.MakeDeviceID(result.Driver, result.Pool, result.Device)
			switch {
			case result.AdminAccess != nil && *result.AdminAccess:
			case result.ShareID == nil || !consumableCapacity:
				state.AllocatedDevices.Insert(device)
			default:
				state.AllocatedSharedDeviceIDs.Insert(structured.MakeSharedDeviceID(device, result.ShareID))
				if result.ConsumedCapacity != nil {
					state.AggregatedCapacity.Insert(structured.NewDeviceConsumedCapacity(device, result.ConsumedCapacity))
				}
			}
		}
	}
	return state
}

// setDefaults sets what the API server sets (pkg/apis/resource/v1/defaults.go) as far as the allocator relies on it.
func setDefaults(claim *resourceapi.ResourceClaim) {
	for _, request := range claim.Spec.Devices.Requests {
		if exactly := request.Exactly; exactly != nil {
			setRequestDefaults(&exactly.AllocationMode, &exactly.Count, exactly.Tolerations)
		}
		for i := range request.FirstAvailable {
			alternative := &request.FirstAvailable[i]
			setRequestDefaults(&alternative.AllocationMode, &alternative.Count, alternative.Tolerations)
		}
	}
}

func setRequestDefaults(mode *resourceapi.DeviceAllocationMode, count *int64, tolerations []resourceapi.DeviceToleration) {
	if *mode == "" {
		*mode = resourceapi.DeviceAllocationModeExactCount
	}
	if *mode == resourceapi.DeviceAllocationModeExactCount && *count == 0 {
		*count = 1
	}
	for i := range tolerations {
		if tolerations[i].Operator == "" {
			tolerations[i].Operator = resourceapi.DeviceTolerationOpEqual
		}
	}
}

// check refuses what no cluster can hold and what would make an answer meaningless. It is no validation.
func (q *allocateQuestion) check() error {
	switch {
	case (q.Node == nil) == (q.Nodes == nil):
		return wrong("exactly one of node and nodes must be set")
	case len(q.Claims) == 0:
		return wrong("claims is empty")
	case q.Node != nil && q.Node.Name == "":
		return wrong("node has no metadata.name")
	}
	for i, claim := range q.AllocatedClaims {
		if claim.Status.Allocation == nil {
			return wrong("allocatedClaims[%d] has no status.allocation", i)
		}
	}
	for i, claim := range q.Claims {
		if claim.Status.Allocation != nil {
			return wrong("claims[%d] is allocated, it belongs into allocatedClaims", i)
		}
		for j, request := range claim.Spec.Devices.Requests {
			if (request.Exactly == nil) == (len(request.FirstAvailable) == 0) {
				return wrong("claims[%d], request %d: exactly one of exactly and firstAvailable must be set", i, j)
			}
		}
	}
	return q.checkNames()
}

type named interface{ GetName() string }

func (q *allocateQuestion) checkNames() error {
	claims := map[string]bool{}
	for _, claim := range append(q.AllocatedClaims[:len(q.AllocatedClaims):len(q.AllocatedClaims)], q.Claims...) {
		key := claim.Namespace + "/" + claim.Name
		if claim.Name == "" || claims[key] {
			return wrong("two claims, or none, are named %q", key)
		}
		claims[key] = true
	}
	for _, err := range []error{
		checkUnique("nodes", q.Nodes), checkUnique("slices", q.Slices),
		checkUnique("classes", q.Classes), checkUnique("taintRules", q.TaintRules),
	} {
		if err != nil {
			return err
		}
	}
	return nil
}

func checkUnique[T named](field string, objects []T) error {
	seen := map[string]bool{}
	for i, object := range objects {
		if name := object.GetName(); name == "" || seen[name] {
			return wrong("%s[%d]: no name, or one that was there before: %q", field, i, name)
		}
		seen[object.GetName()] = true
	}
	return nil
}

// lister finds device classes and fails as a lister of client-go does.
type lister struct {
	all    []*resourceapi.DeviceClass
	byName map[string]*resourceapi.DeviceClass
}

func newLister(classes []*resourceapi.DeviceClass) *lister {
	byName := make(map[string]*resourceapi.DeviceClass, len(classes))
	for _, class := range classes {
		byName[class.Name] = class
	}
	return &lister{classes, byName}
}

func (l *lister) List() ([]*resourceapi.DeviceClass, error) { return l.all, nil }

func (l *lister) Get(name string) (*resourceapi.DeviceClass, error) {
	if class := l.byName[name]; class != nil {
		return class, nil
	}
	return nil, apierrors.NewNotFound(resourceapi.Resource("deviceclass"), name)
}
