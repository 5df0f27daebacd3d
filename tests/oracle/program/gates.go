package main

import (
	"maps"

	"k8s.io/dynamic-resource-allocation/cel"
	"k8s.io/dynamic-resource-allocation/structured"
)

// gates are the feature gates that allocation depends on.
type gates map[string]bool

// What kube-scheduler 1.37 has without flags. DRAFractionalCapacityRange is on by default from the minimum
// compatibility version 1.37 on, and that version is 1.36 unless a flag says otherwise.
var defaultGates = gates{
	"DRAAdminAccess":               true,
	"DRAConsumableCapacity":        true,
	"DRADerivedAttributes":         false,
	"DRADeviceBindingConditions":   true,
	"DRADeviceCompatibilityGroups": false,
	"DRADeviceTaintRules":          true,
	"DRADeviceTaints":              true,
	"DRAFractionalCapacityRange":   false,
	"DRAListTypeAttributes":        false,
	"DRAOptionalNodeOperations":    false,
	"DRAPartitionableDevices":      true,
	"DRAPrioritizedList":           true,
	"DRAResourceClaimDeviceStatus": true,
	"DRASchedulerFilterTimeout":    true,
}

func gatesWith(changes map[string]bool) (gates, error) {
	all := maps.Clone(defaultGates)
	for name, on := range changes {
		if _, known := all[name]; !known {
			return nil, wrong("unknown feature gate %q", name)
		}
		all[name] = on
	}
	return all, nil
}

// allocator does what the scheduler plugin does (dynamicresources.go, AllocatorFeatures).
func (g gates) allocator() structured.Features {
	return structured.Features{
		AdminAccess:             g["DRAAdminAccess"],
		CompatibilityGroups:     g["DRADeviceCompatibilityGroups"],
		ConsumableCapacity:      g["DRAConsumableCapacity"],
		DerivedAttributes:       g["DRADerivedAttributes"],
		DeviceBindingAndStatus:  g["DRADeviceBindingConditions"] && g["DRAResourceClaimDeviceStatus"],
		DeviceTaints:            g["DRADeviceTaints"],
		FractionalCapacityRange: g["DRAFractionalCapacityRange"],
		ListTypeAttributes:      g["DRAListTypeAttributes"],
		OptionalNodeOperations:  g["DRAOptionalNodeOperations"],
		PartitionableDevices:    g["DRAPartitionableDevices"],
		PrioritizedList:         g["DRAPrioritizedList"],
	}
}

func (g gates) cel() cel.Features {
	return cel.Features{
		EnableConsumableCapacity: g["DRAConsumableCapacity"],
		EnableListTypeAttributes: g["DRAListTypeAttributes"],
	}
}

// kube-scheduler keeps 10 compiled expressions; more is what a benchmark of evaluation needs.
const keptExpressions = 1000

var celCaches = map[cel.Features]*cel.Cache{}

func celCache(features cel.Features) *cel.Cache {
	if celCaches[features] == nil {
		celCaches[features] = cel.NewCache(keptExpressions, features)
	}
	return celCaches[features]
}
