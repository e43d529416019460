// SPDX-License-Identifier: GPL-2.0-or-later
#include "stag_table.h"

#include <sys/random.h>

namespace nfsrdma::iwarp {

StagTable::StagTable(StagClass of, uint32_t capacity)
    : entries_(capacity), free_(capacity), free_count_(capacity), class_(of) {
  uint32_t generation = 0;
  // A start that differs from connection to connection: an STag of the last one finds nothing in
  // the next. Without random numbers it only stops short of that.
  if (getrandom(&generation, sizeof generation, GRND_NONBLOCK) < 0) generation = 1;
  for (uint32_t index = 0; index < capacity; ++index) {
    entries_[index].generation = generation;
    free_[index] = index;
  }
}

uint32_t StagTable::insert(Bytes memory, Access access) {
  if (free_count_ == 0) return 0;
  const uint32_t index = free_[free_head_];
  free_head_ = free_head_ + 1 == free_.size() ? 0 : free_head_ + 1;
  --free_count_;
  Entry& entry = entries_[index];
  entry.memory = memory;
  entry.access = access;
  entry.stag = make_stag(class_, ++entry.generation, index);
  return entry.stag;
}

bool StagTable::erase(uint32_t stag) {
  if (!valid(stag)) return false;
  const uint32_t index = stag_index(stag);
  entries_[index].stag = 0;
  entries_[index].memory = {};
  const size_t tail = (size_t{free_head_} + free_count_) % free_.size();
  free_[tail] = index;
  ++free_count_;
  return true;
}

void StagTable::erase_all() {
  for (const Entry& entry : entries_) {
    if (entry.stag != 0) erase(entry.stag);
  }
}

}  // namespace nfsrdma::iwarp
