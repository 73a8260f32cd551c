package ops

import (
	"bytes"
	"encoding/json"
	"net/http"

	"github.com/prometheus/client_golang/prometheus/promhttp"
	"go.uber.org/zap"
)

// Handler serves all faces. They only read.
func (o *Ops) Handler() http.Handler {
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", promhttp.InstrumentMetricHandler(o.registry, promhttp.HandlerFor(o.registry, promhttp.HandlerOpts{
		// A broken collector of another room must not blind the rest.
		ErrorHandling:       promhttp.ContinueOnError,
		ErrorLog:            scrapeErrors{o.facts.log},
		MaxRequestsInFlight: 8,
	})))
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) {
		h := o.Health()
		o.answer(w, h.Live, h)
	})
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, _ *http.Request) {
		r := o.Readiness()
		o.answer(w, r.Ready, r)
	})
	mux.HandleFunc("GET /api/status", func(w http.ResponseWriter, _ *http.Request) {
		o.answer(w, true, o.Status())
	})
	mux.HandleFunc("GET /{$}", o.page)
	return guard(mux)
}

// guard sets what holds for every answer: nothing is cached, guessed or framed.
func guard(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("Cache-Control", "no-store")
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("X-Frame-Options", "DENY")
		h.Set("Referrer-Policy", "no-referrer")
		next.ServeHTTP(w, r)
	})
}

// answer writes v as JSON with status 200 or 503.
func (o *Ops) answer(w http.ResponseWriter, well bool, v any) {
	var body bytes.Buffer
	enc := json.NewEncoder(&body)
	enc.SetIndent("", "  ")
	enc.SetEscapeHTML(false) // people read it; browsers are told that it is JSON
	if err := enc.Encode(v); err != nil {
		http.Error(w, "status cannot be encoded", http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	if !well {
		w.WriteHeader(http.StatusServiceUnavailable)
	}
	_, _ = w.Write(body.Bytes()) // the reader may be gone; nobody else is told
}

// scrapeErrors takes what promhttp has to say.
type scrapeErrors struct{ log *zap.Logger }

func (s scrapeErrors) Println(v ...any) {
	for _, x := range v {
		if err, ok := x.(error); ok {
			s.log.Error("metrics cannot be collected completely", zap.Error(err))
		}
	}
}
