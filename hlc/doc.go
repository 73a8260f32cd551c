// Package hlc is a Hybrid Logical Clock: stamps that follow the wall clock where
// it can be followed, and causality where it cannot.
//
//	63            16 15        0
//	+---------------+-----------+
//	| physical (ms) |  logical  |    48 + 16 bits
//	+---------------+-----------+
//
// A [Stamp] is a physical time in milliseconds and a logical counter, packed so
// that comparing integers compares stamps. Its text form is fifteen decimal
// digits, a dot and five decimal digits, so that comparing strings compares stamps
// too. Both forms are those of the forze outbox, which applications of walrelay
// share. The clock is that of Kulkarni, Demirbas, Madappa, Avva and Leone,
// "Logical Physical Clocks and Consistent Snapshots in Globally Distributed
// Databases" (2014).
//
// # Properties
//
// Of one [Clock], whatever its wall clock does (steps back, stands still, jumps):
//
//   - Each stamp is greater than every stamp that the clock issued before, than
//     every remote stamp that [Clock.Observe] accepted, and than every mark given
//     to [Clock.Resume].
//   - Hence, over all processes whose clocks observe what they receive: an effect
//     has a greater stamp than its cause, as long as the chain from one to the
//     other runs through messages, and no link of it was refused.
//   - The physical part of a stamp is never below the wall clock at its issue.
//     It is above it only for as long as the wall clock is behind a stamp that was
//     issued or observed before, and returns to it by itself. Nothing waits.
//   - The logical part never wraps: after 65535 it carries into the physical part.
//     70 000 stamps in one millisecond lie within two.
//   - A remote stamp more than the allowed drift ahead of the wall clock changes
//     nothing and is answered with a [DriftError].
//   - A clock cannot run out: no way leads it above [MaxClock] but issuing stamps,
//     and above it are left 2^56.
//
// # Hazards
//
//   - Stamps do not see what is read from a database. A process that read a row
//     that another one had written may stamp its own event lower, by as much as
//     their wall clocks differ. Commit order knows that edge; stamps do not.
//   - Two stamps of different processes may be equal: there is no node in a stamp.
//     Break ties with something else (the outbox breaks them with created_at, id).
//   - A smaller stamp does not mean an earlier event, only that it was not caused
//     by the greater one. Stamps say nothing about transactions that are still open.
//   - The drift bound is against others. When the process's own wall clock jumps
//     ahead and returns, the clock stays ahead until the wall clock has caught up;
//     and a checkpoint keeps it there over a restart. Watch [Clock.Lead].
//   - An event whose stamp was refused is not a cause any more: what is staged in
//     reaction to it may be stamped lower. Count refusals.
//   - Within one process a clock goes back to the wall clock at a restart. A
//     checkpoint keeps it from that, if it is resumed before the first stamp.
//
// # Checkpoints
//
// A checkpoint is a high-water mark of stamps that survives the process. Where it
// is kept belongs to the backend (stage/postgres has the table hlc_checkpoint);
// what it owes is the same everywhere:
//
//   - Advance(mark) runs in the transaction of the rows whose stamps it covers, so
//     that both are there or neither. It keeps the greater of the mark that is
//     there and the new one, whoever else is writing.
//   - Load answers the greatest mark over all nodes that share the place, or that
//     there is none. A value that is no stamp is an error of configuration and never
//     "no mark": the clock would start below stamps that are already out.
//   - At the start of a process: Load, [Clock.Resume], and only then the first stamp.
//
// The mark is an upper bound of what was committed. It says nothing about stamps
// in flight, so it cannot tell a reader that everything up to it has arrived.
package hlc
