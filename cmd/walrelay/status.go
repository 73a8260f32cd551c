package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/walrelay/walrelay/event"
	"github.com/walrelay/walrelay/ops"
)

func (a *app) statusCommand() *cobra.Command {
	var asJSON, watch bool
	var url string
	cmd := &cobra.Command{
		Use: "status", Short: "show what the running relay does", Args: cobra.NoArgs,
		Long: `status asks the relay that runs with this configuration (http.listen, or --url).
It exits 0 when the relay is ready, 1 when it is not or cannot be asked.`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if url == "" {
				c, _, err := a.load()
				if err != nil {
					return err
				}
				url = "http://" + reachable(c.HTTP.Listen)
			}
			for {
				ready, err := a.status(cmd.Context(), url, asJSON, watch)
				switch {
				case watch && cmd.Context().Err() == nil:
					if err != nil {
						fmt.Fprintln(a.out, a.secrets.String(err.Error()))
					}
					select {
					case <-cmd.Context().Done():
						return nil
					case <-time.After(2 * time.Second):
					}
				case err != nil:
					return err
				case !ready:
					return errShown
				default:
					return nil
				}
			}
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print the whole answer as JSON")
	cmd.Flags().BoolVar(&watch, "watch", false, "ask again every 2 s")
	cmd.Flags().StringVar(&url, "url", "", "address of the relay, for instance http://127.0.0.1:8372")
	return cmd
}

// reachable makes an address to ask of one to listen on.
func reachable(listen string) string {
	host, port, err := net.SplitHostPort(listen)
	if err != nil {
		return listen
	}
	if ip := net.ParseIP(host); host == "" || ip != nil && ip.IsUnspecified() {
		host = "127.0.0.1"
	}
	return net.JoinHostPort(host, port)
}

func (a *app) status(ctx context.Context, url string, asJSON, watch bool) (ready bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, strings.TrimSuffix(url, "/")+"/api/status", nil)
	if err != nil {
		return false, usageError("status: %v", err)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return false, &event.Error{
			Class: event.Halt, What: "no relay answers at " + url, Cause: err, Anchor: "relay-down",
			Remedy: "start it with 'walrelay run', or give its address with --url",
		}
	}
	defer func() { _ = resp.Body.Close() }()
	body, err := io.ReadAll(io.LimitReader(resp.Body, 16<<20))
	if err != nil {
		return false, err
	}
	var st ops.Status
	if err := json.Unmarshal(body, &st); err != nil {
		return false, fmt.Errorf("%s does not answer as walrelay does (status %s): %w", url, resp.Status, err)
	}
	if asJSON {
		_, err := fmt.Fprintln(a.out, strings.TrimSpace(string(body)))
		return st.Ready, err
	}
	if watch {
		fmt.Fprint(a.out, "\x1b[H\x1b[2J")
	}
	return st.Ready, printStatus(a.out, st)
}

func printStatus(out io.Writer, st ops.Status) error {
	word := map[bool]string{true: "ready", false: "NOT READY"}
	fmt.Fprintf(out, "%s %s: %s, up %s\n", st.Name, st.Version, word[st.Ready], time.Duration(st.UptimeSeconds*float64(time.Second)).Round(time.Second))
	w := tabwriter.NewWriter(out, 2, 8, 2, ' ', 0)
	for _, s := range st.Sources {
		lag := "unknown"
		if s.LagSeconds != nil {
			lag = fmt.Sprintf("%.1f s", *s.LagSeconds)
		}
		fmt.Fprintf(w, "\n%s\t%s\tlag %s\t%.0f events/s\t%d in flight (%d bytes)\n", s.Name, s.State, lag, s.PublishedPerSecond, s.InFlightEvents, s.InFlightBytes)
		printConditions(w, s.Reasons)
		for _, r := range s.Ladder {
			if r.LSN == "" {
				continue // not known (yet)
			}
			behind := fmt.Sprintf("%d bytes behind", r.BehindBytes)
			if r.BehindSeconds != nil {
				behind = fmt.Sprintf("%.0f s behind", *r.BehindSeconds)
			}
			fmt.Fprintf(w, "  %s\t%s\t%s\n", r.Name, r.LSN, behind)
		}
		if s.Slot != nil {
			fmt.Fprintf(w, "  slot\t%s\t%s, %d bytes retained\n", s.Slot.Slot, s.Slot.WALStatus, s.Slot.RetainedBytes)
		}
		if s.Stream != nil && s.Stream.HeadroomSeconds != nil && s.Stream.OplogWindowSeconds != nil {
			fmt.Fprintf(w, "  oplog\t%.0f s\tthe position is %.0f s before its end\n", *s.Stream.OplogWindowSeconds, *s.Stream.HeadroomSeconds)
		}
	}
	for _, r := range st.Broker.Reasons {
		fmt.Fprintf(w, "\nkafka\t%s\n", r.Key)
		printConditions(w, []event.Condition{r.Condition})
	}
	if len(st.Process) > 0 {
		fmt.Fprintf(w, "\nprocess\n")
		printConditions(w, st.Process)
	}
	if len(st.Warnings) > 0 {
		fmt.Fprintf(w, "\nwarnings\n")
		printConditions(w, st.Warnings)
	}
	return w.Flush()
}

func printConditions(w io.Writer, list []event.Condition) {
	for _, c := range list {
		fmt.Fprintf(w, "  ! %s\n", c.What)
		if c.Remedy != "" {
			fmt.Fprintf(w, "    remedy: %s\n", c.Remedy)
		}
	}
}
