package config

import (
	"net/url"
	"strings"
)

// Shorter pieces say nothing, and would match by chance.
const leakLength = 3

// containsAny reports whether the text holds one of the secrets, as it stands or
// percent-encoded.
func containsAny(text string, secrets []string) bool {
	for _, s := range secrets {
		if len(s) < leakLength || s == masked {
			continue
		}
		for _, form := range []string{s, url.QueryEscape(s), url.PathEscape(s)} {
			if strings.Contains(text, form) {
				return true
			}
		}
	}
	return false
}

// quotesPartOf reports whether the text holds any four bytes in a row of a secret.
func quotesPartOf(text string, secrets []string) bool {
	const part = leakLength + 1
	for _, s := range secrets {
		for i := 0; i+part <= len(s); i++ {
			if strings.Contains(text, s[i:i+part]) {
				return true
			}
		}
	}
	return containsAny(text, secrets)
}
