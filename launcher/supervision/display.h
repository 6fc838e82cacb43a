// Shows a running job: a live view on a terminal, plain lines elsewhere. Both also log the events.
#pragma once

#include <memory>

#include "launcher/supervision/supervisor.h"

namespace leeway {

// Whether standard output is a terminal that can move its cursor.
bool OutputIsTerminal();

// How often the display wants to see the status.
Duration StatusInterval(bool terminal);

// To standard output.
std::unique_ptr<RunObserver> MakeDisplay(bool terminal);

}  // namespace leeway
