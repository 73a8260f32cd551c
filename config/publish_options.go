package config

import (
	"math"

	"github.com/walrelay/walrelay/publish"
)

// PublishOptions are the options of package publish. Result, hooks and Dial are
// the caller's.
func (c *Config) PublishOptions() publish.Options {
	k := &c.Kafka
	o := publish.Options{
		Brokers:            k.Brokers,
		ClientID:           k.ClientID,
		Linger:             k.Linger,
		Compression:        k.Compression,
		MaxInFlightRecords: k.InFlightRecords,
		MaxInFlightBytes:   int64(k.InFlightBytes),
		BatchMaxBytes:      int32(min(k.BatchMaxBytes, math.MaxInt32)), // Validate knows the true limit
		TLS: publish.TLS{
			Enable: k.TLS.Enable, CAFile: k.TLS.CAFile, CertFile: k.TLS.CertFile, KeyFile: k.TLS.KeyFile, ServerName: k.TLS.ServerName,
		},
		SASL: publish.SASL{
			Mechanism: k.SASL.Mechanism, User: k.SASL.User, Password: k.SASL.Password.Reveal(),
			Token: k.SASL.Token.Reveal(), TokenFile: k.SASL.TokenFile, AllowPlaintext: k.SASL.AllowPlaintext,
			Endpoint: publish.TokenEndpoint{
				URL: k.SASL.Endpoint.URL, ClientID: k.SASL.Endpoint.ClientID, ClientSecret: k.SASL.Endpoint.ClientSecret.Reveal(),
				Scope: k.SASL.Endpoint.Scope,
			},
		},
		CreateTopics:   k.CreateTopics,
		Partitions:     int32(min(k.Partitions, math.MaxInt32)),
		Replication:    int16(min(k.Replication, math.MaxInt16)),
		OnPoison:       publish.PoisonPolicy(k.OnPoison),
		DLQTopic:       k.DLQTopic,
		RequestTimeout: k.RequestTimeout,
	}
	for _, r := range c.Routes {
		if r.Value.PinPartitions > 0 {
			if o.PinPartitions == nil {
				o.PinPartitions = map[string]int{}
			}
			o.PinPartitions[r.Value.Topic] = r.Value.PinPartitions
		}
	}
	return o
}
