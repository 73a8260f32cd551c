package publish

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"strings"
	"sync"
	"time"
)

// TokenEndpoint is an OAuth 2 token endpoint for the client-credentials grant (RFC 6749, 4.4).
type TokenEndpoint struct {
	URL          string
	ClientID     string
	ClientSecret string
	Scope        string
}

func (e TokenEndpoint) validate() error {
	if e.URL == "" {
		return nil
	}
	u, err := url.Parse(e.URL)
	if err != nil || u.Scheme != "https" && u.Scheme != "http" || u.Host == "" {
		return usage(fmt.Sprintf("token endpoint %q is no URL", e.URL), "set an https URL")
	}
	if e.ClientID == "" || e.ClientSecret == "" {
		return usage("the token endpoint needs a client id and secret", "set kafka.sasl.endpoint.client_id and client_secret")
	}
	return nil
}

// String does not show the secret.
func (e TokenEndpoint) String() string { return e.URL }

// GoString is String.
func (e TokenEndpoint) GoString() string { return e.URL }

// tokenSource finds the token for one authentication.
func tokenSource(s SASL, timeout time.Duration) func(context.Context) (string, error) {
	switch {
	case s.TokenFile != "":
		return func(context.Context) (string, error) {
			b, err := os.ReadFile(s.TokenFile)
			return strings.TrimSpace(string(b)), err
		}
	case s.Endpoint.URL != "":
		e := &endpointTokens{TokenEndpoint: s.Endpoint, client: &http.Client{Timeout: timeout}}
		return e.token
	default:
		return func(context.Context) (string, error) { return s.Token, nil }
	}
}

// endpointTokens keeps a token for as long as it is good for.
type endpointTokens struct {
	TokenEndpoint
	client *http.Client

	mu      sync.Mutex
	current string
	until   time.Time
}

// tokenMargin is how long before its end a token is no longer used.
const tokenMargin = 30 * time.Second

func (e *endpointTokens) token(ctx context.Context) (string, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.current != "" && time.Now().Before(e.until) {
		return e.current, nil
	}
	form := url.Values{"grant_type": {"client_credentials"}}
	if e.Scope != "" {
		form.Set("scope", e.Scope)
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, e.URL, strings.NewReader(form.Encode()))
	if err != nil {
		return "", err
	}
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	req.SetBasicAuth(url.QueryEscape(e.ClientID), url.QueryEscape(e.ClientSecret))
	resp, err := e.client.Do(req)
	if err != nil {
		return "", fmt.Errorf("asking for a token: %w", err)
	}
	defer resp.Body.Close()
	var answer struct {
		AccessToken string `json:"access_token"`
		ExpiresIn   int64  `json:"expires_in"`
	}
	if resp.StatusCode != http.StatusOK {
		return "", fmt.Errorf("token endpoint %s answers %s", e.URL, resp.Status)
	}
	if err := json.NewDecoder(io.LimitReader(resp.Body, 1<<20)).Decode(&answer); err != nil {
		return "", fmt.Errorf("token endpoint %s: %w", e.URL, err)
	}
	if answer.AccessToken == "" {
		return "", fmt.Errorf("token endpoint %s answers without access_token", e.URL)
	}
	e.current = answer.AccessToken
	e.until = time.Now().Add(time.Duration(answer.ExpiresIn)*time.Second - tokenMargin)
	return e.current, nil
}
