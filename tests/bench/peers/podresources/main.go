// The kubelet's own PodResources library as a client of any socket, and as a stand-in for a
// kubelet that has devices: podresources client SOCKET list|allocatable|get [NAMESPACE NAME], or
// podresources server SOCKET FILE [hang|broken], with the two answers as JSON in FILE; and as a
// device plugin of the kubelet: podresources plugin RESOURCE NUMA-NODE..., one device for each node.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	v1 "k8s.io/kubelet/pkg/apis/podresources/v1"
)

func fail(err error) {
	fmt.Fprintln(os.Stderr, err)
	os.Exit(1)
}

func client(socket string, words []string) error {
	conn, err := grpc.NewClient("unix://"+socket, grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(16<<20)))
	if err != nil {
		return err
	}
	defer conn.Close()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute) // an emulated machine is slow
	defer cancel()
	lister := v1.NewPodResourcesListerClient(conn)
	var answer proto.Message
	switch words[0] {
	case "list":
		answer, err = lister.List(ctx, &v1.ListPodResourcesRequest{})
	case "allocatable":
		answer, err = lister.GetAllocatableResources(ctx, &v1.AllocatableResourcesRequest{})
	case "get":
		answer, err = lister.Get(ctx, &v1.GetPodResourcesRequest{PodNamespace: words[1], PodName: words[2]})
	default:
		err = fmt.Errorf("unknown question %q", words[0])
	}
	if err != nil {
		return err
	}
	text, err := protojson.Marshal(answer)
	fmt.Println(string(text))
	return err
}

type server struct {
	v1.UnimplementedPodResourcesListerServer
	list        v1.ListPodResourcesResponse
	allocatable v1.AllocatableResourcesResponse
	mood        string
}

func (s *server) moody(ctx context.Context) error {
	switch s.mood {
	case "hang":
		<-ctx.Done()
		return ctx.Err()
	case "broken":
		return status.Error(codes.ResourceExhausted, "rejected by rate limit")
	}
	return nil
}

func (s *server) List(ctx context.Context, _ *v1.ListPodResourcesRequest) (*v1.ListPodResourcesResponse, error) {
	return &s.list, s.moody(ctx)
}

func (s *server) GetAllocatableResources(ctx context.Context, _ *v1.AllocatableResourcesRequest) (*v1.AllocatableResourcesResponse, error) {
	return &s.allocatable, s.moody(ctx)
}

func serve(socket, file string, words []string) error {
	s := &server{}
	if len(words) > 0 {
		s.mood = words[0]
	}
	text, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	var both struct{ List, Allocatable json.RawMessage }
	if err := json.Unmarshal(text, &both); err != nil {
		return err
	}
	if err := protojson.Unmarshal(both.List, &s.list); err != nil {
		return err
	}
	if err := protojson.Unmarshal(both.Allocatable, &s.allocatable); err != nil {
		return err
	}
	listener, err := net.Listen("unix", socket)
	if err != nil {
		return err
	}
	g := grpc.NewServer()
	v1.RegisterPodResourcesListerServer(g, s)
	return g.Serve(listener)
}

func main() {
	if len(os.Args) >= 4 && os.Args[1] == "client" {
		if err := client(os.Args[2], os.Args[3:]); err != nil {
			fail(err)
		}
		return
	}
	if len(os.Args) >= 4 && os.Args[1] == "server" {
		fail(serve(os.Args[2], os.Args[3], os.Args[4:]))
	}
	if len(os.Args) >= 4 && os.Args[1] == "plugin" {
		fail(serveDevices(os.Args[2], os.Args[3:]))
	}
	fail(fmt.Errorf("podresources client|server SOCKET ..., or podresources plugin RESOURCE NUMA-NODE..."))
}
