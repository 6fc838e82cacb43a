// Sends messages of the gRPC library to the log of the process.
#pragma once

namespace leeway {

// From now on the library's errors appear in the log. Each message appears once, so that strangers
// at a port cannot fill a disk. If `handshakes` is true, the log also has the reasons why
// connections were not accepted, which the library treats as details.
void TakeLibraryLog(bool handshakes);

// Makes a newer version of the library write errors only, as the distribution's version does by
// default.
void KeepLibraryLogToErrors();

}  // namespace leeway
