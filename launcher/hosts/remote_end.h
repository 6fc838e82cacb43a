// `leeway remote`: the end, on another host, of a connection that `leeway train --hosts` opened.
#pragma once

namespace leeway {

// Says who it is, takes one request (remote_messages.h), starts the process that it asks for,
// beside this program, and tells what becomes of it. The process's output goes to standard error.
// When `input` ends, because the connection or the launcher is gone, the process is killed at once
// with all that it has started; so it is when this one dies. Returns the process's exit code, which
// `output` tells exactly.
int RunRemoteEnd(int input, int output);

}  // namespace leeway
