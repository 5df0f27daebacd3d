// Oracle tells what Kubernetes itself says about devices, selectors and claims.
//
// It is built from the very libraries that kube-scheduler 1.37.2 uses. A line of its input is one question in JSON, the
// same line of its output is the answer; it ends with its input and needs neither cluster nor network. What a question
// may hold is written at celQuestion and allocateQuestion.
package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime/debug"
	"time"

	kjson "sigs.k8s.io/json"
)

// What went wrong, as the field errorKind of an answer.
const (
	kindInput   = "input"   // the question is wrong, Kubernetes was not asked
	kindNode    = "node"    // no allocation on this node; the scheduler goes on with the others
	kindTimeout = "timeout" // the time for one node is over; the scheduler tries the pod again later
	kindFatal   = "fatal"   // the scheduler stops looking at nodes
	kindPanic   = "panic"   // the code of Kubernetes panicked
)

// common is what every question may have.
type common struct {
	// ID comes back in the answer. Any JSON value.
	ID   json.RawMessage `json:"id,omitempty"`
	Kind string          `json:"kind"`
	// Features switches feature gates, by their names in Kubernetes.
	Features map[string]bool `json:"features,omitempty"`
	// Timing adds seconds to the answer; Repeat does the same work so often, and the fastest time counts.
	Timing bool `json:"timing,omitempty"`
	Repeat int  `json:"repeat,omitempty"`
	// Keep stores the objects of this question under a name; Use takes from there those which this question lacks. So
	// a large cluster is parsed once.
	Keep string `json:"keep,omitempty"`
	Use  string `json:"use,omitempty"`
}

type failure struct {
	ID        json.RawMessage `json:"id,omitempty"`
	Error     string          `json:"error"`
	ErrorKind string          `json:"errorKind"`
}

// wrongQuestion is the error of the one who asks.
type wrongQuestion struct{ error }

func wrong(format string, arguments ...any) error {
	return wrongQuestion{fmt.Errorf(format, arguments...)}
}

func main() {
	if err := serve(os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "oracle:", err)
		os.Exit(1)
	}
}

// serve answers line by line and flushes each answer, so that one may ask, wait and ask again.
func serve(input io.Reader, output io.Writer) error {
	lines := bufio.NewReaderSize(input, 1<<20)
	buffer := bufio.NewWriter(output)
	encoder := json.NewEncoder(buffer)
	encoder.SetEscapeHTML(false)
	for {
		line, err := lines.ReadBytes('\n')
		if line = bytes.TrimSpace(line); len(line) > 0 {
			if err := errors.Join(encoder.Encode(answer(line)), buffer.Flush()); err != nil {
				return err
			}
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// answer never fails and never panics: what goes wrong is an answer too.
func answer(line []byte) (said any) {
	var head common
	defer func() {
		if problem := recover(); problem != nil {
			fmt.Fprintf(os.Stderr, "oracle: panic: %v\n%s", problem, debug.Stack())
			said = failure{head.ID, fmt.Sprint("panic: ", problem), kindPanic}
		}
	}()
	said, err := ask(line, &head)
	if err == nil {
		return said
	}
	kind := kindFatal
	if errors.As(err, new(wrongQuestion)) {
		kind = kindInput
	}
	return failure{head.ID, err.Error(), kind}
}

func ask(line []byte, head *common) (any, error) {
	began := time.Now()
	if err := kjson.UnmarshalCaseSensitivePreserveInts(line, head); err != nil {
		return nil, wrong("cannot parse the question: %w", err)
	}
	switch head.Kind {
	case "cel":
		question := &celQuestion{}
		if err := parse(line, question); err != nil {
			return nil, err
		}
		return question.answer()
	case "allocate":
		question := &allocateQuestion{}
		if err := parse(line, question); err != nil {
			return nil, err
		}
		return question.answer(time.Since(began))
	}
	return nil, wrong("unknown kind %q, it is \"cel\" or \"allocate\"", head.Kind)
}

// parse is strict: a misspelt field must not weaken a test unseen.
func parse(line []byte, question any) error {
	strict, err := kjson.UnmarshalStrict(line, question)
	if err = errors.Join(err, errors.Join(strict...)); err != nil {
		return wrong("cannot parse the question: %w", err)
	}
	return nil
}

// take gives *field the kept value where the question has none.
func take[T any](field *[]T, kept []T) {
	if *field == nil {
		*field = kept
	}
}
