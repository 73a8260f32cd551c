package ops

import (
	"io"
	"os"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"github.com/walrelay/walrelay/event"
)

// Of equal lines (level and message), repeatFirst are written per repeatTick and
// the rest is counted: a broker that is away for ten minutes costs some hundred lines.
const (
	repeatTick  = 10 * time.Second
	repeatFirst = 5
	recentLines = 100
)

// LogOptions of [NewLogger]. The zero value logs JSON of level info to standard error.
type LogOptions struct {
	// Level is debug, info, warn or error; empty is info.
	Level string
	// Format is json, console, or auto: console on a terminal, else json. Empty is auto.
	Format string
	// Out is standard error when nil.
	Out io.Writer
	// IsTTY says that Out is a terminal.
	IsTTY bool
	// Secrets may be nil: then Log.Secrets is a new, empty one.
	Secrets *Redactor
}

// Log is the process's log: a logger to inject, and what stands around it.
type Log struct {
	Logger *zap.Logger
	// Recent keeps the newest lines of level warn and above.
	Recent *Recent
	// Secrets takes what must never be printed.
	Secrets *Redactor

	repeats *repeats
}

// NewLogger makes the log. A wrong option is a Halt error of usage.
func NewLogger(opt LogOptions) (*Log, error) {
	level, err := logLevel(opt.Level)
	if err != nil {
		return nil, err
	}
	encoder, err := logEncoder(opt.Format, opt.IsTTY)
	if err != nil {
		return nil, err
	}
	if opt.Out == nil {
		opt.Out = os.Stderr
	}
	if opt.Secrets == nil {
		opt.Secrets = NewRedactor()
	}
	l := &Log{Recent: newRecent(recentLines, opt.Secrets), Secrets: opt.Secrets}
	out := zapcore.NewCore(tidyEncoder{encoder, opt.Secrets}, zapcore.Lock(zapcore.AddSync(opt.Out)), level)
	both := zapcore.NewTee(out, l.Recent.core())
	l.repeats = newRepeats(both, repeatTick)
	sampled := zapcore.NewSamplerWithOptions(both, repeatTick, repeatFirst, 0, zapcore.SamplerHook(l.repeats.decided))
	l.Logger = zap.New(sampled, zap.ErrorOutput(zapcore.Lock(zapcore.AddSync(opt.Out))))
	return l, nil
}

// Dropped counts the lines that were not written because equal ones had been.
func (l *Log) Dropped() int64 { return l.repeats.total.Load() }

// Close writes what is still to say about dropped lines. Logging goes on to work.
func (l *Log) Close() { l.repeats.flush() }

func logLevel(s string) (zapcore.Level, error) {
	switch s {
	case "", "info":
		return zapcore.InfoLevel, nil
	case "debug":
		return zapcore.DebugLevel, nil
	case "warn":
		return zapcore.WarnLevel, nil
	case "error":
		return zapcore.ErrorLevel, nil
	}
	return 0, &event.Error{
		Class: event.Halt, Fault: event.FaultUsage, What: "log.level is " + s,
		Remedy: "choose debug, info, warn or error", Anchor: AnchorLog,
	}
}

func logEncoder(format string, tty bool) (zapcore.Encoder, error) {
	c := zapcore.EncoderConfig{
		TimeKey: "time", LevelKey: "level", NameKey: "logger", MessageKey: "message",
		LineEnding:     zapcore.DefaultLineEnding,
		EncodeTime:     utcMillis,
		EncodeLevel:    zapcore.LowercaseLevelEncoder,
		EncodeDuration: zapcore.StringDurationEncoder,
		EncodeName:     zapcore.FullNameEncoder,
	}
	switch {
	case format == "json", (format == "" || format == "auto") && !tty:
		return zapcore.NewJSONEncoder(c), nil
	case format == "console", format == "", format == "auto":
		c.ConsoleSeparator = "  "
		c.EncodeTime = zapcore.TimeEncoderOfLayout("15:04:05.000")
		if tty {
			c.EncodeLevel = zapcore.CapitalColorLevelEncoder
		}
		return zapcore.NewConsoleEncoder(c), nil
	}
	return nil, &event.Error{
		Class: event.Halt, Fault: event.FaultUsage, What: "log.format is " + format,
		Remedy: "choose auto, json or console", Anchor: AnchorLog,
	}
}

func utcMillis(t time.Time, enc zapcore.PrimitiveArrayEncoder) {
	enc.AppendString(t.UTC().Format("2006-01-02T15:04:05.000Z"))
}
