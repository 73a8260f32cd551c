package main

import (
	"strings"
	"testing"
)

func TestAccountTellsMissingDoubledAndEarlyPayments(t *testing.T) {
	t.Parallel()
	const early, late = "001700000000000.00003", "001700000000000.00004"
	placed := func(order, stamp string) fact {
		return fact{topic: ordersTopic, order: order, id: "e-" + order, correlation: "c-" + order, stamp: stamp}
	}
	paid := func(order, stamp string) fact {
		return fact{topic: paymentsTopic, order: order, id: "p-" + order, cause: "e-" + order, correlation: "c-" + order, stamp: stamp}
	}
	again := func(f fact, id string) fact { f.id = id; return f }
	foreign := func(f fact, cause string) fact { f.cause = cause; return f }
	both := map[string]int{"a": 1, "b": 1}
	for _, c := range []struct {
		name  string
		facts []fact
		rows  map[string]int
		want  string
		clean bool
	}{
		{"all paid", []fact{placed("a", early), placed("b", early), paid("a", late), paid("b", late)}, both, "paid=2 missing=0 doubled=0 before_their_order=0 redelivered=0", true},
		{"a payment event comes before its order's", []fact{paid("a", late), placed("a", early), placed("b", early), paid("b", late)}, both, "paid=2 missing=0 doubled=0 before_their_order=0 redelivered=0", true},
		{"published twice", []fact{placed("a", early), placed("a", early), placed("b", early), paid("a", late), paid("b", late), paid("b", late)}, both, "paid=2 missing=0 doubled=0 before_their_order=0 redelivered=2", true},
		{"no payment event", []fact{placed("a", early), placed("b", early), paid("a", late)}, both, "paid=1 missing=1 doubled=0 before_their_order=0 redelivered=0", false},
		{"no payment row", []fact{placed("a", early), placed("b", early), paid("a", late), paid("b", late)}, map[string]int{"a": 1}, "paid=1 missing=1 doubled=0 before_their_order=0 redelivered=0", false},
		{"an order is not published", []fact{placed("a", early), paid("a", late)}, both, "paid=1 missing=1 doubled=0 before_their_order=0 redelivered=0", false},
		{"two payment events", []fact{placed("a", early), placed("b", early), paid("a", late), again(paid("a", late), "p2"), paid("b", late)}, both, "paid=1 missing=0 doubled=1 before_their_order=0 redelivered=0", false},
		{"two payment rows", []fact{placed("a", early), placed("b", early), paid("a", late), paid("b", late)}, map[string]int{"a": 1, "b": 2}, "paid=1 missing=0 doubled=1 before_their_order=0 redelivered=0", false},
		{"the stamp of a payment is smaller", []fact{placed("a", late), placed("b", early), paid("a", early), paid("b", late)}, both, "paid=2 missing=0 doubled=0 before_their_order=1 redelivered=0", false},
		{"the stamp of a payment is equal", []fact{placed("a", late), placed("b", early), paid("a", late), paid("b", late)}, both, "paid=2 missing=0 doubled=0 before_their_order=1 redelivered=0", false},
		{"a payment has no stamp", []fact{placed("a", early), placed("b", early), paid("a", ""), paid("b", late)}, both, "paid=2 missing=0 doubled=0 before_their_order=1 redelivered=0", false},
		{"a payment names another cause", []fact{placed("a", early), placed("b", early), foreign(paid("a", late), "e-b"), paid("b", late)}, both, "paid=2 missing=0 doubled=0 before_their_order=0 redelivered=0", false},
		{"nobody placed what is paid", []fact{placed("a", early), placed("b", early), paid("a", late), paid("b", late), paid("x", late)}, both, "paid=2 missing=0 doubled=0 before_their_order=0 redelivered=0", false},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			a := newAccount()
			for _, f := range c.facts {
				a.add(f)
			}
			s := a.judge(books{orders: []string{"a", "b"}, payments: c.rows})
			if got := strings.TrimSuffix(strings.TrimPrefix(s.String(), "examples: orders=2 "), " skipped=0"); got != c.want || s.clean() != c.clean {
				t.Errorf("%q, clean %t, complaints %q; want %q, %t", got, s.clean(), s.complaints, c.want, c.clean)
			}
		})
	}
}
