package bsonjson

import "strconv"

// Type is the byte before a name that says what the value is.
type Type byte

// The types of the BSON specification, version 1.1 (bsonspec.org).
const (
	TypeDouble        Type = 0x01
	TypeString        Type = 0x02
	TypeDocument      Type = 0x03
	TypeArray         Type = 0x04
	TypeBinary        Type = 0x05
	TypeUndefined     Type = 0x06 // deprecated
	TypeObjectID      Type = 0x07
	TypeBool          Type = 0x08
	TypeDate          Type = 0x09
	TypeNull          Type = 0x0a
	TypeRegex         Type = 0x0b
	TypeDBPointer     Type = 0x0c // deprecated
	TypeCode          Type = 0x0d
	TypeSymbol        Type = 0x0e // deprecated
	TypeCodeWithScope Type = 0x0f // deprecated
	TypeInt32         Type = 0x10
	TypeTimestamp     Type = 0x11
	TypeInt64         Type = 0x12
	TypeDecimal128    Type = 0x13
	TypeMaxKey        Type = 0x7f
	TypeMinKey        Type = 0xff
)

var typeNames = map[Type]string{
	TypeDouble: "double", TypeString: "string", TypeDocument: "document", TypeArray: "array",
	TypeBinary: "binary", TypeUndefined: "undefined", TypeObjectID: "ObjectId", TypeBool: "bool",
	TypeDate: "date", TypeNull: "null", TypeRegex: "regex", TypeDBPointer: "DBPointer",
	TypeCode: "code", TypeSymbol: "symbol", TypeCodeWithScope: "code with scope", TypeInt32: "int32",
	TypeTimestamp: "timestamp", TypeInt64: "int64", TypeDecimal128: "Decimal128",
	TypeMaxKey: "MaxKey", TypeMinKey: "MinKey",
}

func (t Type) String() string {
	if name, known := typeNames[t]; known {
		return name
	}
	return "type 0x" + strconv.FormatUint(uint64(t), 16)
}
