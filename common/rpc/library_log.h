// What the gRPC library says goes to the process's log.
#pragma once

namespace leeway {

// From now on the library's errors are lines of the log, each text once: what strangers do at a
// port must not fill a disk. `handshakes`: so are the reasons why connections were not accepted,
// which the library thinks of as details.
void TakeLibraryLog(bool handshakes);

// A newer library writes errors, and nothing less, as the distribution's does by itself.
void KeepLibraryLogToErrors();

}  // namespace leeway
