package main

import (
	"bufio"
	"encoding/json"
	"net"
	"os"
	"path/filepath"
)

// What an MPS client hands to its server.
var passedOn = []string{"CUDA_VISIBLE_DEVICES", "CUDA_MPS_ACTIVE_THREAD_PERCENTAGE", "CUDA_MPS_PINNED_DEVICE_MEM_LIMIT"}

type daemon struct {
	socket net.Conn
	lines  *bufio.Reader
}

type message struct {
	Cuda        string            `json:"cuda"`
	Environment map[string]string `json:"environment,omitempty"`
	Bytes       uint64            `json:"bytes"`
}

// dialDaemon connects to the control daemon of the pipe directory, or returns nil when nothing answers there.
func dialDaemon() *daemon {
	pipes := os.Getenv("CUDA_MPS_PIPE_DIRECTORY")
	if pipes == "" {
		pipes = "/tmp/nvidia-mps"
	}
	socket, err := net.Dial("unix", filepath.Join(pipes, "control"))
	if err != nil {
		return nil
	}
	return &daemon{socket, bufio.NewReader(socket)}
}

func throughMps(connection *daemon, size uint64) (Answer, error) {
	environment := map[string]string{}
	for _, name := range passedOn {
		if value, set := os.LookupEnv(name); set {
			environment[name] = value
		}
	}
	answer := Answer{Via: "mps", Bytes: size}
	if err := connection.ask(message{Cuda: "connect", Environment: environment}, &answer); err != nil {
		return answer, err
	}
	if answer.Code != 0 {
		return answer, nil
	}
	err := connection.ask(message{Cuda: "alloc", Bytes: size}, &answer)
	answer.Ok = answer.Code == 0
	return answer, err
}

// ask sends one line and lays the daemon's answer over `answer`.
func (d *daemon) ask(m message, answer *Answer) error {
	if err := json.NewEncoder(d.socket).Encode(m); err != nil {
		return err
	}
	line, err := d.lines.ReadBytes('\n')
	if err != nil {
		return err
	}
	return json.Unmarshal(line, answer)
}
