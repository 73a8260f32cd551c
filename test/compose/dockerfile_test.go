package compose

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

type instruction struct{ name, args string }

// instructions reads the Dockerfile: comments out, continued lines joined.
func instructions(t *testing.T) []instruction {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(root(t), "Dockerfile"))
	if err != nil {
		t.Fatal(err)
	}
	var list []instruction
	for line := range strings.Lines(strings.ReplaceAll(string(b), "\\\n", " ")) {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		name, args, _ := strings.Cut(line, " ")
		list = append(list, instruction{strings.ToUpper(name), strings.TrimSpace(args)})
	}
	return list
}

// last is the final stage.
func last(list []instruction) []instruction {
	at := 0
	for i, in := range list {
		if in.name == "FROM" {
			at = i
		}
	}
	return list[at:]
}

func TestImageIsAStaticProgramOfAnOrdinaryUser(t *testing.T) {
	t.Parallel()
	list := instructions(t)
	final := last(list)
	if final[0].args != "scratch" {
		t.Errorf("the last stage is built on %q, want scratch", final[0].args)
	}
	user := ""
	for _, in := range final {
		switch in.name {
		case "USER":
			user = in.args
		case "RUN", "SHELL":
			t.Errorf("%s %s: the last stage has no shell", in.name, in.args)
		case "ENTRYPOINT", "CMD", "HEALTHCHECK":
			var words []string
			_, form, found := strings.Cut(in.args, "CMD ")
			if in.name != "HEALTHCHECK" || !found {
				form = in.args
			}
			if err := json.Unmarshal([]byte(form), &words); err != nil || len(words) == 0 {
				t.Errorf("%s %s needs a shell, and there is none: write it as a list", in.name, in.args)
			}
		}
	}
	if !regexp.MustCompile(`^[1-9][0-9]*(:[1-9][0-9]*)?$`).MatchString(user) {
		t.Errorf("USER is %q, want a number other than 0", user)
	}
	built := ""
	for _, in := range list {
		if in.name == "RUN" && strings.Contains(in.args, "go build") {
			built = in.args
		}
	}
	for _, flag := range []string{"CGO_ENABLED=0", "-trimpath", "./cmd/walrelay", "-X main.version="} {
		if !strings.Contains(built, flag) {
			t.Errorf("the build %q lacks %s", built, flag)
		}
	}
}

func TestImageTrustsTheUsualAuthorities(t *testing.T) {
	t.Parallel()
	for _, in := range last(instructions(t)) {
		if in.name == "COPY" && strings.HasSuffix(in.args, " /etc/ssl/certs/ca-certificates.crt") {
			return
		}
	}
	t.Error("no authorities are copied: TLS to Postgres and Kafka would trust nobody")
}

// TestImagesComeFromWhereverTheUserGetsImages: no address of a registry stands in
// the repository.
func TestImagesComeFromWhereverTheUserGetsImages(t *testing.T) {
	t.Parallel()
	var images []string
	for _, in := range instructions(t) {
		if in.name == "FROM" {
			images = append(images, strings.Fields(in.args)[0])
		}
		if strings.Contains(in.args, "://") {
			t.Errorf("%s %s: an address", in.name, in.args)
		}
	}
	for _, s := range load(t).Services {
		images = append(images, s.Image)
	}
	for _, image := range images {
		first, _, several := strings.Cut(image, "/")
		if several && (strings.ContainsAny(first, ".:") || first == "localhost") {
			t.Errorf("image %s names its registry", image)
		}
		if image != "scratch" && image != "walrelay" && (!strings.Contains(image, ":") || strings.HasSuffix(image, ":latest")) {
			t.Errorf("image %s has no version", image)
		}
	}
}
