package main

import (
	"context"
	"encoding/json"
	"time"

	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apiserver/pkg/cel/environment"
	"k8s.io/dynamic-resource-allocation/cel"
)

// celQuestion asks what each expression says about each device.
type celQuestion struct {
	common
	// Driver is device.driver and the domain of names without one.
	Driver      string               `json:"driver"`
	Expressions []string             `json:"expressions"`
	Devices     []resourceapi.Device `json:"devices,omitempty"`
	// Environment is "stored" (the default), in which kube-scheduler compiles, or "new", in which the API server
	// checks new objects.
	Environment string `json:"environment,omitempty"`
	// Costs adds actual costs and the estimate that the API server compares with its limit.
	Costs bool `json:"costs,omitempty"`
}

type celAnswer struct {
	ID      json.RawMessage `json:"id,omitempty"`
	Results []celResult     `json:"results"`
	Timing  *celTiming      `json:"timing,omitempty"`
}

// celResult has either a compile error or, for each device, true, false or {"error": text}.
type celResult struct {
	CompileError string    `json:"compileError,omitempty"`
	Values       []any     `json:"values,omitempty"`
	Costs        []*uint64 `json:"costs,omitempty"`
	MaxCost      *uint64   `json:"maxCost,omitempty"`
}

// celTiming says how long all expressions took together.
type celTiming struct {
	Compile  float64 `json:"compileSeconds"`
	Evaluate float64 `json:"evaluateSeconds"`
}

type valueError struct {
	Error string `json:"error"`
}

var keptDevices = map[string][]resourceapi.Device{}

func (q *celQuestion) answer() (any, error) {
	all, err := gatesWith(q.Features)
	if err != nil {
		return nil, err
	}
	compile, err := q.compiler(all.cel())
	if err != nil {
		return nil, err
	}
	if q.Driver == "" {
		return nil, wrong("driver is missing")
	}
	if q.Use != "" {
		take(&q.Devices, keptDevices[q.Use])
	}
	if q.Keep != "" {
		keptDevices[q.Keep] = q.Devices
	}
	said := celAnswer{ID: q.ID, Results: make([]celResult, len(q.Expressions))}
	times := celTiming{}
	for i, expression := range q.Expressions {
		began := time.Now()
		compiled := compile(expression)
		times.Compile += time.Since(began).Seconds()
		said.Results[i] = q.results(compiled, &times)
	}
	if q.Timing {
		said.Timing = &times
	}
	return said, nil
}

// compiler returns what compiles an expression. The scheduler's cache does not estimate costs.
func (q *celQuestion) compiler(features cel.Features) (func(string) cel.CompilationResult, error) {
	environmentType := environment.StoredExpressions
	switch q.Environment {
	case "", "stored":
		if !q.Costs {
			return celCache(features).GetOrCompile, nil
		}
	case "new":
		environmentType = environment.NewExpressions
	default:
		return nil, wrong("unknown environment %q, it is \"stored\" or \"new\"", q.Environment)
	}
	options := cel.Options{EnvType: &environmentType, DisableCostEstimation: !q.Costs}
	return func(expression string) cel.CompilationResult {
		return cel.GetCompiler(features).CompileCELExpression(expression, options)
	}, nil
}

func (q *celQuestion) results(compiled cel.CompilationResult, times *celTiming) celResult {
	if compiled.Error != nil {
		return celResult{CompileError: compiled.Error.Error()}
	}
	var said celResult
	fastest := 0.0
	for round := range max(q.Repeat, 1) {
		said = celResult{Values: make([]any, len(q.Devices)), Costs: make([]*uint64, len(q.Devices))}
		began := time.Now()
		for i := range q.Devices {
			said.Values[i], said.Costs[i] = q.value(compiled, &q.Devices[i])
		}
		if seconds := time.Since(began).Seconds(); round == 0 || seconds < fastest {
			fastest = seconds
		}
	}
	times.Evaluate += fastest
	if q.Costs {
		said.MaxCost = &compiled.MaxCost
	} else {
		said.Costs = nil
	}
	return said
}

func (q *celQuestion) value(compiled cel.CompilationResult, device *resourceapi.Device) (value any, cost *uint64) {
	matches, details, err := compiled.DeviceMatches(context.Background(), cel.Device{
		Driver:                   q.Driver,
		AllowMultipleAllocations: device.AllowMultipleAllocations,
		Attributes:               device.Attributes,
		Capacity:                 device.Capacity,
	})
	if details != nil {
		cost = details.ActualCost()
	}
	if err != nil {
		return valueError{err.Error()}, cost
	}
	return matches, cost
}
