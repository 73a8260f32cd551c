package docs

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// pages are the documents that people read.
func pages(t *testing.T) []string {
	t.Helper()
	found := []string{"README.md", "DESIGN.md", "CONTRIBUTING.md", "CHANGELOG.md"}
	err := filepath.WalkDir(filepath.Join(root(t), "docs"), func(path string, d fs.DirEntry, err error) error {
		if err == nil && strings.HasSuffix(path, ".md") {
			rel, _ := filepath.Rel(root(t), path)
			found = append(found, rel)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

var (
	link  = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	title = regexp.MustCompile(`(?m)^#+ (.+)$`)
	// proof is a test as the README names it: `TestX` in path.
	proof = regexp.MustCompile("`(Test[A-Za-z0-9]+)` in ([a-z0-9/_]+_test\\.go)")
	slug  = regexp.MustCompile(`[^a-z0-9 _-]`)
)

func TestLinksLeadSomewhere(t *testing.T) {
	t.Parallel()
	for _, page := range pages(t) {
		for _, m := range link.FindAllStringSubmatch(read(t, page), -1) {
			target, section, _ := strings.Cut(m[1], "#")
			if strings.Contains(target, "://") {
				continue
			}
			path := page
			if target != "" {
				path = filepath.Join(filepath.Dir(page), target)
			}
			if _, err := os.Stat(filepath.Join(root(t), path)); err != nil {
				t.Errorf("%s links to %s, which is not there", page, m[1])
				continue
			}
			if section != "" && !hasSection(read(t, path), section) {
				t.Errorf("%s links to %s: %s has no such section", page, m[1], path)
			}
		}
	}
}

// hasSection looks for a heading by the name that GitHub gives it in links.
func hasSection(text, section string) bool {
	for _, m := range title.FindAllStringSubmatch(text, -1) {
		name := slug.ReplaceAllString(strings.ToLower(m[1]), "")
		if strings.ReplaceAll(name, " ", "-") == section {
			return true
		}
	}
	return false
}

func TestEveryPromiseOfTheReadmeNamesATestThatExists(t *testing.T) {
	t.Parallel()
	text := read(t, "README.md")
	rows := 0
	for line := range strings.Lines(text) {
		if regexp.MustCompile(`^\| \d+ \| \*\*`).MatchString(line) {
			rows++
			if !proof.MatchString(line) {
				t.Errorf("no test is named by the promise %q", line)
			}
		}
	}
	if rows != 8 {
		t.Errorf("the README has %d promises, want 8", rows)
	}
	for _, m := range proof.FindAllStringSubmatch(text, -1) {
		if !strings.Contains(read(t, m[2]), "func "+m[1]+"(t *testing.T)") {
			t.Errorf("%s has no %s", m[2], m[1])
		}
	}
}

// source is a file of the repository as DESIGN.md names it.
var source = regexp.MustCompile("`((?:cmd/walrelay|[a-z]+)/[a-zA-Z0-9_*<>]+\\.(?:go|md|yml))`")

func TestFilesThatTheDesignNamesExist(t *testing.T) {
	t.Parallel()
	names := source.FindAllStringSubmatch(read(t, "DESIGN.md"), -1)
	if len(names) < 30 {
		t.Fatalf("only %d files were found in DESIGN.md: the search is broken", len(names))
	}
	for _, m := range names {
		pattern := regexp.MustCompile(`<[a-z]+>`).ReplaceAllString(m[1], "*")
		if found, err := filepath.Glob(filepath.Join(root(t), pattern)); err != nil || len(found) == 0 {
			t.Errorf("DESIGN.md names %s, which is not there", m[1])
		}
	}
}
