// SPDX-License-Identifier: GPL-2.0-or-later
// Numbers that the parts of the RPC-over-RDMA transport share.
#pragma once

#include <cstdint>

#include "rpcrdma_header.h"

namespace nfsrdma {

/// Receives beyond the credits: a reply that nobody waits for then finds a buffer too.
constexpr uint32_t kSpareReceives = 2;

/// Sends that need no completion of their own are followed by one that has at the latest after so
/// many, so that the send queue (2 * credits + 2 * kSignalEvery) never fills with quiet ones.
constexpr uint32_t kSignalEvery = 16;

/// Our responder resources: at least 1, or nfsd refuses the connection. Reads of Read chunks.
constexpr uint32_t kResponderResources = 16;

/// Segments of a position-zero Read chunk: the head, the bulk data, their pad.
constexpr uint32_t kCallSegmentsMax = 3;

/// The largest header of a call, and zeros for a pad, stand before its head in memory.
constexpr uint32_t kRdmaCallHeaderMax =
    kRdmaHeaderMin + kCallSegmentsMax * kReadSegmentBytes + write_chunk_bytes(1);
constexpr uint32_t kPadRoom = kXdrUnit;
constexpr uint32_t kHeadRoom = 128;
static_assert(kHeadRoom >= kRdmaCallHeaderMax + kPadRoom);

}  // namespace nfsrdma
