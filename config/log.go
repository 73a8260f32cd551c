package config

// Log is the section of the log.
type Log struct {
	// The least important lines to write.
	Level string `yaml:"level" default:"info" enum:"debug|info|warn|error"`
	// `auto` is `console` on a terminal and `json` elsewhere.
	Format string `yaml:"format" default:"auto" enum:"auto|json|console"`
}
