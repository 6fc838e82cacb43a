// Sends messages of the gRPC library to the log of the process.
#pragma once

namespace leeway {

// From now on the library's errors appear in the log, each text once: strangers at a port must not
// be able to fill a disk. `handshakes` also logs why connections were not accepted, which the
// library treats as details.
void TakeLibraryLog(bool handshakes);

// Makes a newer library write errors only, as the distribution's version does by default.
void KeepLibraryLogToErrors();

}  // namespace leeway
