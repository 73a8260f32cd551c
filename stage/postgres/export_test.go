package postgres

// ForzeTable is for the tests that see the package from outside.
const ForzeTable = forzeTable
