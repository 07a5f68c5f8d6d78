// Lays open the unexported functions of the kubelet's CPU manager. This file is put beside a copy
// of its cpu_assignment.go, outside of this tree; see build.

package cpumanager

import (
	"k8s.io/klog/v2"
	"k8s.io/kubernetes/pkg/kubelet/cm/cpumanager/topology"
	"k8s.io/utils/cpuset"
)

// Request is what pinfold calls struct pick_request.
type Request struct {
	N, Group                                   int
	Distributed, Spread, Uncore, AlignBySocket bool
}

// Hang is what a copy panics with instead of looping for ever; see build.
type Hang struct{}

// Pick answers a request as the static policy would.
func Pick(t *topology.CPUTopology, available cpuset.CPUSet, r Request) (cpuset.CPUSet, error) {
	sorting := CPUSortingStrategyPacked
	if r.Spread {
		sorting = CPUSortingStrategySpread
	}
	if r.Distributed {
		return takeByTopologyNUMADistributed(klog.Background(), t, available, r.N, r.Group, sorting, r.AlignBySocket)
	}
	return takeByTopologyNUMAPacked(klog.Background(), t, available, r.N, sorting, r.Uncore)
}

// sumOfGroups is what a corrected copy calls where the released one forgets the group size.
func sumOfGroups(m mapIntInt, keys []int, group int) int {
	n := 0
	for _, k := range keys {
		n += m[k] / group * group
	}
	return n
}
