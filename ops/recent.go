package ops

import (
	"strings"
	"sync"
	"time"

	"go.uber.org/zap/zapcore"
)

// LogLine is one line of the log, without secrets.
type LogLine struct {
	Time    time.Time `json:"time"`
	Level   string    `json:"level"`
	Logger  string    `json:"logger,omitempty"`
	Message string    `json:"message"`
	// Fields is the line's fields as a JSON object, for reading: a long one is cut.
	// Empty when there are none.
	Fields string `json:"fields,omitempty"`
}

// Recent keeps the newest log lines of level warn and above, for the status page.
type Recent struct {
	secrets *Redactor
	mu      struct {
		sync.Mutex
		ring []LogLine
		next int
	}
}

func newRecent(limit int, secrets *Redactor) *Recent {
	r := &Recent{secrets: secrets}
	r.mu.ring = make([]LogLine, 0, limit)
	return r
}

// Lines gives the lines, newest first.
func (r *Recent) Lines() []LogLine {
	r.mu.Lock()
	defer r.mu.Unlock()
	n := len(r.mu.ring)
	lines := make([]LogLine, 0, n)
	for i := range n {
		lines = append(lines, r.mu.ring[((r.mu.next-1-i)%n+n)%n])
	}
	return lines
}

func (r *Recent) keep(l LogLine) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.mu.ring) < cap(r.mu.ring) {
		r.mu.ring = append(r.mu.ring, l)
		r.mu.next = len(r.mu.ring) % cap(r.mu.ring)
		return
	}
	r.mu.ring[r.mu.next] = l
	r.mu.next = (r.mu.next + 1) % len(r.mu.ring)
}

func (r *Recent) core() zapcore.Core {
	// Only fields are encoded; time, level and message are kept as they are.
	enc := zapcore.NewJSONEncoder(zapcore.EncoderConfig{
		EncodeDuration: zapcore.StringDurationEncoder, EncodeTime: utcMillis, SkipLineEnding: true,
	})
	return &recentCore{LevelEnabler: zapcore.WarnLevel, enc: tidyEncoder{enc, r.secrets}, recent: r}
}

// recentCore feeds a Recent.
type recentCore struct {
	zapcore.LevelEnabler
	enc    zapcore.Encoder
	recent *Recent
}

func (c *recentCore) With(fields []zapcore.Field) zapcore.Core {
	enc := c.enc.Clone()
	for _, f := range fields {
		f.AddTo(enc)
	}
	return &recentCore{c.LevelEnabler, enc, c.recent}
}

func (c *recentCore) Check(e zapcore.Entry, ce *zapcore.CheckedEntry) *zapcore.CheckedEntry {
	if c.Enabled(e.Level) {
		return ce.AddCore(e, c)
	}
	return ce
}

func (c *recentCore) Write(e zapcore.Entry, fields []zapcore.Field) error {
	buf, err := c.enc.EncodeEntry(zapcore.Entry{}, fields)
	if err != nil {
		return err
	}
	text := strings.TrimSpace(buf.String())
	buf.Free()
	if text == "{}" {
		text = ""
	}
	c.recent.keep(LogLine{
		Time: e.Time.UTC(), Level: e.Level.String(), Logger: e.LoggerName,
		Message: cut(c.recent.secrets.String(clean(e.Message)), maxText), Fields: cut(text, 2*maxText),
	})
	return nil
}

func (c *recentCore) Sync() error { return nil }
