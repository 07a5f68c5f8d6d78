// The agent's pinning written with the Go library, in the style of its sample plugins: management pods on the
// management CPUs with shares and quota from their annotation, all others on the shared CPUs.
package main

import (
	"context"
	"encoding/json"
	"os"

	"github.com/containerd/nri/pkg/api"
	"github.com/containerd/nri/pkg/stub"
)

const (
	target    = "target.workload.openshift.io/management"
	resources = "resources.workload.openshift.io/"
)

type settings struct {
	CPUShares uint64 `json:"cpushares"`
	CPULimit  int64  `json:"cpulimit"`
}

type plugin struct {
	containers map[string]string
}

func (p *plugin) cpu(pod *api.PodSandbox, c *api.Container) (*api.LinuxCPU, error) {
	if _, ok := pod.GetAnnotations()[target]; !ok {
		return &api.LinuxCPU{Cpus: "1"}, nil
	}
	cpu := &api.LinuxCPU{Cpus: "0"}
	if text, ok := pod.GetAnnotations()[resources+c.GetName()]; ok {
		var s settings
		if err := json.Unmarshal([]byte(text), &s); err != nil {
			return nil, err
		}
		if s.CPUShares != 0 {
			cpu.Shares = api.UInt64(s.CPUShares)
		}
		if s.CPULimit != 0 {
			cpu.Quota = api.Int64(max(s.CPULimit*100, 1000))
		}
	}
	return cpu, nil
}

func (p *plugin) Synchronize(_ context.Context, pods []*api.PodSandbox, containers []*api.Container) ([]*api.ContainerUpdate, error) {
	byID := map[string]*api.PodSandbox{}
	for _, pod := range pods {
		byID[pod.GetId()] = pod
	}
	var updates []*api.ContainerUpdate
	for _, c := range containers {
		cpu, err := p.cpu(byID[c.GetPodSandboxId()], c)
		if err != nil {
			return nil, err
		}
		p.containers[c.GetId()] = cpu.Cpus
		u := &api.ContainerUpdate{ContainerId: c.GetId(), IgnoreFailure: true}
		u.SetLinuxCPUSetCPUs(cpu.Cpus)
		updates = append(updates, u)
	}
	return updates, nil
}

func (p *plugin) CreateContainer(_ context.Context, pod *api.PodSandbox, c *api.Container) (*api.ContainerAdjustment, []*api.ContainerUpdate, error) {
	cpu, err := p.cpu(pod, c)
	if err != nil {
		return nil, nil, err
	}
	p.containers[c.GetId()] = cpu.Cpus
	adjust := &api.ContainerAdjustment{}
	adjust.SetLinuxCPUSetCPUs(cpu.Cpus)
	if cpu.Shares != nil {
		adjust.SetLinuxCPUShares(cpu.Shares.GetValue())
	}
	if cpu.Quota != nil {
		adjust.SetLinuxCPUQuota(cpu.Quota.GetValue())
	}
	return adjust, nil, nil
}

func (p *plugin) RemovePodSandbox(context.Context, *api.PodSandbox) error { return nil }

func main() {
	s, err := stub.New(&plugin{containers: map[string]string{}}, stub.WithPluginName("peer"),
		stub.WithPluginIdx("90"), stub.WithSocketPath(os.Args[1]))
	if err != nil {
		panic(err)
	}
	if err := s.Run(context.Background()); err != nil {
		panic(err)
	}
}
