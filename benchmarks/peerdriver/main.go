// Command peerdriver is the peer of `make bench NAME=prepare|node`: a DRA driver on Kubernetes' own kubelet helper
// (k8s.io/dynamic-resource-allocation/kubeletplugin) that does on disk and in the API what Portico's does.
//
// Prepare: a checkpoint that announces the claim, its CDI file, the checkpoint again, then the claim's status, which
// nobody waits for. Unprepare: the file goes, then the entry. Each write is flushed with its folder. The client's rate
// is raised: as it comes, client-go lets a prepare wait 200 ms after ten.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	applymeta "k8s.io/client-go/applyconfigurations/meta/v1"
	apply "k8s.io/client-go/applyconfigurations/resource/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/dynamic-resource-allocation/kubeletplugin"
	"k8s.io/dynamic-resource-allocation/resourceslice"
)

const rate = 1000 // requests a second, and at once

type entry struct {
	State   string   `json:"state"`
	Devices []string `json:"devices"`
}

type cdiDevice struct {
	Name           string              `json:"name"`
	ContainerEdits map[string][]string `json:"containerEdits"`
}

type cdiSpec struct {
	Version string      `json:"cdiVersion"`
	Kind    string      `json:"kind"`
	Devices []cdiDevice `json:"devices"`
}

type driver struct {
	client          kubernetes.Interface
	name, cdi, ckpt string
	mu              sync.Mutex
	prepared        map[types.UID]entry
}

func (d *driver) path(uid types.UID) string {
	return filepath.Join(d.cdi, d.name+"-"+string(uid)+".json")
}

// write replaces a file; it and its folder are on the disk when this returns.
func write(path string, data []byte) error {
	aside := filepath.Join(filepath.Dir(path), "."+filepath.Base(path)+".next")
	f, err := os.OpenFile(aside, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return err
	}
	if err := os.Rename(aside, path); err != nil {
		return err
	}
	return syncFolder(filepath.Dir(path))
}

func syncFolder(path string) error {
	dir, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(dir.Sync(), dir.Close())
}

// change writes the checkpoint as step leaves it.
func (d *driver) change(step func(map[types.UID]entry)) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	step(d.prepared)
	data, err := json.Marshal(d.prepared)
	if err != nil {
		return err
	}
	return write(d.ckpt, data)
}

func (d *driver) prepare(claim *resourceapi.ResourceClaim) (r kubeletplugin.PrepareResult) {
	spec := cdiSpec{Version: "0.6.0", Kind: d.name + "/claim"}
	var names []string
	for _, result := range claim.Status.Allocation.Devices.Results {
		if result.Driver != d.name {
			continue
		}
		name := string(claim.UID) + "-" + result.Device
		edits := map[string][]string{"env": {"PEER_DEVICE=" + result.Device}}
		spec.Devices = append(spec.Devices, cdiDevice{Name: name, ContainerEdits: edits})
		r.Devices = append(r.Devices, kubeletplugin.Device{
			Requests: []string{result.Request}, PoolName: result.Pool, DeviceName: result.Device, ShareID: result.ShareID,
			CDIDeviceIDs: []string{spec.Kind + "=" + name},
		})
		names = append(names, result.Device)
	}
	r.Err = d.keep(claim.UID, spec, names)
	if r.Err == nil {
		go d.tell(claim, r.Devices)
	}
	return r
}

func (d *driver) keep(uid types.UID, spec cdiSpec, names []string) error {
	if err := d.change(func(all map[types.UID]entry) { all[uid] = entry{"started", names} }); err != nil {
		return err
	}
	data, err := json.Marshal(spec)
	if err != nil {
		return err
	}
	if err := write(d.path(uid), data); err != nil {
		return err
	}
	return d.change(func(all map[types.UID]entry) { all[uid] = entry{"completed", names} })
}

// tell applies the claim's status as a field manager of our own.
func (d *driver) tell(claim *resourceapi.ResourceClaim, devices []kubeletplugin.Device) {
	ready := applymeta.Condition().WithType("Ready").WithStatus(metav1.ConditionTrue).WithReason("Prepared").
		WithMessage("prepared").WithLastTransitionTime(metav1.Now())
	status := apply.ResourceClaimStatus()
	for _, device := range devices {
		one := apply.AllocatedDeviceStatus().WithDriver(d.name).WithPool(device.PoolName).WithDevice(device.DeviceName)
		if device.ShareID != nil {
			one = one.WithShareID(string(*device.ShareID))
		}
		status = status.WithDevices(one.WithConditions(ready))
	}
	wish := apply.ResourceClaim(claim.Name, claim.Namespace).WithUID(claim.UID).WithStatus(status)
	options := metav1.ApplyOptions{FieldManager: d.name, Force: true}
	_, err := d.client.ResourceV1().ResourceClaims(claim.Namespace).ApplyStatus(context.Background(), wish, options)
	if err != nil {
		fmt.Fprintln(os.Stderr, "status not written:", err)
	}
}

func (d *driver) unprepare(uid types.UID) error {
	if _, known := d.prepared[uid]; !known { // calls come one at a time
		return nil
	}
	if err := os.Remove(d.path(uid)); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	if err := syncFolder(d.cdi); err != nil {
		return err
	}
	return d.change(func(all map[types.UID]entry) { delete(all, uid) })
}

func (d *driver) PrepareResourceClaims(_ context.Context, claims []*resourceapi.ResourceClaim) (map[types.UID]kubeletplugin.PrepareResult, error) {
	results := make(map[types.UID]kubeletplugin.PrepareResult, len(claims))
	for _, claim := range claims {
		results[claim.UID] = d.prepare(claim)
	}
	return results, nil
}

func (d *driver) UnprepareResourceClaims(_ context.Context, claims []kubeletplugin.NamespacedObject) (map[types.UID]error, error) {
	results := make(map[types.UID]error, len(claims))
	for _, claim := range claims {
		results[claim.UID] = d.unprepare(claim.UID)
	}
	return results, nil
}

func (d *driver) HandleError(_ context.Context, err error, message string) {
	fmt.Fprintln(os.Stderr, message, err)
}

func (d *driver) WatchHealthStatus(context.Context, chan<- kubeletplugin.DeviceHealthReport) error {
	return kubeletplugin.ErrHealthNotSupported
}

func main() {
	kubeconfig := flag.String("kubeconfig", "", "kubeconfig file")
	name := flag.String("driver-name", "peer.portico.dev", "driver name")
	node := flag.String("node-name", "", "node name")
	cdi := flag.String("cdi-dir", "", "folder for CDI files")
	registry := flag.String("registrar-dir", "", "folder for registration sockets")
	data := flag.String("plugin-dir", "", "own folder")
	file := flag.String("slices", "", "JSON file with the slices to publish: [{devices, sharedCounters}]")
	flag.Parse()

	config, err := clientcmd.BuildConfigFromFlags("", *kubeconfig)
	must(err)
	config.QPS, config.Burst = rate, rate
	client, err := kubernetes.NewForConfig(config)
	must(err)
	must(os.MkdirAll(*data, 0o750))
	d := &driver{client: client, name: *name, cdi: *cdi, ckpt: filepath.Join(*data, "checkpoint.json"), prepared: map[types.UID]entry{}}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	helper, err := kubeletplugin.Start(ctx, d, kubeletplugin.KubeClient(client), kubeletplugin.NodeName(*node),
		kubeletplugin.DriverName(*name), kubeletplugin.RegistrarDirectoryPath(*registry),
		kubeletplugin.PluginDataDirectoryPath(*data))
	must(err)
	var slices []resourceslice.Slice
	content, err := os.ReadFile(*file)
	must(err)
	must(json.Unmarshal(content, &slices))
	pools := map[string]resourceslice.Pool{*node: {Slices: slices}}
	must(helper.PublishResources(ctx, resourceslice.DriverResources{Pools: pools}))
	go func() {
		for status := helper.RegistrationStatus(); status == nil || !status.PluginRegistered; status = helper.RegistrationStatus() {
			time.Sleep(5 * time.Millisecond)
		}
		fmt.Println("driver registered with the kubelet")
	}()
	<-ctx.Done()
	helper.Stop()
}

func must(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
