package mongostream

import (
	"encoding/json"
	"fmt"
	"strings"
)

// quoteJS writes a string for the shell: as JSON, which JavaScript reads alike.
func quoteJS(s string) string {
	b, err := json.Marshal(s)
	if err != nil {
		panic(err) // strings can always be written
	}
	return string(b)
}

func quoteAll(list []string) string {
	quoted := make([]string, len(list))
	for i, s := range list {
		quoted[i] = quoteJS(s)
	}
	return strings.Join(quoted, ", ")
}

func createJS(collection string) string {
	return fmt.Sprintf("db.createCollection(%s)", quoteJS(collection))
}

// createJS is the shell's command for the index.
func (x index) createJS() string {
	keys := make([]string, len(x.keys))
	for i, k := range x.keys {
		keys[i] = quoteJS(k) + ": 1"
	}
	options := []string{"name: " + quoteJS(x.name)}
	if x.unique {
		options = append(options, "unique: true")
	}
	if x.sparse {
		options = append(options, "sparse: true")
	}
	if x.partial != nil {
		value := `{$exists: true}`
		if s, text := x.partial[0].Value.(string); text {
			value = quoteJS(s)
		}
		options = append(options, fmt.Sprintf("partialFilterExpression: {%s: %s}", quoteJS(x.partial[0].Key), value))
	}
	return fmt.Sprintf("db.getCollection(%s).createIndex({%s}, {%s})", quoteJS(x.collection), strings.Join(keys, ", "), strings.Join(options, ", "))
}
