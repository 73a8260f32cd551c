package decoder

import (
	"strings"
	"testing"

	"github.com/walrelay/walrelay/event"
)

func TestRowCarriesEachColumnsBytesUntouched(t *testing.T) {
	t.Parallel()
	m := newTestMapper(t, event.Forze, func(o *MapperOptions) { o.ExtraColumns = []string{"shop", "missing", "event_type"} })
	payload := `{"a": 1e400, "b": 9007199254740993, "a": "\ud800\u0000"}`
	ins := forzeRow(
		cell{"payload", oidJSON, txt(payload)},
		cell{"occurred_at", oidTimestamptz, txt("0044-03-15 12:00:00+05:53:28 BC")},
		cell{"hlc", oidInt8, txt("111411200000003")},
		cell{"shop", oidText, txt("")},
		cell{"created_at", oidTimestamptz, txt("2023-11-14 22:13:20+00")},
	)
	var ev event.Event
	ev.Elided, ev.Headers = 5, []event.Header{{Key: "stale"}}
	o, scratch, err := m.Row(ins, testTx(), &ev, nil)
	if o != Publish || err != nil || len(scratch) != 0 {
		t.Fatal(o, scratch, err)
	}
	expectFields(t, &ev, map[string]string{
		"id": "0198c0de-0000-7000-8000-000000000001", "event_id": "0198c0de-0000-7000-8000-000000000002",
		"route": "orders", "key": "k-1", "type": "order.placed", "payload": payload,
		"occurred_at": "0044-03-15 12:00:00+05:53:28 BC", "hlc": "111411200000003", "status": "pending",
	})
	if ev.Relation != "public.outbox" || ev.Commit != event.AtLSN(sampleLSN) || ev.Ordinal != 3 || ev.CommitMicros != commitAt {
		t.Errorf("place: %+v", ev)
	}
	if len(ev.Extra) != 3 || ev.Extra[0] == nil || len(ev.Extra[0]) != 0 || ev.Extra[1] != nil || string(ev.Extra[2]) != "order.placed" {
		t.Errorf("extra %q", ev.Extra)
	}
	if ev.Elided != 0 || len(ev.Headers) != 0 {
		t.Error("something of the event before is left")
	}
}

func TestNothingOfTheEventBeforeIsLeft(t *testing.T) {
	t.Parallel()
	m := newTestMapper(t, event.Forze, func(o *MapperOptions) { o.ExtraColumns = []string{"shop"} })
	var ev event.Event
	if _, _, err := m.Row(forzeRow(cell{"shop", oidText, txt("s-1")}), testTx(), &ev, nil); err != nil || string(ev.Extra[0]) != "s-1" {
		t.Fatal(err, ev.Extra)
	}
	if _, _, err := m.Row(without(forzeRow(), "ordering_key"), testTx(), &ev, nil); err != nil {
		t.Fatal(err)
	}
	if ev.Extra[0] != nil || ev.Fields[event.Key] != nil {
		t.Errorf("extra %q, key %q", ev.Extra, ev.Fields[event.Key])
	}
	if _, _, err := m.Message(logical("outbox", `{"shop":"s-2","headers":{"a":"b"}}`), testTx(), &ev, nil); err != nil {
		t.Fatal(err)
	}
	if _, _, err := m.Message(logical("outbox/orders", ""), testTx(), &ev, nil); err != nil || ev.Extra[0] != nil || len(ev.Headers) != 0 {
		t.Error(err, ev.Extra, ev.Headers)
	}
}

func TestOneColumnServesSeveralFields(t *testing.T) {
	t.Parallel()
	for preset, cells := range map[event.Preset][]cell{
		event.Debezium: {
			{"id", oidUUID, txt("u-1")},
			{"aggregatetype", oidVarchar, txt("order")},
			{"aggregateid", oidVarchar, txt("7")},
			{"type", oidVarchar, txt("Placed")},
			{"payload", oidJSONB, txt("{}")},
		},
		event.Basic: {
			{"id", oidUUID, txt("u-1")},
			{"aggregate_type", oidText, txt("order")},
			{"aggregate_id", oidText, txt("7")},
			{"event_type", oidText, txt("Placed")},
			{"payload", oidJSONB, txt("{}")},
			{"published_at", oidTimestamptz, null},
		},
	} {
		var ev event.Event
		o, _, err := newTestMapper(t, preset).Row(insertOf("public", "outbox", cells...), testTx(), &ev, nil)
		if o != Publish || err != nil {
			t.Fatal(preset, o, err)
		}
		expectFields(t, &ev, map[string]string{
			"id": "u-1", "event_id": "u-1", "route": "order", "key": "7", "type": "Placed", "payload": "{}",
		})
	}
}

func TestOnlyPendingRowsThatAreDueArePublished(t *testing.T) {
	t.Parallel()
	ts := func(name, v string) cell { return cell{name, oidTimestamptz, txt(v)} }
	for _, c := range []struct {
		cell cell
		want Outcome
	}{
		{cell{"status", oidText, txt("pending")}, Publish},
		{cell{"status", 99_001, txt("processing")}, IgnoredStatus},
		{cell{"status", oidText, txt("published")}, IgnoredStatus},
		{cell{"status", oidText, txt("failed")}, IgnoredStatus},
		{cell{"status", oidText, txt("PENDING")}, IgnoredStatus},
		{ts("published_at", "2023-11-14 22:13:20+00"), IgnoredPublished},
		{ts("available_at", "infinity"), Deferred},
		{ts("available_at", "-infinity"), Publish},
		{ts("available_at", "2023-11-14 22:13:20.123456+00"), Publish},
		{ts("available_at", "2023-11-14 22:13:20.123457+00"), Deferred},
		{ts("available_at", "2023-11-15 03:43:20.123456+05:30"), Publish},
		{ts("available_at", "2023-11-15 03:43:20.123457+05:30"), Deferred},
		{ts("available_at", "294276-12-31 23:59:59.999999+00"), Deferred},
		{ts("available_at", "4713-01-01 00:00:00+00 BC"), Publish},
		{cell{"available_at", oidTimestamptz, bin("\x7f\xff\xff\xff\xff\xff\xff\xff")}, Deferred},
		{cell{"available_at", oidTimestamptz, bin("\x80\x00\x00\x00\x00\x00\x00\x00")}, Publish},
	} {
		var ev event.Event
		o, _, err := newTestMapper(t, event.Forze).Row(forzeRow(c.cell), testTx(), &ev, nil)
		if o != c.want || err != nil {
			t.Errorf("%s = %q: %s %v, want %s", c.cell.name, c.cell.v.Data, o, err, c.want)
		}
	}
}

func TestRowThatIsNoEventIsNeverPoison(t *testing.T) {
	t.Parallel()
	var ev event.Event
	o, _, err := newTestMapper(t, event.Forze).Row(forzeRow(
		cell{"status", oidText, txt("published")}, cell{"event_id", oidUUID, null}, cell{"payload", oidBytea, txt(`\xzz`)},
	), testTx(), &ev, nil)
	if o != IgnoredStatus || err != nil {
		t.Error(o, err)
	}
}

func TestForeignRelationsAreIgnoredWhateverTheyLookLike(t *testing.T) {
	t.Parallel()
	m := newTestMapper(t, event.Forze)
	for _, name := range [][2]string{{"public", "Outbox"}, {"other", "outbox"}, {"public", "outbox_2026_09"}, {"", "outbox"}} {
		ins := insertOf(name[0], name[1], cell{"id", oidUUID, null})
		if o, _, err := m.Row(ins, testTx(), nil, nil); o != IgnoredRelation || err != nil {
			t.Errorf("%q: %s %v", name, o, err)
		}
	}
	// A partition that was added while running.
	m.SetTables([]Table{{"public", "outbox"}, {"public", "outbox_2026_09"}})
	ins := forzeRow()
	ins.Relation.Name = "outbox_2026_09"
	var ev event.Event
	if o, _, err := m.Row(ins, testTx(), &ev, nil); o != Publish || err != nil || ev.Relation != "public.outbox_2026_09" {
		t.Error(o, err, ev.Relation)
	}
	// The verdict on a relation that was seen already changes with the set.
	m.SetTables(nil)
	if o, _, err := m.Row(ins, testTx(), &ev, nil); o != IgnoredRelation || err != nil {
		t.Error(o, err)
	}
}

func TestNamesAreNeverParsed(t *testing.T) {
	t.Parallel()
	m := newTestMapper(t, event.Forze, func(o *MapperOptions) { o.Tables = []Table{{"Sales-EU", "Outbox.Order"}} })
	ins := forzeRow()
	ins.Relation.Namespace, ins.Relation.Name = "Sales-EU", "Outbox.Order"
	var ev event.Event
	if o, _, err := m.Row(ins, testTx(), &ev, nil); o != Publish || err != nil {
		t.Error(o, err)
	}
}

func TestMissingRequiredColumnHaltsNamingRelationAndColumn(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"id", "event_id", "outbox_route", "event_type", "payload", "occurred_at", "status"} {
		m := newTestMapper(t, event.Forze)
		for range 2 {
			var ev event.Event
			o, _, err := m.Row(without(forzeRow(), name), testTx(), &ev, nil)
			if o != Refused {
				t.Errorf("%s: %s", name, o)
			}
			expectError(t, err, event.Halt, AnchorMissingColumn, "public.outbox", `"`+name+`"`)
		}
	}
	for _, name := range []string{"tenant_id", "available_at", "published_at", "ordering_key"} {
		var ev event.Event
		if o, _, err := newTestMapper(t, event.Forze).Row(without(forzeRow(), name), testTx(), &ev, nil); o != Publish || err != nil {
			t.Errorf("%s: %s %v", name, o, err)
		}
	}
}

func TestNullIsPoisonOnlyWhereNobodyCanJudgeIt(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"id", "event_id", "event_type", "occurred_at", "status"} {
		var ev event.Event
		o, _, err := newTestMapper(t, event.Forze).Row(forzeRow(cell{name, oidText, null}), testTx(), &ev, nil)
		if o != Refused {
			t.Errorf("%s: %s", name, o)
		}
		expectError(t, err, event.Poison, AnchorPoisonRow, "public.outbox", `"`+name+`"`, "NULL", sampleLSN.String())
		if string(ev.Fields[event.Key]) != "k-1" || string(ev.Fields[event.Route]) != "orders" {
			t.Errorf("%s: the refused event lost its key", name)
		}
	}
	for name, f := range map[string]event.Field{"payload": event.Payload, "outbox_route": event.Route, "ordering_key": event.Key} {
		var ev event.Event
		o, _, err := newTestMapper(t, event.Forze).Row(forzeRow(cell{name, oidText, null}), testTx(), &ev, nil)
		if o != Publish || err != nil || ev.Fields[f] != nil {
			t.Errorf("%s: %s %v %q", name, o, err, ev.Fields[f])
		}
	}
}

func TestEmptyIsNotNull(t *testing.T) {
	t.Parallel()
	d := sample{}.ready()
	ins := mustDecode(d, msg(KindInsert).i32(sampleID).i8('N').i16(3).text("").text("").null()).(*Insert)
	if ins.New[0].Data == nil || ins.New[2].Data != nil {
		t.Fatal("empty and NULL are the same")
	}
	for _, v := range []Value{txt(""), bin(""), txt(`\x`)} {
		var ev event.Event
		o, _, err := newTestMapper(t, event.Forze).Row(forzeRow(cell{"payload", oidBytea, v}), testTx(), &ev, nil)
		if o != Publish || err != nil || ev.Fields[event.Payload] == nil || len(ev.Fields[event.Payload]) != 0 {
			t.Errorf("%q: %s %v %q", v.Data, o, err, ev.Fields[event.Payload])
		}
	}
}

func TestShapeChangesAreReadByNameFromTheirRowOn(t *testing.T) {
	t.Parallel()
	m := newTestMapper(t, event.Forze)
	var ev event.Event
	row := func(ins *Insert) error {
		_, _, err := m.Row(ins, testTx(), &ev, nil)
		return err
	}
	if err := row(forzeRow()); err != nil {
		t.Fatal(err)
	}
	// Same relation id, a column less in front of the payload.
	if err := row(without(forzeRow(), "tenant_id")); err != nil || string(ev.Fields[event.Payload]) != `{"n": 9007199254740993}` {
		t.Errorf("%v %q", err, ev.Fields[event.Payload])
	}
	renamed := forzeRow()
	renamed.Relation.Columns[renamed.Relation.Column("payload")].Name = "body"
	expectError(t, row(renamed), event.Halt, AnchorMissingColumn, `"payload"`)
	if len(m.plans) != 1 {
		t.Errorf("%d plans are kept for one relation", len(m.plans))
	}
}

func TestBinaryFormsBecomeTheTextThatTheServerPrints(t *testing.T) {
	t.Parallel()
	m := newTestMapper(t, event.Forze, func(o *MapperOptions) { o.ExtraColumns = []string{"n4", "n2", "yes", "plain"} })
	uuidBytes := "\x01\x98\xc0\xde\x00\x00\x70\x00\x80\x00\x00\x00\x00\x00\x00\xff"
	ins := forzeRow(
		cell{"id", oidUUID, bin(uuidBytes)}, cell{"event_id", oidUUID, bin(uuidBytes)},
		cell{"payload", oidJSONB, bin("\x01{\"n\": 1.0}")}, cell{"outbox_route", oidVarchar, bin("orders")},
		cell{"occurred_at", oidTimestamptz, bin("\x00\x00\x00\x00\x00\x00\x00\x01")},
		cell{"hlc", oidInt8, bin("\xff\xff\xff\xff\xff\xff\xff\xfe")},
		cell{"n4", oidInt4, bin("\x80\x00\x00\x00")}, cell{"n2", oidInt2, bin("\xff\xff")},
		cell{"yes", oidBool, bin("\x01")}, cell{"plain", oidTimestamp, bin("\x00\x00\x00\x00\x00\x0f\x42\x40")},
	)
	var ev event.Event
	scratch := append(make([]byte, 0, 5), "mine"...)
	o, scratch, err := m.Row(ins, testTx(), &ev, scratch)
	if o != Publish || err != nil {
		t.Fatal(o, err)
	}
	if !strings.HasPrefix(string(scratch), "mine0198c0de") {
		t.Errorf("scratch %q", scratch)
	}
	expectFields(t, &ev, map[string]string{
		"id": "0198c0de-0000-7000-8000-0000000000ff", "event_id": "0198c0de-0000-7000-8000-0000000000ff",
		"route": "orders", "key": "k-1", "type": "order.placed", "payload": `{"n": 1.0}`,
		"occurred_at": "2000-01-01 00:00:00.000001+00", "hlc": "-2", "status": "pending",
	})
	if got := strings.Join([]string{string(ev.Extra[0]), string(ev.Extra[1]), string(ev.Extra[2]), string(ev.Extra[3])}, " "); got != "-2147483648 -1 t 2000-01-01 00:00:01" {
		t.Errorf("extra %s", got)
	}
}

func TestUnreadableBinaryValuesHaltAndNameTheType(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		cell  cell
		words []string
	}{
		{cell{"event_type", 99_001, bin("x")}, []string{"public.outbox", `"event_type"`, "99001"}},
		{cell{"id", oidUUID, bin("short")}, []string{`"id"`, "5 bytes"}},
		{cell{"payload", oidJSONB, bin("\x02{}")}, []string{`"payload"`, "version"}},
		{cell{"payload", oidJSONB, bin("")}, []string{`"payload"`, "version"}},
		{cell{"hlc", oidInt8, bin("123")}, []string{`"hlc"`, "3 bytes"}},
		{cell{"available_at", oidTimestamptz, bin("123")}, []string{`"available_at"`}},
		{cell{"hlc", oidInt4, bin("123")}, []string{`"hlc"`}},
		{cell{"hlc", oidInt2, bin("123")}, []string{`"hlc"`}},
		{cell{"hlc", oidBool, bin("")}, []string{`"hlc"`}},
	} {
		var ev event.Event
		o, _, err := newTestMapper(t, event.Forze).Row(forzeRow(c.cell), testTx(), &ev, nil)
		if o != Refused {
			t.Errorf("%+v: %s", c.cell, o)
		}
		expectError(t, err, event.Halt, AnchorBinaryType, c.words...)
	}
	if BinaryKnown(99_001) || !BinaryKnown(oidUUID) {
		t.Error("BinaryKnown disagrees")
	}
}

func TestByteaIsRawInEveryForm(t *testing.T) {
	t.Parallel()
	for _, v := range []Value{txt(`\x0041ff5c`), txt(`\x0041FF5C`), txt(`\000A\377\\`), bin("\x00A\xff\\")} {
		m := newTestMapper(t, event.Forze)
		ins := forzeRow(cell{"payload", oidBytea, v})
		for range 2 { // the second time the value is decoded already
			var ev event.Event
			o, _, err := m.Row(ins, testTx(), &ev, nil)
			if o != Publish || err != nil || string(ev.Fields[event.Payload]) != "\x00A\xff\\" {
				t.Errorf("%q: %s %v %q", v.Data, o, err, ev.Fields[event.Payload])
			}
		}
	}
	for _, bad := range []string{`\x0`, `\xzz`, `\x0g`, `a\`, `\4`, `\400`, `\08`} {
		var ev event.Event
		_, _, err := newTestMapper(t, event.Forze).Row(forzeRow(cell{"payload", oidBytea, txt(bad)}), testTx(), &ev, nil)
		expectError(t, err, event.Poison, AnchorPoisonRow, `"payload"`)
	}
}

func TestUnchangedMarkInAnInsertHalts(t *testing.T) {
	t.Parallel()
	var ev event.Event
	_, _, err := newTestMapper(t, event.Forze).Row(forzeRow(cell{"payload", oidJSONB, Value{Form: Unchanged}}), testTx(), &ev, nil)
	expectError(t, err, event.Halt, AnchorMalformed, "public.outbox", `"payload"`)
}

func TestUnreadableAvailableAtIsPoison(t *testing.T) {
	t.Parallel()
	var ev event.Event
	_, _, err := newTestMapper(t, event.Forze).Row(forzeRow(cell{"available_at", oidText, txt("tomorrow")}), testTx(), &ev, nil)
	expectError(t, err, event.Poison, AnchorPoisonRow, "available_at")
	if strings.Contains(err.Error(), "tomorrow") || string(ev.Fields[event.Key]) != "k-1" {
		t.Error("the error shows a value, or the event lost its key")
	}
}

func TestMappingARowOfTextAllocatesNothing(t *testing.T) {
	m := newTestMapper(t, event.Forze, func(o *MapperOptions) { o.ExtraColumns = []string{"tenant_id"} })
	ins := forzeRow()
	var ev event.Event
	if n := testing.AllocsPerRun(100, func() { _, _, _ = m.Row(ins, testTx(), &ev, nil) }); n > 0 {
		t.Errorf("%v allocations", n)
	}
}

func TestMappingARowOfBinaryAllocatesNothingWithScratch(t *testing.T) {
	m := newTestMapper(t, event.Forze)
	ins := forzeRow(
		cell{"id", oidUUID, bin("0123456789abcdef")}, cell{"payload", oidJSONB, bin("\x01{}")},
		cell{"occurred_at", oidTimestamptz, bin("\x00\x00\x00\x00\x00\x00\x00\x01")},
	)
	var ev event.Event
	scratch := make([]byte, 0, 256)
	if n := testing.AllocsPerRun(100, func() { _, _, _ = m.Row(ins, testTx(), &ev, scratch) }); n > 0 {
		t.Errorf("%v allocations", n)
	}
}
