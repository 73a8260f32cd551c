package ops

import (
	"go.uber.org/zap"
	"go.uber.org/zap/buffer"
	"go.uber.org/zap/zapcore"
)

// maxText bounds the message and each text of a line, in bytes: drivers put
// whole statements and batches into their errors.
const maxText = 2048

// tidyEncoder wraps an encoder: it cuts long texts, prints errors as their
// message only (no stack or verbose form), and replaces secrets in the finished
// line, where no kind of field can hide them.
type tidyEncoder struct {
	zapcore.Encoder
	secrets *Redactor
}

func (t tidyEncoder) Clone() zapcore.Encoder {
	return tidyEncoder{t.Encoder.Clone(), t.secrets}
}

func (t tidyEncoder) EncodeEntry(e zapcore.Entry, fields []zapcore.Field) (*buffer.Buffer, error) {
	e.Message = t.tidy(e.Message)
	tidied := make([]zapcore.Field, len(fields))
	for i, f := range fields {
		tidied[i] = t.field(f)
	}
	buf, err := t.Encoder.EncodeEntry(e, tidied)
	if err != nil {
		return nil, err
	}
	if t.secrets.any() {
		raw := buf.String()
		if clean := t.secrets.String(raw); clean != raw {
			buf.Reset()
			buf.AppendString(clean)
		}
	}
	return buf, nil
}

// tidy replaces before it cuts: half a secret would not be recognised afterwards.
func (t tidyEncoder) tidy(s string) string { return cut(t.secrets.String(s), maxText) }

func (t tidyEncoder) field(f zapcore.Field) zapcore.Field {
	switch f.Type {
	case zapcore.StringType:
		f.String = t.tidy(f.String)
	case zapcore.ErrorType:
		if text, ok := errorText(f.Interface); ok {
			return zap.String(f.Key, t.tidy(text))
		}
	}
	return f
}

// errorText guards against errors that are nil pointers, as zap itself does.
func errorText(v any) (text string, ok bool) {
	defer func() {
		if recover() != nil {
			text, ok = "", false
		}
	}()
	err, ok := v.(error)
	if !ok {
		return "", false
	}
	return err.Error(), true
}
