package config

func (k *checking) kafka(c *Kafka) {
	for i, b := range c.Brokers {
		k.address(index("kafka.brokers", i), b, false)
	}
	k.tls(&c.TLS)
	k.sasl(&c.SASL)
	switch {
	case c.OnPoison == "dlq" && c.DLQTopic == "":
		k.refuse("kafka.dlq_topic", "is missing: on_poison is dlq")
	case c.OnPoison == "stop" && c.DLQTopic != "":
		k.refuse("kafka.dlq_topic", "has no effect: on_poison is stop; write on_poison: dlq, or leave the topic out")
	}
}

func (k *checking) tls(t *TLS) {
	if (t.CertFile == "") != (t.KeyFile == "") {
		k.refuse("kafka.tls", "cert_file and key_file belong together: give both, or neither")
	}
	if !t.Enabled && *t != (TLS{}) {
		k.refuse("kafka.tls", "has options but is not enabled: write enabled: true, or leave them out")
	}
}

func (k *checking) sasl(s *SASL) {
	const at = "kafka.sasl"
	if k.spoiled(at + ".mechanism") {
		return
	}
	switch s.Mechanism {
	case "":
		if *s != (SASL{}) {
			k.refuse(at+".mechanism", "is missing: other options of sasl are given")
		}
	case "oauthbearer":
		if s.Token.IsZero() == (s.TokenFile == "") {
			k.refuse(at, "oauthbearer needs either token or token_file")
		}
		if s.User != "" || !s.Password.IsZero() {
			k.refuse(at, "oauthbearer takes a token, no user and password")
		}
	default:
		if s.User == "" {
			k.refuse(at+".user", "is missing: mechanism %s needs it", s.Mechanism)
		}
		if s.Password.IsZero() {
			k.refuse(at+".password", "is missing: mechanism %s needs it", s.Mechanism)
		}
		if !s.Token.IsZero() || s.TokenFile != "" {
			k.refuse(at, "mechanism %s takes user and password, no token", s.Mechanism)
		}
	}
}
