// Shows a running job: a live view on a terminal, plain lines elsewhere. Both also log the events.
#pragma once

#include <memory>

#include "launcher/supervision/supervisor.h"

namespace leeway {

// Returns true if standard output is a terminal that can move its cursor.
bool OutputIsTerminal();

// Returns how often the display needs a new status.
Duration StatusInterval(bool terminal);

// Returns a display that writes to standard output.
std::unique_ptr<RunObserver> MakeDisplay(bool terminal);

}  // namespace leeway
