package config

// HTTP is the section of the web server.
type HTTP struct {
	// Address for `/metrics`, `/healthz`, `/readyz`, the status page and its API. There is no login: keep it private.
	Listen string `yaml:"listen" default:"127.0.0.1:8372"`
}
