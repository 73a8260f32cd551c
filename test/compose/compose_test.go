package compose

import (
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/compose-spec/compose-go/v2/cli"
	"github.com/compose-spec/compose-go/v2/types"

	"go.mongodb.org/mongo-driver/v2/x/mongo/driver/connstring"

	"github.com/walrelay/walrelay/config"
	"github.com/walrelay/walrelay/test/ground"
)

func root(t *testing.T) string {
	t.Helper()
	dir, err := ground.RepositoryRoot()
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

// load reads docker-compose.yml as Docker Compose does, strictly and without the
// caller's environment.
func load(t *testing.T) *types.Project {
	t.Helper()
	dir := root(t)
	opts, err := cli.NewProjectOptions([]string{filepath.Join(dir, "docker-compose.yml")}, cli.WithWorkingDirectory(dir))
	if err != nil {
		t.Fatal(err)
	}
	p, err := opts.LoadProject(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// oneShot are the services that end by themselves.
var oneShot = []string{"mongo-init", "walrelay-init"}

func TestComposeStartsEverythingInOrder(t *testing.T) {
	t.Parallel()
	p := load(t)
	want := []string{"grafana", "kafka", "mongo", "mongo-init", "postgres", "prometheus", "walrelay", "walrelay-init"}
	if got := p.ServiceNames(); !slices.Equal(got, want) {
		t.Errorf("services %q, want %q", got, want)
	}
	for name, s := range p.Services {
		once := slices.Contains(oneShot, name)
		if once != (s.Restart == "no") {
			t.Errorf("%s restarts %q", name, s.Restart)
		}
		if !once && (s.HealthCheck == nil || len(s.HealthCheck.Test) < 2) {
			t.Errorf("%s has no health check", name)
		}
		for other, d := range s.DependsOn {
			o := p.Services[other]
			switch d.Condition {
			case types.ServiceConditionHealthy:
				if o.HealthCheck == nil {
					t.Errorf("%s waits for the health of %s, which has no check", name, other)
				}
			case types.ServiceConditionCompletedSuccessfully:
				if !slices.Contains(oneShot, other) {
					t.Errorf("%s waits for the end of %s, which does not end", name, other)
				}
			}
		}
	}
	for other, condition := range map[string]string{
		"walrelay-init": types.ServiceConditionCompletedSuccessfully,
		"postgres":      types.ServiceConditionHealthy,
		"kafka":         types.ServiceConditionHealthy,
	} {
		if got := p.Services["walrelay"].DependsOn[other].Condition; got != condition {
			t.Errorf("walrelay waits for %s until %q, want %q", other, got, condition)
		}
	}
}

func TestComposeMountsOnlyFilesThatExist(t *testing.T) {
	t.Parallel()
	p := load(t)
	for name, s := range p.Services {
		for _, v := range s.Volumes {
			switch v.Type {
			case types.VolumeTypeVolume:
				if _, ok := p.Volumes[v.Source]; !ok {
					t.Errorf("%s mounts volume %s, which is not declared", name, v.Source)
				}
			case types.VolumeTypeBind:
				if _, err := os.Stat(v.Source); err != nil {
					t.Errorf("%s: %v", name, err)
				}
				if !v.ReadOnly {
					t.Errorf("%s mounts %s writable", name, v.Source)
				}
			}
		}
	}
}

func TestComposePublishesPortsOnLoopbackOnce(t *testing.T) {
	t.Parallel()
	taken := map[string]string{}
	for name, s := range load(t).Services {
		for _, port := range s.Ports {
			if port.HostIP != "127.0.0.1" {
				t.Errorf("%s publishes %s on %q", name, port.Published, port.HostIP)
			}
			if other := taken[port.Published]; other != "" {
				t.Errorf("%s and %s publish port %s", name, other, port.Published)
			}
			taken[port.Published] = name
		}
	}
}

// TestComposeConfigurationFitsItsServices: the mounted file loads, and the
// addresses in it are those of the other services.
func TestComposeConfigurationFitsItsServices(t *testing.T) {
	t.Parallel()
	p := load(t)
	for _, name := range []string{"walrelay-init", "walrelay"} {
		s := p.Services[name]
		var path string
		for _, v := range s.Volumes {
			if v.Target == "/etc/walrelay/walrelay.yaml" {
				path = v.Source
			}
		}
		if path == "" {
			t.Fatalf("%s mounts no configuration where the Dockerfile's WALRELAY_CONFIG points", name)
		}
		lookup := func(key string) (string, bool) {
			if v := s.Environment[key]; v != nil {
				return *v, true
			}
			return "", false
		}
		c, warnings, err := config.Load(path, lookup, nil)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		for _, w := range warnings {
			t.Errorf("%s: the configuration is warned of: %s", name, w)
		}
		for _, source := range c.Sources {
			if c.IsMongo(source.Key) {
				set, err := connstring.Parse(source.Value.Mongo.URL.Reveal())
				if err != nil {
					t.Fatalf("%s: the URL of %s: %v", name, source.Key, err)
				}
				if host, _, _ := strings.Cut(set.Hosts[0], ":"); p.Services[host].Name != host || set.ReplicaSet != "rs0" {
					t.Errorf("%s: there is no service %s with replica set %s", name, host, set.ReplicaSet)
				}
				continue
			}
			u, err := url.Parse(source.Value.Postgres.URL.Reveal())
			if err != nil {
				t.Fatalf("%s: the database's URL cannot be parsed", name)
			}
			if _, ok := p.Services[u.Hostname()]; !ok {
				t.Errorf("%s: there is no service %s", name, u.Hostname())
			}
			// Another host is verified by name unless told otherwise, and this one has no certificate.
			if u.Query().Get("sslmode") != "disable" {
				t.Errorf("%s: sslmode is %q", name, u.Query().Get("sslmode"))
			}
			if super := u.User.Username() == "postgres"; super != (name == "walrelay-init") {
				t.Errorf("%s logs in as %s: init is for the owner, run for a role of its own", name, u.User.Username())
			}
			if role := source.Value.Postgres.Role; name == "walrelay" && role != u.User.Username() {
				t.Errorf("walrelay logs in as %s, init grants to %s", u.User.Username(), role)
			}
		}
		for _, b := range c.Kafka.Brokers {
			host, _, _ := strings.Cut(b, ":")
			if _, ok := p.Services[host]; !ok {
				t.Errorf("%s: there is no service %s", name, host)
			}
			if advertised := p.Services["kafka"].Environment["KAFKA_ADVERTISED_LISTENERS"]; !strings.Contains(*advertised, "//"+b) {
				t.Errorf("kafka does not advertise %s, only %s", b, *advertised)
			}
		}
		if grace := p.Services["walrelay"].StopGracePeriod; grace == nil || grace.String() == "" || float64(*grace) <= float64(c.Grace) {
			t.Errorf("compose kills after %v, walrelay takes up to %s", grace, c.Grace)
		}
	}
}
