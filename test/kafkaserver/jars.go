package kafkaserver

import (
	"crypto/sha256"
	_ "embed" // the list of jars and the Maven project
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/walrelay/walrelay/test/ground"
)

// release is the version of Kafka.
const release = "4.4.0"

// jarList has a line per jar: group, artifact, version, SHA-256.
//
//go:embed kafka-jars.txt
var jarList string

//go:embed pom.xml
var pom []byte

// remedy is what to type where Java or Maven is missing.
const remedy = "run: make deps (installs Java 17 or newer and Maven; as root: apt-get install -y openjdk-17-jdk-headless maven)"

type jar struct{ group, artifact, version, sum string }

func (j jar) file() string { return j.artifact + "-" + j.version + ".jar" }

func jars() []jar {
	var list []jar
	for line := range strings.Lines(jarList) {
		f := strings.Fields(line)
		list = append(list, jar{group: f[0], artifact: f[1], version: f[2], sum: f[3]})
	}
	return list
}

// libs returns the folder with exactly the listed jars, checked.
func libs() (string, error) {
	scratch, err := ground.Scratch()
	if err != nil {
		return "", err
	}
	unlock, err := ground.Lock(filepath.Join(scratch, "kafka.lock"))
	if err != nil {
		return "", err
	}
	defer unlock()
	name := filepath.Join("kafka-"+release, "libs")
	list := jars()
	if dir, found := ground.FindCached(filepath.Join(name, list[len(list)-1].file())); found {
		if dir = filepath.Join(dir, name); verify(dir, list) == nil {
			return dir, nil
		}
	}
	cache, err := ground.WritableCache()
	if err != nil {
		return "", err
	}
	dir := filepath.Join(cache, name)
	if err := os.RemoveAll(dir); err != nil {
		return "", err
	}
	if err := fetch(dir); err != nil {
		return "", fmt.Errorf("fetch the jars of Kafka %s: %w", release, err)
	}
	return dir, verify(dir, list)
}

// fetch has Maven copy the jars of pom.xml into dir.
func fetch(dir string) error {
	mvn, err := exec.LookPath("mvn")
	if err != nil {
		return fmt.Errorf("no mvn in PATH: %s", remedy)
	}
	work, err := os.MkdirTemp("", "walrelay-pom-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(work) }()
	project := filepath.Join(work, "pom.xml")
	if err := os.WriteFile(project, pom, 0o600); err != nil {
		return err
	}
	cmd := exec.Command(mvn, "--quiet", "--batch-mode", "--file", project,
		"dependency:copy-dependencies", "-DoutputDirectory="+dir)
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("mvn dependency:copy-dependencies: %w\n%s", err, out)
	}
	return nil
}

func verify(dir string, list []jar) error {
	for _, j := range list {
		path := filepath.Join(dir, j.file())
		got, err := checksum(path)
		if err != nil {
			return err
		}
		if got != j.sum {
			return fmt.Errorf("%s has SHA-256 %s, pinned is %s", path, got, j.sum)
		}
	}
	return nil
}

func checksum(path string) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer func() { _ = f.Close() }()
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return "", err
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

// classPath lists the jars one by one, so that a foreign jar in the folder is not run.
func classPath(dir string) string {
	var paths []string
	for _, j := range jars() {
		paths = append(paths, filepath.Join(dir, j.file()))
	}
	return strings.Join(paths, string(os.PathListSeparator))
}

// java finds the Java runtime.
func java() (string, error) {
	if home := os.Getenv("JAVA_HOME"); home != "" {
		return filepath.Join(home, "bin", "java"), nil
	}
	path, err := exec.LookPath("java")
	if err != nil {
		return "", fmt.Errorf("no java in PATH: %s", remedy)
	}
	return path, nil
}
