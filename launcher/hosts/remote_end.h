// `leeway remote`: the remote end of a connection that `leeway train --hosts` opened.
#pragma once

namespace leeway {

// Reports its version and host, reads one request (remote_messages.h), starts the requested process
// from the folder of this program, and reports what happens to the process. The process's output
// goes to standard error. When `input` ends, because the connection or the launcher is gone, kills
// the process at once, and everything that the process has started. If this program dies, the
// kernel kills them. Returns the process's exit code; the full exit status goes to `output`.
int RunRemoteEnd(int input, int output);

}  // namespace leeway
