package main

import (
	"context"
	"fmt"
	"net"
	"os"
	"strconv"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	device "k8s.io/kubelet/pkg/apis/deviceplugin/v1beta1"
)

// A device plugin whose devices are names with a NUMA node and nothing else.
type plugin struct {
	device.UnimplementedDevicePluginServer
	devices []*device.Device
}

func (p *plugin) GetDevicePluginOptions(context.Context, *device.Empty) (*device.DevicePluginOptions, error) {
	return &device.DevicePluginOptions{}, nil
}

func (p *plugin) ListAndWatch(_ *device.Empty, stream grpc.ServerStreamingServer[device.ListAndWatchResponse]) error {
	if err := stream.Send(&device.ListAndWatchResponse{Devices: p.devices}); err != nil {
		return err
	}
	<-stream.Context().Done()
	return nil
}

func (p *plugin) Allocate(_ context.Context, r *device.AllocateRequest) (*device.AllocateResponse, error) {
	answer := &device.AllocateResponse{}
	for range r.ContainerRequests {
		answer.ContainerResponses = append(answer.ContainerResponses, &device.ContainerAllocateResponse{})
	}
	return answer, nil
}

// Serves one device for each NUMA node that is named, and registers with the kubelet of this machine.
func serveDevices(resource string, nodes []string) error {
	p := &plugin{}
	for i, text := range nodes {
		node, err := strconv.ParseInt(text, 10, 64)
		if err != nil {
			return err
		}
		p.devices = append(p.devices, &device.Device{ID: fmt.Sprintf("device-%d", i), Health: device.Healthy,
			Topology: &device.TopologyInfo{Nodes: []*device.NUMANode{{ID: node}}}})
	}
	const endpoint = "podresources.sock"
	_ = os.Remove(device.DevicePluginPath + endpoint)
	listener, err := net.Listen("unix", device.DevicePluginPath+endpoint)
	if err != nil {
		return err
	}
	g := grpc.NewServer()
	device.RegisterDevicePluginServer(g, p)
	ended := make(chan error)
	go func() { ended <- g.Serve(listener) }()
	conn, err := grpc.NewClient("unix://"+device.KubeletSocket, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return err
	}
	defer conn.Close()
	_, err = device.NewRegistrationClient(conn).Register(context.Background(),
		&device.RegisterRequest{Version: device.Version, Endpoint: endpoint, ResourceName: resource})
	if err != nil {
		return err
	}
	return <-ended
}
