// Finds what server 0 can know about its link to the workers before any worker has registered.
#pragma once

#include <string>

#include "leeway/v1/job.pb.h"

namespace leeway {

// Returns the nominal speed in bytes per second of the fastest network interface of this host that
// is up, or 1 Gb/s if the operating system does not report a speed. Virtual interfaces are ignored,
// because their speed (10 Gb/s for veth) does not depend on the network below them. `folder` is
// /sys/class/net.
double NominalLink(const std::string& folder);

// Returns true if all processes of a job are on one host. This is the case if the coordinator's
// address is a loopback address, or if the transport is unix or shm.
bool OnOneHost(const std::string& address, const v1::Transport& transport);

}  // namespace leeway
