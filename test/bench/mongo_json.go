package main

import (
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/walrelay/walrelay/mongostream/bsonjson"
)

// toJSON writes payloads as JSON on one core, as the driver does it and as
// walrelay does. The log says it in bytes of BSON per second.
func (s *site) toJSON(t *crew) []result {
	var payloads [][]byte
	total := 0
	for i := range 1000 {
		for _, field := range document(i + 1) {
			if field.Key != "payload" {
				continue
			}
			raw, err := bson.Marshal(field.Value)
			if err != nil {
				t.Fatal(err)
			}
			payloads, total = append(payloads, raw), total+len(raw)
		}
	}
	encoder, buf := bsonjson.New(bsonjson.Options{}), make([]byte, 0, 64<<10)
	ways := []struct {
		name  string
		write func([]byte) error
	}{
		{"driver", func(raw []byte) error { _, err := bson.MarshalExtJSON(bson.Raw(raw), false, false); return err }},
		{"walrelay", func(raw []byte) error { _, err := encoder.AppendDocument(buf, raw); return err }},
	}
	runs := make([][]drained, len(ways))
	for range 2 * s.rounds {
		for i, w := range ways {
			d := drained{}
			for began := time.Now(); d.took < time.Second; d.took = time.Since(began) {
				for _, raw := range payloads {
					if err := w.write(raw); err != nil {
						t.Fatal(err)
					}
				}
				d.rows += len(payloads)
			}
			d.cpu = d.took
			t.Logf("json      %-9s %8.0f payloads/s, %.0f MB/s", w.name, float64(d.rows)/d.took.Seconds(),
				float64(d.rows/len(payloads)*total)/d.took.Seconds()/1e6)
			runs[i] = append(runs[i], d)
		}
	}
	var results []result
	for i, w := range ways {
		r := sum(w.name+", BSON to JSON", runs[i], runs[0])
		r.PeakRSS = nil
		results = append(results, r)
	}
	return results
}
