package slot

import "slices"

// notifier is the trigger function in walrelay's own schema.
const notifier = "notify"

func notifierSQL(o Options) string { return QuoteIdent(o.Bookkeeping) + "." + QuoteIdent(notifier) }

// notifierDDL makes the function that tells a channel of inserts. Within one
// transaction the server merges equal notifications.
func notifierDDL(o Options) string {
	return "CREATE FUNCTION " + notifierSQL(o) + `() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
	PERFORM pg_catalog.pg_notify(TG_ARGV[0], '');
	RETURN NULL;
END
$$`
}

// wakeUpDDL has each statement that inserts into the table call it. On a
// partitioned table this covers inserts through the root.
func wakeUpDDL(t Table, o Options) string {
	channel := o.NotifyChannel()
	return "CREATE TRIGGER " + QuoteIdent(channel) + " AFTER INSERT ON " + t.SQL() +
		"\n\tFOR EACH STATEMENT EXECUTE FUNCTION " + notifierSQL(o) + "(" + QuoteLiteral(channel) + ")"
}

// wakeUpSteps make what is missing for Options.Notify.
func (v *inventory) wakeUpSteps(o Options) (steps Steps) {
	if !o.wakes() {
		return nil
	}
	made := v.notifies
	for _, t := range v.tables {
		step := Step{What: "wake-up trigger on " + t.String()}
		if !slices.Contains(t.triggers, o.NotifyChannel()) {
			if !made {
				step.SQL = append(step.SQL, notifierDDL(o))
				made = true
			}
			step.SQL = append(step.SQL, wakeUpDDL(t.Table, o))
		}
		steps = append(steps, step)
	}
	return steps
}
