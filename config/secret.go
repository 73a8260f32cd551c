package config

import (
	"fmt"
	"io"
)

const masked = "***"

// Secret is a value that never prints: each verb of fmt and each encoder that
// asks a value for its text (YAML, JSON, zap, slog) gets "***".
type Secret struct{ raw string }

// NewSecret makes a secret of a value.
func NewSecret(raw string) Secret { return Secret{raw} }

// Reveal is the value itself, for the one place that sends it.
func (s Secret) Reveal() string { return s.raw }

// IsZero reports whether there is no value.
func (s Secret) IsZero() bool { return s.raw == "" }

func (s Secret) String() string {
	if s.raw == "" {
		return ""
	}
	return masked
}

// Format masks under every verb; without it %d would walk into the struct.
func (s Secret) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, s.String()) }

// MarshalText masks for JSON and for whatever else asks for text.
func (s Secret) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// MarshalYAML masks.
func (s Secret) MarshalYAML() (any, error) { return s.String(), nil }

func (s *Secret) parse(text string) error {
	s.raw = text
	return nil
}

func (Secret) want() string { return "text" }
