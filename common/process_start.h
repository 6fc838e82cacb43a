// What programs of Leeway do about their process before anything else.
#pragma once

namespace leeway {

// Once, at the start of a program that others rely on: to write where nobody reads any more
// (SIGPIPE), or beyond `ulimit -f` (SIGXFSZ), is an error, and not the process's end.
void SurviveWrites();
// Once, at the start of a program that listens: connections are files, and the usual limit is for
// programs that wait with select().
void AllowManyFiles();

}  // namespace leeway
