package config

import (
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"
)

func TestFlagBeatsEnvironmentBeatsFileBeatsDefault(t *testing.T) {
	t.Parallel()
	w := world{}
	if got := mustLoad(t, w, minimal).Grace; got != 30*time.Second {
		t.Errorf("default: %v", got)
	}
	file := minimal + "grace: 1s\n"
	if got := mustLoad(t, w, file).Grace; got != time.Second {
		t.Errorf("file: %v", got)
	}
	w.env = map[string]string{"WALRELAY_GRACE": "2s"}
	if got := mustLoad(t, w, file).Grace; got != 2*time.Second {
		t.Errorf("environment: %v", got)
	}
	w.flags = []Override{{"--grace", "grace", "3s"}}
	if got := mustLoad(t, w, file).Grace; got != 3*time.Second {
		t.Errorf("flag: %v", got)
	}
}

func TestEveryVariableReachesItsOption(t *testing.T) {
	t.Parallel()
	seen := map[string]string{}
	for _, o := range Options() {
		if o.Variable == "" {
			continue
		}
		if other, ok := seen[o.Variable]; ok {
			t.Errorf("%s is the variable of %s and of %s", o.Variable, o.Path, other)
		}
		seen[o.Variable] = o.Path
		// What cannot be right shows that the variable is read, and named in the message.
		for _, value := range []string{"", "\x00?? "} {
			if value != "" && (isSecret(o.kind) || o.kind.Kind() == reflect.String && len(o.Words) == 0 && o.Path != "name" && o.Path != "http.listen") {
				continue // any text will do
			}
			found := problemsOf(t, world{env: map[string]string{o.Variable: value}}, minimal)
			if len(found) == 0 || found[0].Origin.Name != o.Variable {
				t.Errorf("%s=%q: %v", o.Variable, value, found)
			}
		}
	}
	for _, name := range []string{
		"WALRELAY_HTTP_LISTEN", "WALRELAY_LOG_LEVEL", "WALRELAY_KAFKA_BROKERS", "WALRELAY_NAME", "WALRELAY_GRACE", "WALRELAY_KAFKA_SASL_PASSWORD",
	} {
		if seen[name] == "" {
			t.Errorf("%s is not there", name)
		}
	}
}

func TestListInAVariableIsWrittenWithCommas(t *testing.T) {
	t.Parallel()
	c := mustLoad(t, world{env: map[string]string{"WALRELAY_KAFKA_BROKERS": "a:1, b:2,c:3"}}, minimal)
	if got := strings.Join(c.Kafka.Brokers, " "); got != "a:1 b:2 c:3" {
		t.Errorf("brokers %s", got)
	}
	found := problemsOf(t, world{env: map[string]string{"WALRELAY_KAFKA_BROKERS": "a:1,,b"}}, minimal)
	wantProblem(t, found, "kafka.brokers[1]", 0, "is empty")
	wantProblem(t, found, "kafka.brokers[2]", 0, "host:port")
}

func TestVariableIsNotExpanded(t *testing.T) {
	t.Parallel()
	c := mustLoad(t, world{env: map[string]string{"WALRELAY_KAFKA_CLIENT_ID": "${HOME}"}}, minimal)
	if c.Kafka.ClientID != "${HOME}" {
		t.Errorf("client id %s", c.Kafka.ClientID)
	}
}

func TestLoadFindsItsFile(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	path := filepath.Join(folder, "w.yaml")
	secret := filepath.Join(folder, "grace")
	if err := os.WriteFile(secret, []byte("9s\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(minimal+"grace: ${file:"+secret+"}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	c, _, err := Load(path, nil, nil)
	if err != nil || c.Grace != 9*time.Second {
		t.Fatalf("%v", err)
	}
	env := lookup(map[string]string{"WALRELAY_CONFIG": path})
	if _, _, err = Load("", env, nil); err != nil {
		t.Error(err)
	}
	if _, _, err = Load(path+"x", env, nil); err == nil || !strings.Contains(err.Error(), path+"x: cannot be read: no such file") {
		t.Error(err)
	}
	big := filepath.Join(folder, "big")
	if err := os.WriteFile(big, make([]byte, largestFile+1), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, _, err = Load(big, nil, nil); err == nil || !strings.Contains(err.Error(), "larger than 1 MiB") {
		t.Error(err)
	}
	if _, err := readSecret(big); err == nil || !strings.Contains(err.Error(), "larger than 64 KiB") {
		t.Error(err)
	}
}

func TestEmptyFileSaysWhatIsMissing(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"", "# nothing\n", "---\n", "{}", "null"} {
		found := problemsOf(t, world{}, text)
		wantProblem(t, found, "name", 0, "missing")
		wantProblem(t, found, "sources", 0, "missing")
		wantProblem(t, found, "kafka.brokers", 0, "missing")
	}
}

func TestDefaultsAreReadable(t *testing.T) {
	t.Parallel()
	for _, o := range Options() {
		if o.Default == "" || o.section() {
			continue
		}
		if err := setScalar(reflect.New(o.kind).Elem(), o.Default); err != nil {
			t.Errorf("%s: default %s: %v", o.Path, o.Default, err)
		}
	}
}
