// Answers picks with the kubelet's own code: as released, and with its known defects corrected.
// The cases come on standard input, written by tests/bench/pick_cases.c:
//
//	T <cpus> {<cpu> <core> <socket> <numa> <uncore>}
//	P <number> <n> <group> <distributed> <spread> <uncore> <align> <available>
//	B <name>   (the same fields)
//
// P is answered with "<number>\t<released>\t<corrected>", B with "<name>\t<ns>".
package main

import (
	"bufio"
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"
	"time"

	"k8s.io/kubernetes/pkg/kubelet/cm/cpumanager/topology"
	"k8s.io/utils/cpuset"

	corrected "scratch/corrected"
	released "scratch/released"
)

const benchTime = 500 * time.Millisecond

func must[T any](v T, err error) T {
	if err != nil {
		fmt.Fprintln(os.Stderr, "peer:", err)
		os.Exit(2)
	}
	return v
}

func numbers(words []string) []int {
	out := make([]int, len(words))
	for i, w := range words {
		out[i] = must(strconv.Atoi(w))
	}
	return out
}

func machine(words []string) *topology.CPUTopology {
	v := numbers(words)
	t := &topology.CPUTopology{CPUDetails: topology.CPUDetails{}}
	for ; len(v) >= 5; v = v[5:] {
		t.CPUDetails[v[0]] = topology.CPUInfo{CoreID: v[1], SocketID: v[2], NUMANodeID: v[3], UncoreCacheID: v[4]}
	}
	t.NumCPUs = len(t.CPUDetails)
	t.NumCores = t.CPUDetails.Cores().Size()
	t.NumSockets = t.CPUDetails.Sockets().Size()
	t.NumNUMANodes = t.CPUDetails.NUMANodes().Size()
	t.NumUncoreCache = t.CPUDetails.UncoreCaches().Size()
	return t
}

func text(s cpuset.CPUSet, err error) string {
	if err != nil {
		return "error: " + err.Error()
	}
	return s.String()
}

// asReleased survives that the released code never comes back.
func asReleased(t *topology.CPUTopology, available cpuset.CPUSet, r released.Request) (answer string) {
	defer func() {
		switch p := recover().(type) {
		case nil:
		case released.Hang:
			answer = "hang"
		default:
			panic(p)
		}
	}()
	return text(released.Pick(t, available, r))
}

// cpuTime counts all threads: what the garbage collector needs belongs to the price.
func cpuTime() time.Duration {
	var u syscall.Rusage
	must(0, syscall.Getrusage(syscall.RUSAGE_SELF, &u))
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

func measure(t *topology.CPUTopology, available cpuset.CPUSet, r released.Request) int64 {
	n, start := 0, cpuTime()
	for cpuTime()-start < benchTime || n < 2 {
		must(released.Pick(t, available, r))
		n++
	}
	return (cpuTime() - start).Nanoseconds() / int64(n)
}

func main() {
	in := bufio.NewScanner(os.Stdin)
	in.Buffer(nil, 1<<20)
	out := bufio.NewWriter(os.Stdout)
	defer out.Flush()
	var t *topology.CPUTopology
	for in.Scan() {
		words := strings.Split(in.Text(), " ")
		if words[0] == "T" {
			t = machine(words[2:])
			continue
		}
		v := numbers(words[2:8])
		r := released.Request{N: v[0], Group: v[1], Distributed: v[2] == 1, Spread: v[3] == 1,
			Uncore: v[4] == 1, AlignBySocket: v[5] == 1}
		available := must(cpuset.Parse(words[8]))
		if words[0] == "B" {
			fmt.Fprintf(out, "%s\t%d\n", words[1], measure(t, available, r))
			continue
		}
		fmt.Fprintf(out, "%s\t%s\t%s\n", words[1], asReleased(t, available, r),
			text(corrected.Pick(t, available, corrected.Request(r))))
	}
	must(0, in.Err())
}
