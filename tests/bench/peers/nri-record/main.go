// An NRI plugin written with the Go library, for tests/e2e/record-nri: it subscribes to the events of all pods and
// containers and returns constant CPU settings, which tests/unit/test_nri_wire.c returns from our own library.
package main

import (
	"context"
	"os"

	"github.com/containerd/nri/pkg/api"
	"github.com/containerd/nri/pkg/stub"
)

const cpus = "0"

type plugin struct{}

func (plugin) Synchronize(_ context.Context, _ []*api.PodSandbox, containers []*api.Container) ([]*api.ContainerUpdate, error) {
	var updates []*api.ContainerUpdate
	for _, c := range containers {
		u := &api.ContainerUpdate{ContainerId: c.GetId()}
		u.SetLinuxCPUSetCPUs(cpus)
		updates = append(updates, u)
	}
	return updates, nil
}

func (plugin) CreateContainer(context.Context, *api.PodSandbox, *api.Container) (*api.ContainerAdjustment, []*api.ContainerUpdate, error) {
	adjust := &api.ContainerAdjustment{}
	adjust.SetLinuxCPUShares(20)
	adjust.SetLinuxCPUQuota(3000)
	adjust.SetLinuxCPUPeriod(100000)
	adjust.SetLinuxCPUSetCPUs(cpus)
	return adjust, nil, nil
}

func (plugin) UpdateContainer(_ context.Context, _ *api.PodSandbox, c *api.Container, _ *api.LinuxResources) ([]*api.ContainerUpdate, error) {
	u := &api.ContainerUpdate{ContainerId: c.GetId()}
	u.SetLinuxCPUSetCPUs(cpus)
	return []*api.ContainerUpdate{u}, nil
}

func (plugin) StopContainer(context.Context, *api.PodSandbox, *api.Container) ([]*api.ContainerUpdate, error) {
	return nil, nil
}

func (plugin) RunPodSandbox(context.Context, *api.PodSandbox) error    { return nil }
func (plugin) StopPodSandbox(context.Context, *api.PodSandbox) error   { return nil }
func (plugin) RemovePodSandbox(context.Context, *api.PodSandbox) error { return nil }

func (plugin) PostCreateContainer(context.Context, *api.PodSandbox, *api.Container) error { return nil }
func (plugin) StartContainer(context.Context, *api.PodSandbox, *api.Container) error      { return nil }
func (plugin) PostStartContainer(context.Context, *api.PodSandbox, *api.Container) error  { return nil }
func (plugin) PostUpdateContainer(context.Context, *api.PodSandbox, *api.Container) error { return nil }
func (plugin) RemoveContainer(context.Context, *api.PodSandbox, *api.Container) error     { return nil }

func main() {
	s, err := stub.New(plugin{}, stub.WithPluginName("recorder"), stub.WithPluginIdx("20"), stub.WithSocketPath(os.Args[1]))
	if err != nil {
		panic(err)
	}
	if err := s.Run(context.Background()); err != nil {
		panic(err)
	}
}
