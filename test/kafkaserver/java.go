package kafkaserver

import (
	"bytes"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// Java runs a program of one source file, with the class Main, beside Kafka's own
// jars, and returns what it prints: for comparisons with the Java client itself.
// It needs a JDK, as the source is compiled on the way.
func Java(t testing.TB, source string, stdin io.Reader, args ...string) string {
	t.Helper()
	program, err := java()
	if err != nil {
		t.Fatal(err)
	}
	dir, err := libs()
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "Main.java")
	if err := os.WriteFile(file, []byte(source), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), program, append([]string{"-cp", classPath(dir), file}, args...)...)
	cmd.Stdin = stdin
	var out, trouble bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &trouble
	if err := cmd.Run(); err != nil {
		t.Fatalf("the Java program failed (it needs a JDK, not only a JRE): %v\n%s", err, trouble.Bytes())
	}
	return out.String()
}
