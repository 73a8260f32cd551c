package mongostream

import (
	"context"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/walrelay/walrelay/event"
	"github.com/walrelay/walrelay/test/mongoserver"
)

func TestWhatIsWrongWithACertificateIsSaid(t *testing.T) {
	t.Parallel()
	server := mongoserver.Start(t, mongoserver.Options{TLS: true})
	h := newHouse(t, server)
	whole := h.opt.URL
	if !strings.Contains(whole, "tlsCAFile=") {
		t.Fatalf("the server's URL is %s", whole)
	}
	without := func(option string) string {
		return regexp.MustCompile(`&?`+option+`=[^&]*`).ReplaceAllString(whole, "")
	}
	soon := "&serverSelectionTimeoutMS=1500"
	client, err := Connect(ctx(t), h.opt)
	if err != nil {
		t.Fatal(err)
	}
	_ = client.Disconnect(context.Background())
	for name, c := range map[string]struct {
		url    string
		anchor event.Anchor
	}{
		"unknown authority": {without("tlsCAFile") + soon, AnchorTLS},
		"in the clear":      {regexp.MustCompile(`&?tls[A-Za-z]*=[^&]*`).ReplaceAllString(whole, "") + soon, AnchorUnreachable},
		"another name":      {strings.ReplaceAll(whole, "127.0.0.1", "127.0.0.2") + soon + "&directConnection=true", AnchorUnreachable}, // nothing listens there
	} {
		o := h.opt
		o.URL, o.WireTimeout = c.url, 10*time.Second
		client, err := Connect(ctx(t), o)
		if err == nil {
			t.Errorf("%s: connected", name)
			_ = client.Disconnect(context.Background())
			continue
		}
		if e := asError(err); e.Anchor != c.anchor {
			t.Errorf("%s: %v", name, err)
		}
	}
}
