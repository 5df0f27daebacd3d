package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

const (
	mebibyte         = 1 << 20
	prohibited       = 2 // nvmlComputeMode_t
	exclusiveProcess = 3
	nvidiaMajor      = 195
)

// Where a container has the stand-in libcuda, which holds the state of the cards.
var libraries = []string{"/usr/lib/x86_64-linux-gnu/libcuda.so.*", "/usr/lib64/libcuda.so.*"}

type silicon struct {
	Gpus []gpu `json:"gpus"`
}

type gpu struct {
	Uuid              string        `json:"uuid"`
	Minor             int           `json:"minor"`
	TotalMemoryMib    uint64        `json:"total_memory_mib"`
	ReservedMemoryMib uint64        `json:"reserved_memory_mib"`
	MigCurrent        bool          `json:"mig_current"`
	ComputeMode       int           `json:"compute_mode"`
	GpuInstances      []gpuInstance `json:"gpu_instances"`
	Processes         []process     `json:"processes"`
}

type gpuInstance struct {
	Id               int               `json:"id"`
	MemoryMib        uint64            `json:"memory_mib"`
	ComputeInstances []computeInstance `json:"compute_instances"`
}

type computeInstance struct {
	Id   int    `json:"id"`
	Uuid string `json:"uuid"`
}

type process struct {
	Pid             int    `json:"pid"`
	MemoryBytes     uint64 `json:"memory_bytes"`
	GpuInstance     *int   `json:"gpu_instance"`
	ComputeInstance *int   `json:"compute_instance"`
}

// A device as CUDA sees it: a card, or a MIG device on one.
type device struct {
	uuid   string
	card   gpu
	isMig  bool
	memory uint64
	used   uint64
}

// directly opens the first visible device without MPS, under its compute mode. A container cannot write the hardware's
// state, so what is held this way is seen by nobody else.
func directly(size uint64) (Answer, error) {
	answer := Answer{Via: "direct", Bytes: size}
	cards, found, err := readCards()
	if err != nil {
		return answer, err
	}
	if !found {
		return refuse(answer, 100, "CUDA_ERROR_NO_DEVICE", "no libcuda here: this container was given no GPU"), nil
	}
	chosen, why := visible(cards)
	if chosen == nil {
		return refuse(answer, 100, "CUDA_ERROR_NO_DEVICE", why), nil
	}
	if why := closed(*chosen); why != "" {
		return refuse(answer, 46, "CUDA_ERROR_DEVICE_UNAVAILABLE", why), nil
	}
	if free := chosen.memory - chosen.used; size > free {
		return refuse(answer, 2, "CUDA_ERROR_OUT_OF_MEMORY", fmt.Sprintf("%d bytes asked for, %d bytes free", size, free)), nil
	}
	answer.Ok, answer.Result, answer.Device = true, "CUDA_SUCCESS", chosen.uuid
	return answer, nil
}

func refuse(answer Answer, code int, result, why string) Answer {
	answer.Code, answer.Result, answer.Why = code, result, why
	return answer
}

// readCards reads the state from SILICON_STATE, or from the stand-in libcuda; false when there is neither.
func readCards() ([]gpu, bool, error) {
	path := os.Getenv("SILICON_STATE")
	if path == "" {
		for _, pattern := range libraries {
			if names, _ := filepath.Glob(pattern); len(names) > 0 {
				path = names[0]
				break
			}
		}
	}
	if path == "" {
		return nil, false, nil
	}
	text, err := readLocked(path)
	if err != nil {
		return nil, false, err
	}
	var state silicon
	if err := json.Unmarshal(text, &state); err != nil {
		return nil, false, fmt.Errorf("%s is not a stand-in libcuda: %w", path, err)
	}
	return state.Gpus, true, nil
}

// readLocked reads a file that its writer changes in place under an flock.
func readLocked(path string) ([]byte, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	if err := syscall.Flock(int(file.Fd()), syscall.LOCK_SH); err != nil {
		return nil, err
	}
	return os.ReadFile(path)
}

// visible is the first device that CUDA_VISIBLE_DEVICES and the device nodes leave; nil and why when there is none.
func visible(cards []gpu) (*device, string) {
	var devices []device
	for _, card := range cards {
		if hasNode(fmt.Sprintf("/dev/nvidia%d", card.Minor), nvidiaMajor, card.Minor) {
			devices = append(devices, devicesOf(card)...)
		}
	}
	names, set := os.LookupEnv("CUDA_VISIBLE_DEVICES")
	if !set {
		names = "0"
	}
	name := strings.Split(names, ",")[0]
	for ordinal, candidate := range devices {
		if candidate.uuid == name || strconv.Itoa(ordinal) == name {
			return &candidate, ""
		}
	}
	return nil, fmt.Sprintf("no device %q among the %d whose device nodes are here", name, len(devices))
}

// devicesOf lists a card, or in MIG mode its MIG devices, each behind two capability nodes.
func devicesOf(card gpu) []device {
	if !card.MigCurrent {
		memory := (card.TotalMemoryMib - card.ReservedMemoryMib) * mebibyte
		return []device{{uuid: card.Uuid, card: card, memory: memory, used: used(card, func(process) bool { return true })}}
	}
	var devices []device
	for _, gi := range card.GpuInstances {
		for _, ci := range gi.ComputeInstances {
			// The fixed table of /proc/driver/nvidia-caps/mig-minors.
			access := 3 + (card.Minor*15+gi.Id)*9
			if !hasCapability(access) || !hasCapability(access+1+ci.Id) {
				continue
			}
			mine := func(p process) bool {
				return p.GpuInstance != nil && *p.GpuInstance == gi.Id && p.ComputeInstance != nil && *p.ComputeInstance == ci.Id
			}
			devices = append(devices, device{ci.Uuid, card, true, gi.MemoryMib * mebibyte, used(card, mine)})
		}
	}
	return devices
}

func used(card gpu, counts func(process) bool) (sum uint64) {
	for _, p := range card.Processes {
		if counts(p) {
			sum += p.MemoryBytes
		}
	}
	return sum
}

// closed says why a card's compute mode keeps us out, or nothing.
func closed(d device) string {
	switch {
	case d.isMig:
		return ""
	case d.card.ComputeMode == prohibited:
		return "the card's compute mode is PROHIBITED"
	case d.card.ComputeMode == exclusiveProcess && len(d.card.Processes) > 0:
		return fmt.Sprintf("the card's compute mode is EXCLUSIVE_PROCESS and process %d has it", d.card.Processes[0].Pid)
	}
	return ""
}

func hasCapability(minor int) bool {
	return exists(fmt.Sprintf("/dev/nvidia-caps/nvidia-cap%d", minor))
}

// hasNode says whether path is the character device of these numbers.
func hasNode(path string, major, minor int) bool {
	var stat syscall.Stat_t
	if err := syscall.Stat(path, &stat); err != nil || stat.Mode&syscall.S_IFMT != syscall.S_IFCHR {
		return false
	}
	return int(stat.Rdev>>8&0xfff) == major && int(stat.Rdev&0xff|stat.Rdev>>12&0xfff00) == minor
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}
