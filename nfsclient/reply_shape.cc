// SPDX-License-Identifier: GPL-2.0-or-later
#include "reply_shape.h"

#include "nfs3_types.h"

namespace nfsrdma {
namespace {

constexpr uint32_t kStringMax = kMountPathMax;

void walk_string(XdrReader& reader, bool& sound) {
  const std::string_view text = reader.string(kStringMax);
  if (text.find('\0') != std::string_view::npos) sound = false;
}

void walk_fattr3(XdrReader& reader, bool& sound) {
  const uint32_t type = reader.u32();
  if (type < static_cast<uint32_t>(FileType::kRegular) ||
      type > static_cast<uint32_t>(FileType::kFifo)) {
    sound = false;
  }
  reader.skip(kFattr3Size - 4);
}

void walk_post_op_attr(XdrReader& reader, bool& sound) {
  if (reader.boolean()) walk_fattr3(reader, sound);
}

void walk_words(XdrReader& reader, bool& sound) {
  const uint32_t count = reader.u32();
  if (count > kArrayMax) {
    sound = false;
    return;
  }
  reader.skip(size_t{count} * 4);
}

void walk_item(XdrReader& reader, char item, bool& sound) {
  switch (item) {
    case '4':
      reader.u32();
      break;
    case '8':
    case 'V':
      reader.skip(8);
      break;
    case 'b':
      reader.boolean();
      break;
    case 'A':
      walk_fattr3(reader, sound);
      break;
    case 'a':
      walk_post_op_attr(reader, sound);
      break;
    case 'w':
      if (reader.boolean()) reader.skip(kWccAttrSize);
      walk_post_op_attr(reader, sound);
      break;
    case 'F':
      reader.opaque(kFileHandleMax);
      break;
    case 'f':
      if (reader.boolean()) reader.opaque(kFileHandleMax);
      break;
    case 's':
      walk_string(reader, sound);
      break;
    case 'I':
      walk_words(reader, sound);
      break;
    default:
      sound = false;
  }
}

/// The shape between shape[0] == '{' and its brace.
std::string_view inside_braces(std::string_view shape) {
  size_t depth = 0;
  for (size_t i = 0; i < shape.size(); i++) {
    if (shape[i] == '{') depth++;
    if (shape[i] == '}' && --depth == 0) return shape.substr(1, i - 1);
  }
  return {};
}

// `budget` counts the list entries of all lists together, nested ones too.
bool walk(XdrReader& reader, std::string_view shape, uint32_t& budget) {
  bool sound = true;
  while (!shape.empty() && sound && reader.ok()) {
    if (shape.front() != '{') {
      walk_item(reader, shape.front(), sound);
      shape.remove_prefix(1);
      continue;
    }
    const std::string_view entry = inside_braces(shape);
    while (sound && reader.boolean()) {
      sound = budget-- > 0 && walk(reader, entry, budget);
    }
    shape.remove_prefix(entry.size() + 2);
  }
  return sound && reader.ok();
}

}  // namespace

bool has_shape(ConstBytes reply, std::string_view shape) {
  XdrReader reader(reply);
  uint32_t budget = kListMax;
  return walk(reader, shape, budget);
}

}  // namespace nfsrdma
