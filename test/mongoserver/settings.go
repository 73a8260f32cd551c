package mongoserver

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
)

func (s *Server) arguments(n *node) []string {
	args := []string{
		"--dbpath", n.path("data"),
		"--bind_ip", "127.0.0.1",
		"--port", strconv.Itoa(n.port),
		"--nounixsocket",
		"--wiredTigerCacheSizeGB", fmt.Sprintf("%.3f", float64(s.opts.CacheMB)/1024),
	}
	if !s.opts.Standalone {
		args = append(args, "--replSet", setName, "--oplogSize", strconv.Itoa(s.opts.OplogMB))
	}
	if s.opts.OplogMB < defaultOplogMB {
		// What the last checkpoint does not hold stays in the oplog whatever its size,
		// and checkpoints come once a minute otherwise. The command fsync does not help.
		args = append(args, "--syncdelay", "1")
	}
	if s.opts.Auth {
		args = append(args, "--auth")
		if !s.opts.Standalone {
			args = append(args, "--keyFile", s.keyFile())
		}
	}
	if s.opts.TLS {
		args = append(args, "--tlsMode", "requireTLS", "--tlsCertificateKeyFile", s.certFile(),
			"--tlsCAFile", s.CAFile(), "--tlsAllowConnectionsWithoutCertificates")
	}
	params := map[string]string{
		"diagnosticDataCollectionEnabled": "false",
		// A node that is told to end would first keep its clients for 15 s.
		"shutdownTimeoutMillisForSignaledShutdown": "100",
	}
	if s.opts.TestCommands {
		params["enableTestCommands"] = "1"
	}
	maps.Copy(params, s.opts.Params)
	for _, name := range slices.Sorted(maps.Keys(params)) {
		args = append(args, "--setParameter", name+"="+params[name])
	}
	return append(args, s.opts.Args...)
}
