package config

import "github.com/walrelay/walrelay/publish"

func (k *checking) kafka(c *Kafka) {
	for i, b := range c.Brokers {
		k.address(index("kafka.brokers", i), b, false)
	}
	switch {
	case c.OnPoison == "dlq" && c.DLQTopic == "":
		k.refuse("kafka.dlq_topic", "is missing: on_poison is dlq")
	case c.OnPoison != "dlq" && c.DLQTopic != "":
		k.refuse("kafka.dlq_topic", "has no effect: on_poison is %s; write on_poison: dlq, or leave the topic out", c.OnPoison)
	}
	if !c.CreateTopics && (c.Partitions != 0 || c.Replication != 0) {
		k.refuse("kafka", "partitions and replication have no effect: they are for topics that walrelay creates, with create_topics: true")
	}
	k.sasl(&c.SASL)
	// The publisher knows the rest.
	if !k.touched("kafka") {
		o := k.c.PublishOptions()
		if o.OnPoison == publish.PoisonPark {
			o.OnPoison = publish.PoisonStop // who puts events aside is not known yet
		}
		k.judge("kafka", true, o.Validate())
	}
}

func (k *checking) sasl(s *SASL) {
	const at = "kafka.sasl"
	switch s.Mechanism {
	case "":
	case "OAUTHBEARER":
		if s.User != "" || !s.Password.IsZero() {
			k.refuse(at, "OAUTHBEARER takes a token, no user and password")
		}
	case "PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512":
		if s.User == "" {
			k.refuse(at+".user", "is missing: mechanism %s needs it", s.Mechanism)
		}
		if s.Password.IsZero() {
			k.refuse(at+".password", "is missing: mechanism %s needs it", s.Mechanism)
		}
		if !s.Token.IsZero() || s.TokenFile != "" || s.Endpoint != (Endpoint{}) {
			k.refuse(at, "mechanism %s takes user and password, no token", s.Mechanism)
		}
	}
}
