// Package badinput tries, on real servers and with the real binary, what bad
// input gets: a message that names what is wrong and the way out, nothing lost,
// and a position that does not move.
//
// What is tried where:
//
//	an undecodable frame                                frame_test.go
//	NULL payload, NULL, empty or illegal route, no id   row_test.go
//	missing required column, table unfit or missing     table_test.go; under a running relay: cases C13
//	topic missing                                       cases C32
//	record too large for its topic                      cases C31; for the relay: cases C25
//	ACL denied                                          cases C33
//	wrong wal_level, no free slot, no free sender       cases C26
//	no REPLICATION right                                cases C26
//	publication missing                                 cases C26
//	publication made after the slot                     cases C08
//	publication dropped under a running relay           slot_test.go
//	publication narrowed, column list, row filter       cases C27
//	slot dropped while away                             slot_test.go
//	slot advanced while away                            position_test.go
//	slot invalidated (max_slot_wal_keep_size)           slot_test.go
//	wrong credentials                                   credentials_test.go
//	unknown option                                      option_test.go; every slip: package config
package badinput
