// A CUDA program for the stand-in silicon, for containers without Python: `cudaclient alloc 10G [--hold]`.
//
// It does what `python -m simulator.silicon.cuda` does, with the same one-line JSON answer and exit status: it goes
// through MPS when a daemon answers in CUDA_MPS_PIPE_DIRECTORY, and else opens a card itself (direct.go). The status is
// the CUresult, 1 above 255. With --hold a context lives until this program is ended.
package main

import (
	"encoding/json"
	"fmt"
	"os"
	"os/signal"
	"regexp"
	"strconv"
	"syscall"
)

const usage = "usage: cudaclient alloc <integer>G|M [--hold]"

var memoryValue = regexp.MustCompile(`^(\d+)([GM])$`)

// Answer is what both ways of opening a device end in.
type Answer struct {
	Ok                     bool     `json:"ok"`
	Via                    string   `json:"via"`
	Bytes                  uint64   `json:"bytes"`
	Result                 string   `json:"result"`
	Code                   int      `json:"code"`
	Device                 string   `json:"device,omitempty"`
	ServerPid              *int     `json:"server_pid,omitempty"`
	ActiveThreadPercentage *float64 `json:"active_thread_percentage,omitempty"`
	MemoryLimitBytes       *uint64  `json:"memory_limit_bytes,omitempty"`
	Why                    string   `json:"why,omitempty"`
}

func main() {
	size, hold, err := arguments(os.Args[1:])
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(64)
	}
	connection := dialDaemon()
	var answer Answer
	if connection != nil {
		answer, err = throughMps(connection, size)
	} else {
		answer, err = directly(size)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(70)
	}
	print(answer)
	if answer.Ok && hold {
		wait(connection)
	}
	os.Exit(status(answer.Code))
}

func arguments(words []string) (size uint64, hold bool, err error) {
	if len(words) < 2 || words[0] != "alloc" {
		return 0, false, fmt.Errorf(usage)
	}
	found := memoryValue.FindStringSubmatch(words[1])
	if found == nil {
		return 0, false, fmt.Errorf("%q is no memory value; %s", words[1], usage)
	}
	size, err = strconv.ParseUint(found[1], 10, 32)
	unit := map[string]uint64{"G": 1 << 30, "M": 1 << 20}[found[2]]
	return size * unit, len(words) > 2 && words[2] == "--hold", err
}

// print writes the answer to stdout, and a refusal in words to stderr too.
func print(answer Answer) {
	line, err := json.Marshal(answer)
	if err != nil {
		panic(err)
	}
	fmt.Println(string(line))
	if !answer.Ok {
		fmt.Fprintf(os.Stderr, "%s: %s\n", answer.Result, answer.Why)
	}
}

func status(code int) int {
	if code > 255 {
		return 1
	}
	return code
}

// wait ends with a signal (status 0), or with the MPS server (status 1): then the context is lost.
func wait(connection *daemon) {
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGTERM, syscall.SIGINT)
	lost := make(chan struct{})
	if connection != nil {
		go func() {
			connection.lines.ReadString('\n')
			close(lost)
		}()
	}
	select {
	case <-signals:
	case <-lost:
		fmt.Fprintln(os.Stderr, "The MPS server has gone: the context is lost.")
		os.Exit(1)
	}
}
