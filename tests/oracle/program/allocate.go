package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"reflect"
	"runtime/debug"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/dynamic-resource-allocation/structured"
)

// The scheduler's own limit for one node (filterTimeout of its plugin).
const schedulerTimeout = 10 * time.Second

// allocateQuestion asks which devices the claims of one pod get, on one node or on each of several.
type allocateQuestion struct {
	common
	Node  *v1.Node   `json:"node,omitempty"`
	Nodes []*v1.Node `json:"nodes,omitempty"`
	// What the cluster has. AllocatedClaims are all claims with an allocation.
	Slices          []*resourceapi.ResourceSlice   `json:"slices,omitempty"`
	Classes         []*resourceapi.DeviceClass     `json:"classes,omitempty"`
	TaintRules      []*resourceapi.DeviceTaintRule `json:"taintRules,omitempty"`
	AllocatedClaims []*resourceapi.ResourceClaim   `json:"allocatedClaims,omitempty"`
	// Claims are allocated together, all or none.
	Claims []*resourceapi.ResourceClaim `json:"claims"`
	// TimeoutSeconds is the limit for one node, 0 for none.
	TimeoutSeconds *float64 `json:"timeoutSeconds,omitempty"`
}

// outcome is what is said of one node. Allocations that are null mean that the claims do not fit.
type outcome struct {
	Allocations *[]resourceapi.AllocationResult `json:"allocations,omitempty"`
	Error       string                          `json:"error,omitempty"`
	ErrorKind   string                          `json:"errorKind,omitempty"`
}

type allocateAnswer struct {
	ID json.RawMessage `json:"id,omitempty"`
	*outcome
	Nodes map[string]*outcome `json:"nodes,omitempty"`
	// Allocator is the implementation that the library chose: stable, incubating or experimental.
	Allocator string          `json:"allocator"`
	Timing    *allocateTiming `json:"timing,omitempty"`
}

// allocateTiming is in seconds. Prepare is for taint rules, what is in use, and making the allocator.
type allocateTiming struct {
	Parse    float64 `json:"parseSeconds"`
	Prepare  float64 `json:"prepareSeconds"`
	Allocate float64 `json:"allocateSeconds"`
	// Steps is how often the allocator entered its search function, all nodes together.
	Steps int64 `json:"steps"`
}

var keptClusters = map[string]*allocateQuestion{}

func (q *allocateQuestion) answer(parsing time.Duration) (any, error) {
	all, err := gatesWith(q.Features)
	if err != nil {
		return nil, err
	}
	if err := q.complete(); err != nil {
		return nil, err
	}
	for _, claim := range q.Claims {
		setDefaults(claim)
	}
	said := allocateAnswer{ID: q.ID}
	for round := range max(q.Repeat, 1) {
		times := allocateTiming{Parse: parsing.Seconds()}
		if err := q.round(all, &said, &times); err != nil {
			return nil, err
		}
		if round == 0 || times.Prepare+times.Allocate < said.Timing.Prepare+said.Timing.Allocate {
			said.Timing = &times
		}
	}
	if !q.Timing {
		said.Timing = nil
	}
	return said, nil
}

// complete takes what the question leaves out from what was kept, and keeps it.
func (q *allocateQuestion) complete() error {
	if q.Use != "" {
		base := keptClusters[q.Use]
		if base == nil {
			return wrong("nothing is kept under the name %q", q.Use)
		}
		if q.Node == nil && q.Nodes == nil {
			q.Node, q.Nodes = base.Node, base.Nodes
		}
		take(&q.Slices, base.Slices)
		take(&q.Classes, base.Classes)
		take(&q.TaintRules, base.TaintRules)
		take(&q.AllocatedClaims, base.AllocatedClaims)
	}
	if err := q.check(); err != nil {
		return err
	}
	if q.Keep != "" {
		keptClusters[q.Keep] = q
	}
	return nil
}

// round makes an allocator, as the scheduler does for each pod, and asks it for each node.
func (q *allocateQuestion) round(all gates, said *allocateAnswer, times *allocateTiming) error {
	began := time.Now()
	slices := q.Slices
	if all["DRADeviceTaintRules"] && len(q.TaintRules) > 0 {
		var err error
		if slices, err = withTaintRules(slices, q.TaintRules); err != nil {
			return err
		}
	}
	allocator, err := structured.NewAllocator(context.Background(), all.allocator(),
		inUse(q.AllocatedClaims, all["DRAConsumableCapacity"]), newLister(q.Classes), slices, celCache(all.cel()))
	if err != nil {
		return err
	}
	times.Prepare = time.Since(began).Seconds()
	began = time.Now()
	if q.Node != nil {
		said.outcome = onNode(allocator, q.Node, q.Claims, q.limit(all))
	} else {
		said.Nodes = make(map[string]*outcome, len(q.Nodes))
		for _, node := range q.Nodes {
			said.Nodes[node.Name] = onNode(allocator, node, q.Claims, q.limit(all))
		}
	}
	times.Allocate, times.Steps = time.Since(began).Seconds(), steps(allocator)
	said.Allocator = implementation(allocator)
	return nil
}

func (q *allocateQuestion) limit(all gates) time.Duration {
	if !all["DRASchedulerFilterTimeout"] {
		return 0
	}
	if q.TimeoutSeconds == nil {
		return schedulerTimeout
	}
	return time.Duration(*q.TimeoutSeconds * float64(time.Second))
}

func onNode(allocator structured.Allocator, node *v1.Node, claims []*resourceapi.ResourceClaim, limit time.Duration) (said *outcome) {
	defer func() {
		if problem := recover(); problem != nil {
			fmt.Fprintf(os.Stderr, "oracle: panic for node %s: %v\n%s", node.Name, problem, debug.Stack())
			said = &outcome{Error: fmt.Sprint("panic: ", problem), ErrorKind: kindPanic}
		}
	}()
	ctx := context.Background()
	if limit > 0 {
		limited, cancel := context.WithTimeout(ctx, limit)
		defer cancel()
		ctx = limited
	}
	results, err := allocator.Allocate(ctx, node, claims)
	if err != nil {
		return &outcome{Error: err.Error(), ErrorKind: kindOf(err)}
	}
	if len(results) != len(claims) {
		results = nil
	}
	for _, result := range results {
		blankShareIDs(result)
	}
	return &outcome{Allocations: &results}
}

func kindOf(err error) string {
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		return kindTimeout
	case errors.Is(err, structured.ErrFailedAllocationOnNode):
		return kindNode
	}
	return kindFatal
}

// blankShareIDs puts "" in place of random identities; that there is one is what makes a share.
func blankShareIDs(result resourceapi.AllocationResult) {
	for i := range result.Devices.Results {
		if result.Devices.Results[i].ShareID != nil {
			result.Devices.Results[i].ShareID = new(types.UID)
		}
	}
}

// implementation is the last part of the package that the library chose.
func implementation(allocator structured.Allocator) string {
	name, _, _ := strings.Cut(strings.TrimPrefix(fmt.Sprintf("%T", allocator), "*"), ".")
	return name
}

// steps reads a public method whose result type is not public.
func steps(allocator structured.Allocator) int64 {
	method := reflect.ValueOf(allocator).MethodByName("GetStats")
	if !method.IsValid() {
		return 0
	}
	return reflect.Indirect(method.Call(nil)[0]).FieldByName("NumAllocateOneInvocations").Int()
}
