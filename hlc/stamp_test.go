package hlc

import (
	_ "embed"
	"fmt"
	"strconv"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

//go:embed testdata/vectors.txt
var vectors string

func TestGoldenVectors(t *testing.T) {
	t.Parallel()
	n := 0
	for line := range strings.Lines(vectors) {
		if strings.HasPrefix(line, "#") {
			continue
		}
		var physical, logical int64
		var packed uint64
		var text string
		if _, err := fmt.Sscan(line, &physical, &logical, &packed, &text); err != nil {
			t.Fatalf("%q: %v", line, err)
		}
		n++
		s, err := Pack(physical, logical)
		if err != nil || uint64(s) != packed || s.String() != text {
			t.Errorf("Pack(%d, %d) = %d %s %v, want %d %s", physical, logical, s, s, err, packed, text)
		}
		if p, err := Parse(text); err != nil || p != s {
			t.Errorf("Parse(%s) = %d %v, want %d", text, p, err, s)
		}
		if p, err := ParsePacked([]byte(strconv.FormatUint(packed, 10))); err != nil || p != s {
			t.Errorf("ParsePacked(%d) = %d %v", packed, p, err)
		}
		if s.PhysicalMillis() != physical || int64(s.Logical()) != logical {
			t.Errorf("parts of %s are %d and %d", s, s.PhysicalMillis(), s.Logical())
		}
	}
	if n != 5 {
		t.Fatalf("%d vectors read, want 5", n)
	}
}

func TestBothFormsKeepTheOrder(t *testing.T) {
	t.Parallel()
	stamp := rapid.Custom(func(t *rapid.T) Stamp {
		s, err := Pack(rapid.Int64Range(0, MaxPhysical).Draw(t, "ms"), rapid.Int64Range(0, MaxLogical).Draw(t, "logical"))
		if err != nil {
			t.Fatal(err)
		}
		return s
	})
	rapid.Check(t, func(t *rapid.T) {
		a, b := stamp.Draw(t, "a"), stamp.Draw(t, "b")
		if (a < b) != (a.String() < b.String()) || len(a.String()) != TextLen {
			t.Fatalf("%d < %d, but %s and %s", a, b, a, b)
		}
		if back, err := Parse(a.String()); err != nil || back != a {
			t.Fatalf("%s reads back as %s %v", a, back, err)
		}
	})
}

func TestWhatIsNoStampIsRefused(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"", "123", "abc.0", "10.xyz", ".", "-1.0", "1.-1", "1.65536", "140737488355328.0", "99999999999999999999.0"} {
		if s, err := Parse(text); err == nil {
			t.Errorf("%q reads as %s", text, s)
		}
	}
	for _, digits := range []string{"", "-1", "1.5", "9223372036854775808", "99999999999999999999", "0x10", " 1"} {
		if s, err := ParsePacked([]byte(digits)); err == nil {
			t.Errorf("packed %q reads as %s", digits, s)
		}
	}
	if _, err := Pack(-1, 0); err == nil {
		t.Error("a negative time was packed")
	}
	if _, err := Pack(0, MaxLogical+1); err == nil {
		t.Error("65536 was packed as a logical part")
	}
}

func ExampleStamp_String() {
	s, _ := Pack(1_700_000_000_000, 3)
	fmt.Println(uint64(s), s)
	// Output: 111411200000000003 001700000000000.00003
}

// Headers come from anybody: what reads as a stamp is one, and reads the same again.
func FuzzParse(f *testing.F) {
	for _, text := range []string{"001700000000000.00003", "1.65535", "1.65536", ".", "+1.0", "1_0.0", "140737488355327.1", "0.0 ", "-0.0", "1.2.3"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		s, err := Parse(text)
		if err != nil {
			return
		}
		if strings.Trim(text, "0123456789") != "." {
			t.Errorf("%q reads as %s", text, s)
		}
		if _, err := Pack(s.PhysicalMillis(), int64(s.Logical())); err != nil {
			t.Errorf("%q reads as a stamp outside the format: %v", text, err)
		}
		if again, err := Parse(s.String()); err != nil || again != s {
			t.Errorf("%q reads as %s, and that as %s %v", text, s, again, err)
		}
		if packed, err := ParsePacked([]byte(strconv.FormatUint(uint64(s), 10))); err != nil || packed != s {
			t.Errorf("%q packed reads as %s %v", text, packed, err)
		}
	})
}
