package decoder

// Relation is a table as the stream announced it, with the shape it had at that
// place in the log. It is never changed: when the stream announces the id anew
// with another shape, another Relation takes its place, and plans made for the
// old pointer are plainly not found.
type Relation struct {
	ID uint32
	// Namespace is the schema; empty means pg_catalog.
	Namespace string
	Name      string
	// ReplicaIdentity is pg_class.relreplident: d, n, f or i.
	ReplicaIdentity byte
	Columns         []Column
	// Version counts the shapes that this connection announced for the id, from 1.
	Version int
}

// Column is one column of a relation. Stored generated columns and those outside
// the publication's column list are absent.
type Column struct {
	Name    string
	TypeOID uint32
	// TypeModifier is pg_attribute.atttypmod, -1 for none.
	TypeModifier int32
	// Key says that the column is part of the replica identity.
	Key bool
	// Flags is the byte that Key was read from.
	Flags uint8
}

// columnIsKey is LOGICALREP_IS_REPLICA_IDENTITY in Postgres' proto.c.
const columnIsKey = 1

// String is schema.table, for messages to people.
func (r *Relation) String() string {
	if r.Namespace == "" {
		return "pg_catalog." + r.Name
	}
	return r.Namespace + "." + r.Name
}

// Column finds a column by its name, byte for byte; -1 if there is none.
func (r *Relation) Column(name string) int {
	for i := range r.Columns {
		if r.Columns[i].Name == name {
			return i
		}
	}
	return -1
}

// RelationMessage announces a relation, or announces it again.
type RelationMessage struct {
	// XID is the transaction inside a streamed block, else zero.
	XID uint32
	// Relation outlives the message. It is the same pointer as before when the
	// shape is the same.
	Relation *Relation
	// Changed says that the relation is new or has another shape than before.
	Changed bool
}

// Kind is KindRelation.
func (*RelationMessage) Kind() Kind { return KindRelation }

// read reads a Relation:
//
//	+-----+-------------+-----------+------------------+-------------+-----------------+---------+
//	| 'R' | Int32 xid * | Int32 oid | String namespace | String name | Int8 relreplident | Int16 n |
//	+-----+-------------+-----------+------------------+-------------+-----------------+---------+
//	for each column:
//	+------------+-------------+------------+------------------+
//	| Int8 flags | String name | Int32 type | Int32 atttypmod  |
//	+------------+-------------+------------+------------------+
//	* inside a streamed block only
func (m *RelationMessage) read(c *cursor, d *Decoder) Message {
	m.XID = d.xid(c)
	draft := &d.draft
	draft.read(c)
	if !c.done() {
		return m
	}
	old := d.relations[draft.id]
	if old != nil && draft.describes(old) {
		m.Relation, m.Changed = old, false
		return m
	}
	version := 1
	if old != nil {
		version = old.Version + 1
	}
	m.Relation, m.Changed = draft.relation(version), true
	d.relations[draft.id] = m.Relation
	d.last = m.Relation
	return m
}

// relationDraft is a relation whose names still alias the input, so that an
// announcement that changes nothing, as after every cache reset of the server,
// costs no memory.
type relationDraft struct {
	id              uint32
	namespace, name []byte
	replicaIdentity byte
	columns         []columnDraft
}

type columnDraft struct {
	flags    uint8
	name     []byte
	typeOID  uint32
	modifier int32
}

func (r *relationDraft) read(c *cursor) {
	r.id = c.u32()
	r.namespace = c.str()
	r.name = c.str()
	r.replicaIdentity = c.u8()
	n := int(c.u16())
	r.columns = r.columns[:0]
	// The check keeps a lying count from allocating: it stops with the bytes.
	for range n {
		if c.fault != faultNone {
			return
		}
		r.columns = append(r.columns, columnDraft{
			flags: c.u8(), name: c.str(), typeOID: c.u32(), modifier: int32(c.u32()),
		})
	}
}

func (r *relationDraft) describes(rel *Relation) bool {
	if rel.Namespace != string(r.namespace) || rel.Name != string(r.name) ||
		rel.ReplicaIdentity != r.replicaIdentity || len(rel.Columns) != len(r.columns) {
		return false
	}
	for i := range r.columns {
		a, b := &r.columns[i], &rel.Columns[i]
		if b.Name != string(a.name) || b.TypeOID != a.typeOID || b.TypeModifier != a.modifier || b.Flags != a.flags {
			return false
		}
	}
	return true
}

func (r *relationDraft) relation(version int) *Relation {
	rel := &Relation{
		ID: r.id, Namespace: string(r.namespace), Name: string(r.name),
		ReplicaIdentity: r.replicaIdentity, Columns: make([]Column, len(r.columns)), Version: version,
	}
	for i, c := range r.columns {
		rel.Columns[i] = Column{
			Name: string(c.name), TypeOID: c.typeOID, TypeModifier: c.modifier,
			Key: c.flags&columnIsKey != 0, Flags: c.flags,
		}
	}
	return rel
}
