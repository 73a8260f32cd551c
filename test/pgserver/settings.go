package pgserver

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/walrelay/walrelay/test/ground"
)

// configure writes postgresql.conf, pg_hba.conf and the certificates.
func (s *Server) configure() error {
	settings := map[string]string{
		"listen_addresses":         "127.0.0.1",
		"port":                     strconv.Itoa(s.port),
		"unix_socket_directories":  "",
		"wal_level":                "logical",
		"max_wal_senders":          "20",
		"max_replication_slots":    "20",
		"max_connections":          "200",
		"fsync":                    onOff(s.opts.Fsync),
		"full_page_writes":         onOff(s.opts.Fsync),
		"log_line_prefix":          "%m [%p] %q%u@%d %a: ",
		"log_replication_commands": "on",
		"timezone":                 "UTC",
		"log_timezone":             "UTC",
	}
	if s.opts.TLS {
		if err := s.certify(); err != nil {
			return err
		}
		settings["ssl"] = "on"
		settings["ssl_ca_file"] = s.CAFile()
		settings["ssl_cert_file"] = filepath.Join(s.dir, "server.crt")
		settings["ssl_key_file"] = filepath.Join(s.dir, "server.key")
	}
	maps.Copy(settings, s.opts.Settings)

	var conf strings.Builder
	for _, name := range slices.Sorted(maps.Keys(settings)) {
		fmt.Fprintf(&conf, "%s = '%s'\n", name, strings.ReplaceAll(settings[name], "'", "''"))
	}
	// The file that initdb wrote holds nothing but comments and what is set here or
	// by default, save for the locale, which is C throughout.
	if err := s.write("data/postgresql.conf", conf.String(), 0o600); err != nil {
		return err
	}
	hba := s.opts.HBA + "\n" +
		"host all all 127.0.0.1/32 scram-sha-256\n" +
		"host replication all 127.0.0.1/32 scram-sha-256\n"
	return s.write("data/pg_hba.conf", hba, 0o600)
}

func onOff(b bool) string {
	if b {
		return "on"
	}
	return "off"
}

// certify makes an authority, the server's certificate, and writes them down.
func (s *Server) certify() error {
	ca, err := ground.NewAuthority()
	if err != nil {
		return err
	}
	cert, key, err := ca.Issue("localhost")
	if err != nil {
		return err
	}
	s.ca = ca
	for name, content := range map[string][]byte{"ca.crt": ca.PEM, "server.crt": cert, "server.key": key} {
		if err := s.write(name, string(content), 0o600); err != nil {
			return err
		}
	}
	return os.Chmod(s.CAFile(), 0o644)
}

// write writes a file of the run folder and gives it to the server's account.
func (s *Server) write(name, content string, mode os.FileMode) error {
	path := filepath.Join(s.dir, name)
	if err := os.WriteFile(path, []byte(content), mode); err != nil {
		return err
	}
	return s.as.own(path)
}
