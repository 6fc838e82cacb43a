// Settings of this process that a program makes once, at its start.
#pragma once

namespace leeway {

// Makes a write to a pipe or socket without a reader (SIGPIPE), or beyond `ulimit -f` (SIGXFSZ),
// fail with an error. Otherwise such a write ends the process.
void SurviveWrites();
// Raises the limit of open files as far as the system allows. Each connection is an open file, and
// the usual limit is meant for programs that wait with select().
void AllowManyFiles();

}  // namespace leeway
