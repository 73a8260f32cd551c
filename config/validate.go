package config

import (
	"net"
	"reflect"
	"strconv"
	"strings"
)

// Validate says everything that is wrong with the configuration in one error
// (class Halt, FaultUsage) whose cause is [Problems], or returns nil. [Load] has
// called it already.
func (c *Config) Validate() error { return refusal(c.check(nil)) }

// check finds what is wrong, but for what was refused before.
func (c *Config) check(before Problems) Problems {
	k := &checking{c: c, refused: map[string]bool{}}
	for _, p := range before {
		if p.Path != "" {
			k.refused[p.Path] = true
		}
	}
	k.databases()
	k.section(reflect.ValueOf(c).Elem(), "")
	k.names()
	for i := range c.Sources {
		k.source(c.Sources[i].Key, &c.Sources[i].Value)
	}
	k.slots()
	k.routes()
	k.pins()
	k.order()
	k.parking()
	k.kafka(&c.Kafka)
	if c.HTTP.Listen != "" {
		k.address("http.listen", c.HTTP.Listen, true)
	}
	return k.problems
}

const nameAlphabet = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-"

func (k *checking) names() {
	if strings.Trim(k.c.Name, nameAlphabet+".") != "" || len(k.c.Name) > maxIdentifier {
		k.refuse("name", "%s is no name: want at most %d letters, digits, dots, _ and -", k.show("name", k.c.Name), maxIdentifier)
	}
	for _, s := range k.c.Sources {
		if path := join("sources", s.Key); strings.Trim(s.Key, nameAlphabet) != "" || len(s.Key) > maxIdentifier {
			k.refuse(path, "the source's name is not possible: want at most %d letters, digits, _ and -", maxIdentifier)
		}
	}
}

// hiddenValue stands in messages for what must not.
const hiddenValue = "the value (hidden, it comes from a file)"

// show quotes a value for a message, unless it must not print.
func (k *checking) show(path, value string) string {
	if k.c.isHidden(path) {
		return hiddenValue
	}
	return quoteForPeople(value)
}

// address refuses what is no host:port; the host may be empty where one listens.
func (k *checking) address(path, value string, listen bool) {
	host, port, err := net.SplitHostPort(value)
	switch n, bad := strconv.ParseUint(port, 10, 16); {
	case err != nil:
		k.refuse(path, "%s is no address: want host:port", k.show(path, value))
	case host == "" && !listen || strings.ContainsAny(host, " /@"):
		k.refuse(path, "%s has no host that could be one: want host:port", k.show(path, value))
	case bad != nil || n == 0 && !listen:
		k.refuse(path, "%s has no port between 1 and 65535", k.show(path, value))
	}
}
