package pgserver

// Open starts a server for a program that is no test. The caller owes Close.
func Open(opts Options) (*Server, error) { return start(opts) }

// Close ends a server of Open's, whatever its state, and removes its files.
func (s *Server) Close() { s.close() }
